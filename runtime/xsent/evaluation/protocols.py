"""The protocols by name, and the form of the vectors that they measure.

Each takes what encodes, the folder or file of its data, the codes of languages (None: all that the data have and that
the encoder, if it says which, was trained for), and gives an `Evaluation`. A DataError says that a file is missing or
cannot be read, or that it has none of the languages.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.evaluation.contrasts import contrasts
from xsent.evaluation.result import Evaluation
from xsent.evaluation.sts import sts
from xsent.evaluation.translation import space, tatoeba, xsim, xsr
from xsent.evaluation.words import words
from xsent.open_model import SupportsEncode
from xsent.precision import Precision, unpack_signs

_ALL: tuple[Callable[..., Evaluation], ...] = (tatoeba, xsr, xsim, sts, contrasts, words, space)
PROTOCOLS = {protocol.__name__: protocol for protocol in _ALL}


def as_stored(
    encoder: SupportsEncode,
    precision: Precision = "float32",
    truncate_dim: int | None = None,
    space: str | None = None,
) -> SupportsEncode:
    """The encoder, with vectors as they come out of a file, or in another model's space.

    A ValueError says that it is no bundle's, or which spaces there are.
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
        self._encoder, self._precision, self._truncate_dim, self._space = encoder, precision, truncate_dim, space
        self.languages, self.fingerprint = encoder.languages, encoder.fingerprint_of(space)

    def encode(self, sentences: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors [n, dim], whose cosines are those of the stored ones."""
        vectors = self._encoder.encode(
            sentences, precision=self._precision, truncate_dim=self._truncate_dim, space=self._space
        )
        return unpack_signs(vectors) if self._precision == "binary" else vectors.astype(np.float32)
