"""Precisions of vectors: float32, float16, int8, and binary (the sign of every number, eight per byte).

Shapes: n and m vectors, D dimensions, D / 8 bytes per binary vector. All bits zero is the zero vector, which empty
sentences get; a vector without positive numbers becomes it, too.
"""

import math
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from xsent.errors import check_choice

Precision = Literal["float32", "float16", "int8", "binary"]
Vectors: TypeAlias = NDArray[Any]  # of the type of their precision

_STORED_AS = {"float32": np.float32, "float16": np.float16, "int8": np.int8, "binary": np.uint8}

# A component of a unit vector is about 1 / sqrt(D), so 127 is four of its standard deviations: on held-out pairs
# factors of 8 to 42 find as many translations as float32, and at 32 cosines move least (0.0006 at D = 512).
_INT8_FACTOR = 32

SHIFTED = np.float32(2.0**112)  #: what `shifted` divides by
_NOT_COPIES = np.array(0x8FFFE000, np.uint32).view(np.int32)
_EXPONENT = 0x7C00  # all of these bits are set in infinities and NaN

_ROWS = 8  # rows compared at once; few enough that their distances stay in the cache


def stored_as(precision: str, dim: int) -> tuple[np.dtype[Any], int]:
    """The numpy type and length of a stored vector of `dim` numbers. Raises ValueError if there is no such form."""
    check_choice("precision", precision, list(_STORED_AS))
    if precision == "binary" and dim % 8:
        raise ValueError(f"truncate_dim = {dim} must be a multiple of 8 for binary vectors, eight numbers per byte")
    return np.dtype(_STORED_AS[precision]), dim // 8 if precision == "binary" else dim


def to_int8(vector: NDArray[np.float32]) -> NDArray[np.int8]:
    """A unit vector [D] in steps of 1 / (32 sqrt(D)), clipped at 127 steps.

    The step depends only on D, so that vectors of different files can be compared: <a, b> is about 1024 D cos(a, b).

    Example:
        >>> to_int8(encoder.encode("Il neige.")).dtype
        dtype('int8')
    """
    factor = np.float32(_INT8_FACTOR * math.sqrt(len(vector)))
    steps: NDArray[np.float32] = np.clip(np.rint(vector * factor), -127, 127)
    return steps.astype(np.int8)


def pack_signs(vectors: ArrayLike) -> NDArray[np.uint8]:
    """Pack signs into bytes [..., D / 8], 1 for a number above zero, highest bit first ("ubinary" elsewhere).

    Example:
        >>> pack_signs([1, -1, -1, 1, 1, -1, -1, -1]).tolist()
        [152]
    """
    array = np.asarray(vectors)
    if array.shape[-1] % 8:
        raise ValueError(f"{array.shape[-1]} dimensions cannot be packed into bytes; expected a multiple of 8")
    return np.packbits(array > 0, axis=-1)


def unpack_signs(packed: ArrayLike) -> NDArray[np.float32]:
    """Unpack signs [..., D / 8] to numbers [..., D]: 1 or -1, and 0 for the zero vector.

    Example:
        >>> unpack_signs([152]).tolist()
        [1.0, -1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0]
    """
    bits = np.unpackbits(np.asarray(packed, np.uint8), axis=-1)
    signs = bits.astype(np.float32) * 2 - 1
    return np.where(bits.any(axis=-1, keepdims=True), signs, np.float32(0))


def hamming_distances(a: ArrayLike, b: ArrayLike) -> NDArray[np.int32]:
    """Numbers of differing bits [n, m] between vectors `a` [n, D / 8] and `b` [m, D / 8]; either may be one vector.

    Example:
        >>> hamming_distances(pack_signs([[1] * 8]), pack_signs([[-1] * 8, [1] * 7 + [-1]])).tolist()
        [[8, 1]]
    """
    arrays = [np.atleast_2d(np.asarray(array)) for array in (a, b)]
    for array in arrays:
        if array.dtype != np.uint8 or array.ndim != 2:
            raise TypeError(f"expected packed signs, uint8 of shape [n, D / 8]; got {array.dtype} {list(array.shape)}")
    widths = [array.shape[1] for array in arrays]
    if widths[0] != widths[1]:
        raise ValueError(f"vectors of {8 * widths[0]} and of {8 * widths[1]} dimensions cannot be compared")
    # As 64-bit words, padded with zeros.
    left, right = (np.pad(array, ((0, 0), (0, -widths[0] % 8))).view(np.uint64) for array in arrays)
    columns = np.ascontiguousarray(right.T)
    distances = np.zeros((len(left), len(right)), np.int32)
    for start in range(0, len(left), _ROWS):
        rows = slice(start, start + _ROWS)
        for word, column in enumerate(columns):
            distances[rows] += np.bitwise_count(left[rows, word, None] ^ column)
    return distances


def binary_similarity(a: ArrayLike, b: ArrayLike) -> NDArray[np.float32]:
    """Cosines [n, m] between signs `a` [n, D / 8] and `b` [m, D / 8]: `1 - 2 distance / D`, 0 for a zero vector."""
    left, right = np.atleast_2d(np.asarray(a)), np.atleast_2d(np.asarray(b))
    distances = hamming_distances(left, right)
    cosines = 1 - distances.astype(np.float32) * np.float32(2 / (8 * max(left.shape[1], 1)))
    cosines[~left.any(axis=1)] = 0
    cosines[:, ~right.any(axis=1)] = 0
    return cosines


def widen(halves: NDArray[np.float16], out: NDArray[np.float32]) -> None:
    """Convert finite float16 numbers [n, D] to float32, exactly; several times as fast as NumPy."""
    np.multiply(shifted(halves, out), SHIFTED, out=out)


def shifted(halves: NDArray[np.float16], out: NDArray[np.float32]) -> NDArray[np.float32]:
    """Finite float16 numbers [n, D] divided by 2^112, in the first rows of `out`: the bits of a float16, shifted by 13.

    The sign stays where it is, and the exponent is 112 too small.
    """
    small = out[: len(halves)]
    bits = small.view(np.int32)
    np.copyto(bits, halves.view(np.int16))  # fills the upper half with copies of the sign; one of them stays
    np.left_shift(bits, 13, out=bits)
    np.bitwise_and(bits, _NOT_COPIES, out=bits)
    return small


def as_float32(vectors: Vectors) -> NDArray[np.float32]:
    """A copy of vectors [n, D] in float32."""
    if vectors.dtype != np.float16 or ((vectors.view(np.uint16) & _EXPONENT) == _EXPONENT).any():
        return vectors.astype(np.float32)
    copy = np.empty(vectors.shape, np.float32)
    widen(vectors, copy)
    return copy
