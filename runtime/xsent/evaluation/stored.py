"""An encoder whose vectors are as a file stores them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.open_model import SupportsEncode
from xsent.precision import Precision, unpack_signs


def as_stored(
    encoder: SupportsEncode,
    precision: Precision = "float32",
    truncate_dim: int | None = None,
    space: str | None = None,
) -> SupportsEncode:
    """Wrap an encoder to return vectors as read from a file, or in another model's space.

    Raises ValueError if it is not a bundle's encoder, or the bundle does not have that space.
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
        """Vectors [n, dim] with the same cosines as the stored ones."""
        vectors = self._encoder.encode(
            sentences, precision=self._precision, truncate_dim=self._truncate_dim, space=self._space
        )
        return unpack_signs(vectors) if self._precision == "binary" else vectors.astype(np.float32)
