"""Symmetric int8 quantisation, in numpy: value = int8 x scale, no zero point.

A table keeps one scale a row, so that an outlier costs its own word only; a linear layer keeps one scale an
output channel.
"""

import numpy as np
from numpy.typing import NDArray

TABLE_LIMIT = 127
# Two products of an unsigned 8-bit activation and a weight are added in 16 bits on CPUs without VNNI
# (vpmaddubsw); 2 x 255 x 64 = 32,640 is the largest power of two that cannot saturate there.
PORTABLE_LIMIT = 64


def quantize_rows(table: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise a table with one scale a row.

    Args:
        table: Finite numbers [V, D].

    Returns:
        The int8 rows [V, D] in -127..127, and the scales [V, 1]; `rows * scales` is the table again.

    Raises:
        ValueError: The table holds infinities or NaN.
    """
    return _quantize(table, axis=1, limit=TABLE_LIMIT)


def quantize_columns(weight: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Quantise the weight of a linear layer with one scale an output channel, safe on every CPU.

    Args:
        weight: Finite numbers [inputs, outputs].

    Returns:
        The int8 weight [inputs, outputs] in -64..64 (about 7 bits), and the scales [outputs].

    Raises:
        ValueError: The weight holds infinities or NaN.
    """
    rows, scales = _quantize(weight, axis=0, limit=PORTABLE_LIMIT)
    return rows, scales[0]


def _quantize(values: NDArray[np.float32], *, axis: int, limit: int) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    largest = np.abs(values).max(axis=axis, keepdims=True, initial=0.0)
    if not np.isfinite(largest).all():
        raise ValueError("weights hold infinities or NaN; export an earlier checkpoint")
    # A row of zeros stays zeros under any scale.
    scales = np.where(largest > 0, largest / limit, 1.0).astype(np.float32)
    return np.rint(values / scales).astype(np.int8), scales
