"""How sentences are encoded: what happens to long ones, and the form of the vectors."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

OnLong = Literal["warn", "error", "split"]
Precision = Literal["float32", "float16"]
Vectors = NDArray[np.floating[Any]]

_ON_LONG = ("warn", "error", "split")
_PRECISIONS = ("float32", "float16")


class LongSentenceWarning(UserWarning):
    """Sentences were longer than the encoder reads and were cut; given once a call, with their number."""


@dataclass(frozen=True)
class EncodeOptions:
    """Checked options of one call.

    Attributes:
        dim: Length of the vectors that come out.
        normalize: Whether vectors get length 1; the zero vector stays.
        dtype: Type of their numbers.
        on_long: What to do with a sentence over `max_length` tokens.
    """

    dim: int
    normalize: bool
    dtype: np.dtype[Any]
    on_long: OnLong

    @classmethod
    def check(
        cls, full_dim: int, normalize: bool, truncate_dim: int | None, precision: Precision, on_long: OnLong
    ) -> "EncodeOptions":
        """Check the arguments of a call.

        Args:
            full_dim: The encoder's dimension.
            normalize: See `SentenceEncoder.encode`, like the rest.
            truncate_dim: Prefix of the vector to keep.
            precision: Name of the number type.
            on_long: Policy for long sentences.

        Raises:
            ValueError: A value that is not offered; says which are.
        """
        if truncate_dim is not None and not 1 <= truncate_dim <= full_dim:
            raise ValueError(f"truncate_dim = {truncate_dim} must lie between 1 and {full_dim}")
        if precision not in _PRECISIONS:
            raise ValueError(f"precision = {precision!r} must be one of {', '.join(_PRECISIONS)}")
        if on_long not in _ON_LONG:
            raise ValueError(f"on_long = {on_long!r} must be one of {', '.join(_ON_LONG)}")
        return cls(truncate_dim or full_dim, normalize, np.dtype(precision), on_long)

    def finish(self, vector: NDArray[np.float32]) -> Vectors:
        """Bring a raw sentence vector [D] into the form asked for, [dim]."""
        vector = vector[: self.dim]
        # One vector at a time: a norm over a matrix may round otherwise, and company must change nothing.
        norm = math.sqrt(np.dot(vector, vector))
        if self.normalize and norm > 0:
            vector = vector / np.float32(norm)
        return vector.astype(self.dtype, copy=False)
