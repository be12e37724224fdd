"""Published protocols by name.

Each takes an encoder, the folder or file of its data, and codes of languages, and returns an `Evaluation`. Without
codes it measures all languages of the data that the encoder names, or all if it names none. Raises DataError if a file
is missing or cannot be read, or has none of the languages.
"""

from collections.abc import Callable

from xsent.evaluation.judgements import contrasts, sts, words
from xsent.evaluation.result import Evaluation
from xsent.evaluation.retrieval import retrieval
from xsent.evaluation.stored import as_stored as as_stored
from xsent.evaluation.translation import space, tatoeba, xsim, xsr

_ALL: tuple[Callable[..., Evaluation], ...] = (tatoeba, xsr, xsim, sts, contrasts, words, space, retrieval)
PROTOCOLS = {protocol.__name__: protocol for protocol in _ALL}
