"""What a caller of `SentenceEncoder.encode` asks for, and the form that it gives to vectors."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from xsent.precision import Precision, Vectors, pack_signs, stored_as, to_int8

OnLong = Literal["warn", "error", "split"]


@dataclass(frozen=True)
class EncodeOptions:
    """Checked options of one call."""

    dim: int  # length of the vectors (D); binary ones have D / 8 bytes
    normalize: bool  # whether vectors get length 1; the zero vector stays
    precision: Precision  # form of their numbers
    on_long: OnLong  # what to do with a sentence over `max_length` tokens
    matrix: NDArray[np.float32] | None = None  # into another model's space [own, D], for vectors of length 1

    def empty(self, count: int) -> Vectors:
        """An array for `count` vectors, [count, D] or [count, D / 8]."""
        dtype, width = stored_as(self.precision, self.dim)
        return np.empty((count, width), dtype)

    def finish(self, vector: NDArray[np.float32]) -> Vectors:
        """Convert a raw sentence vector to the requested form, [D] or [D / 8]."""
        if self.matrix is None:
            vector = vector[: self.dim]
        else:  # einsum, because OpenBLAS's threads would compete with the encoder's
            vector = np.einsum("d,de->e", _unit(vector), self.matrix)
        if self.precision == "binary":
            return pack_signs(vector)
        if self.normalize:
            vector = _unit(vector)
        return to_int8(vector) if self.precision == "int8" else vector.astype(self.precision, copy=False)


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """A vector scaled to length 1; the zero vector stays."""
    # One vector at a time: norms over a matrix may round differently, and a vector must not depend on the others.
    norm = math.sqrt(np.dot(vector, vector))
    return vector / np.float32(norm) if norm > 0 else vector
