"""The limit of "unknown", by hand."""

import numpy as np
import pytest

from xsent.classification import limit
from xsent.classification.limit import Limit, find_limit, held_out
from xsent.similarity import unit_rows

ROOT = np.sqrt(0.5)


def test_a_text_is_held_out_with_those_that_say_the_same() -> None:
    # Of label 0 two texts say the same and one is apart, at a cosine of 0.6; both of label 1 say the same.
    units = np.array([[1, 0, 0], [1, 0, 0], [0.6, 0.8, 0], [0, 0, 1], [0, 0, 1], [0, 0, 0]], np.float32)
    classes = np.array([0, 0, 0, 1, 1, 1])
    sums = np.array([units[:3].sum(axis=0), units[3:].sum(axis=0)], np.float64)
    rows, cosines = held_out(units, classes, sums)
    assert rows.tolist() == [0, 1, 2, 3, 4]  # not the text without words
    assert cosines == pytest.approx(np.array([[0.6, 0], [0.6, 0], [0.6, 0], [0, 0.7], [0, 0.7]]), abs=1e-6)
    described = sums + np.array([[0, 0, 0], [0, 4, 0]])  # something is left of label 1 where it has a description
    assert held_out(units, classes, described)[1][3:] == pytest.approx(np.array([[0, 0]] * 2), abs=1e-6)


def test_half_of_what_centres_share_does_not_count() -> None:
    centres = np.array([[1, 0, 0], [ROOT, ROOT, 0]], np.float32)
    plain = Limit.plain(centres, 0.5)
    product = (centres @ centres[0]) - (1 + ROOT) / 4
    assert plain.centres @ centres[0] == pytest.approx(product, abs=1e-6)
    assert plain.fits(unit_rows([[1, 0, 0], [0, 0, 1], [0, 0, 0]])).tolist() == [True, False, False]


def test_a_wide_label_is_near_texts_that_are_farther() -> None:
    centres = np.eye(3, dtype=np.float32)
    classes = np.repeat([0, 1], 40)
    cosines = np.zeros((80, 3))
    cosines[:40, 0], cosines[40:, 1] = 0.8, 0.4
    found = Limit.measured(centres, cosines, classes)
    # Less a sixth for what is shared, 0.8 and 0.4 are 4/3 and 2/3 of the usual, drawn to it by four examples; a label
    # without examples is as wide as usual.
    widths = np.array([(40 * 4 / 3 + 4) / 44, (40 * 2 / 3 + 4) / 44, 1])
    assert found.centres == pytest.approx((np.eye(3) - 1 / 6) / widths[:, None], abs=1e-6)
    assert found.least == pytest.approx(0.4 * 5 / 6 / widths[1])
    texts = np.array([[0.5, 0, 0], [0, 0.5, 0]], np.float32)
    assert found.fits(texts).tolist() == [False, True]


def test_many_texts_are_a_sample_of_all_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limit, "_ROWS", 50)
    random = np.random.default_rng(0)
    classes = np.arange(400) % 4
    units = unit_rows(np.eye(8)[classes] + 0.5 * random.normal(size=(400, 8)))
    rows, cosines = held_out(units, classes, np.eye(4)[classes].T @ units)
    assert cosines.shape == (50, 4) and len({*rows.tolist()}) == 50
    assert {*classes[rows].tolist()} == {0, 1, 2, 3}


def test_templates_do_not_narrow_the_limit() -> None:
    """Forty texts from four templates lose as few new texts as four texts do."""
    random = np.random.default_rng(1)
    templates = random.normal(size=(8, 64)) + 4 * np.repeat(np.eye(64)[:2], 4, axis=0)
    classes = np.repeat([0, 1], 4)
    few = find_limit(unit_rows(templates), classes)
    many = np.repeat(templates, 10, axis=0) + 0.1 * random.normal(size=(80, 64))
    found = find_limit(unit_rows(many), np.repeat(classes, 10))
    assert found.least == pytest.approx(few.least, abs=0.05)


def test_a_repeated_text_counts_once() -> None:
    units = unit_rows(np.random.default_rng(2).normal(size=(12, 16)) + 2 * np.repeat(np.eye(16)[:2], 6, axis=0))
    classes = np.repeat([0, 1], 6)
    times = [40, *[1] * 10, 3]
    once, often = find_limit(units, classes), find_limit(np.repeat(units, times, axis=0), np.repeat(classes, times))
    assert often.least == once.least and np.array_equal(often.centres, once.centres)


@pytest.mark.parametrize("units", [np.zeros((4, 3)), np.eye(3)[[0, 0, 1, 1]], -np.eye(3)[[0, 0, 0, 0]]])
def test_impossible_texts_have_a_limit(units: np.ndarray) -> None:
    found = find_limit(units.astype(np.float32), np.array([0, 0, 1, 1]))
    assert -1 <= found.least <= 1 and np.isfinite(found.centres).all()
