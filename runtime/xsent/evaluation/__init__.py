"""Published protocols by name, and the form of the vectors that they measure.

Each takes an encoder, the folder or file of its data, and codes of languages, and returns an `Evaluation`. Without
codes it measures all languages of the data that the encoder, if it says so, was trained for. Raises DataError if a file
is missing or cannot be read, or has none of the languages.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.evaluation.judgements import contrasts, sts, words
from xsent.evaluation.result import Evaluation
from xsent.evaluation.retrieval import retrieval
from xsent.evaluation.translation import space, tatoeba, xsim, xsr
from xsent.open_model import SupportsEncode
from xsent.precision import Precision, unpack_signs

_ALL: tuple[Callable[..., Evaluation], ...] = (tatoeba, xsr, xsim, sts, contrasts, words, space, retrieval)
PROTOCOLS = {protocol.__name__: protocol for protocol in _ALL}


def as_stored(
    encoder: SupportsEncode,
    precision: Precision = "float32",
    truncate_dim: int | None = None,
    space: str | None = None,
) -> SupportsEncode:
    """The encoder, giving vectors as they are read from a file, or in another model's space.

    Raises ValueError if it is not a bundle's encoder, or the bundle has no such space.
    """
    if precision == "float32" and truncate_dim is None and space is None:
        return encoder
    if not isinstance(encoder, SentenceEncoder):
        raise ValueError("--precision, --truncate-dim and --space are for bundles; export the checkpoint first")
    return _StoredEncoder(encoder, precision, truncate_dim, space)


class _StoredEncoder:
    def __init__(
        self, encoder: SentenceEncoder, precision: Precision, truncate_dim: int | None, space: str | None
    ) -> None:
        self._encoder = encoder
        self._precision = precision
        self._truncate_dim = truncate_dim
        self._space = space
        self.languages = encoder.languages
        self.fingerprint = encoder.fingerprint_of(space)

    def encode(self, sentences: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors [n, dim], whose cosines are those of the stored ones."""
        vectors = self._encoder.encode(
            sentences, precision=self._precision, truncate_dim=self._truncate_dim, space=self._space
        )
        return unpack_signs(vectors) if self._precision == "binary" else vectors.astype(np.float32)
