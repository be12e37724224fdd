"""Quantisation against numbers worked out by hand."""

import numpy as np
import pytest

from xsent.export.quantization import PORTABLE_LIMIT, quantize_columns, quantize_rows


def test_rows_have_a_scale_each() -> None:
    table = np.array([[1.27, -0.64, 0.0], [100.0, 254.0, -254.0]], np.float32)
    rows, scales = quantize_rows(table)
    assert rows.dtype == np.int8
    assert rows.tolist() == [[127, -64, 0], [50, 127, -127]]
    assert scales.dtype == np.float32
    assert scales.shape == (2, 1)
    assert scales.ravel().tolist() == pytest.approx([0.01, 2.0])


def test_columns_have_a_scale_each_and_seven_bits() -> None:
    weight = np.array([[0.64, 3.2], [-0.32, -6.4]], np.float32)
    columns, scales = quantize_columns(weight)
    assert columns.tolist() == [[64, 32], [-32, -64]]
    assert scales.tolist() == pytest.approx([0.01, 0.1])


def test_two_products_fit_in_16_bits() -> None:
    assert 2 * 255 * PORTABLE_LIMIT <= np.iinfo(np.int16).max


def test_zeros_stay_zeros() -> None:
    rows, scales = quantize_rows(np.zeros((2, 3), np.float32))
    assert not rows.any()
    assert np.isfinite(scales).all()


def test_error_is_at_most_half_a_step() -> None:
    table = np.random.default_rng(0).normal(size=(20, 16)).astype(np.float32)
    rows, scales = quantize_rows(table)
    assert (np.abs(rows * scales - table) <= scales * 0.5001).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_refuses_what_is_not_finite(bad: float) -> None:
    with pytest.raises(ValueError, match="infinities or NaN"):
        quantize_rows(np.array([[1.0, bad]], np.float32))
