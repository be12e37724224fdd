"""The form in which vectors are stored, shorter or in fewer bits, and an encoder that gives them back so."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.hamming import unpack_signs
from xsent.models import SupportsEncode
from xsent.options import Precision


@dataclass(frozen=True)
class VectorForm:
    """How vectors are stored, see `SentenceEncoder.encode`."""

    precision: Precision = "float32"
    truncate_dim: int | None = None

    def of(self, encoder: SupportsEncode) -> SupportsEncode:
        """The encoder, with vectors as they come out of a file; a ValueError says that it is no bundle's."""
        if self == VectorForm():
            return encoder
        if not isinstance(encoder, SentenceEncoder):
            raise ValueError("--precision and --truncate-dim are for bundles; export the checkpoint first")
        return _FormedEncoder(encoder, self)


class _FormedEncoder:
    def __init__(self, encoder: SentenceEncoder, form: VectorForm) -> None:
        self._encoder, self._form = encoder, form
        self.languages, self.fingerprint = encoder.languages, encoder.fingerprint

    def encode(self, sentences: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors [n, dim], whose cosines are those of the stored ones."""
        form = self._form
        vectors = self._encoder.encode(sentences, precision=form.precision, truncate_dim=form.truncate_dim)
        return unpack_signs(vectors) if form.precision == "binary" else vectors.astype(np.float32)
