"""An encoder whose vectors are measured as they would be stored: shorter, or in fewer bits."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.hamming import unpack_signs
from xsent.models import SupportsEncode
from xsent.options import Precision


@dataclass(frozen=True)
class Stored:
    """How vectors are stored.

    Attributes:
        precision: See `SentenceEncoder.encode`.
        truncate_dim: Numbers kept of a vector; all unless given.
    """

    precision: Precision = "float32"
    truncate_dim: int | None = None

    def of(self, encoder: SupportsEncode) -> SupportsEncode:
        """The encoder, with vectors that have been stored so and read again.

        Raises:
            ValueError: It is no bundle's, and something else than its own vectors is asked for.
        """
        if self == Stored():
            return encoder
        if not isinstance(encoder, SentenceEncoder):
            raise ValueError("--precision and --truncate-dim are for bundles; export the checkpoint first")
        return StoredEncoder(encoder, self)


class StoredEncoder:
    """A bundle's encoder that gives vectors back as they come out of a file.

    Args:
        encoder: The encoder.
        stored: How its vectors are stored.
    """

    def __init__(self, encoder: SentenceEncoder, stored: Stored) -> None:
        self._encoder, self._stored = encoder, stored
        self.languages, self.fingerprint = encoder.languages, encoder.fingerprint

    def encode(self, sentences: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors [n, dim], whose cosines are those of the stored ones."""
        how = self._stored
        vectors = self._encoder.encode(sentences, precision=how.precision, truncate_dim=how.truncate_dim)
        return unpack_signs(vectors) if how.precision == "binary" else vectors.astype(np.float32)
