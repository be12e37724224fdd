"""The parity gate: what it measures, and what it refuses."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from commands import raises

from xsent.bundle import Golden
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, ParityError
from xsent_export.options import Budget, BundleSpec
from xsent_export.parity import (
    LanguageParity,
    Parity,
    calibration_texts,
    evenly_spaced,
    measure_parity,
    read_pairs,
    tolerances,
)


def fixed(**vectors: tuple[float, float]) -> SimpleNamespace:
    """An encoder with known vectors."""
    return SimpleNamespace(encode=lambda texts: np.array([vectors[text] for text in texts], np.float32))


PAIRS = {"fr": [("one", "un"), ("two", "deux")]}
BEFORE = fixed(one=(1, 0), two=(0, 1), un=(1, 0), deux=(0, 1))


def test_measures_by_hand(encoder: SentenceEncoder) -> None:
    # "deux" moves by 90 degrees and is now nearest to "one"; "one" and "two" still find their translations first.
    after = fixed(one=(1, 0), two=(0, 1), un=(0.8, 0.6), deux=(1, 0))
    measured = measure_parity(BEFORE, after, PAIRS, Budget()).languages["fr"]
    assert measured.pairs == 2
    assert measured.cosine_mean == pytest.approx((1 + 1 + 0.8 + 0) / 4)
    assert measured.cosine_min == 0
    assert measured.cosine_p1 == pytest.approx(0.03 * 0.8)
    assert measured.p1_before == 100
    # en -> fr: "one" finds "deux", "two" finds "un"; fr -> en: both find "one".
    assert measured.p1_after == 25
    measure_parity(BEFORE, BEFORE, PAIRS, Budget()).check()
    pairs = {"fr": [("Anna " * 100, "Boris " * 100), ("Clara", "David")]}  # cut on both sides without a word
    assert measure_parity(encoder, encoder, pairs, Budget()).languages["fr"].cosine_min == pytest.approx(1)


def test_the_first_ten_by_hand() -> None:
    degrees = np.array([0, 1, 2, 3, 4, 5, 40, 41, 42, 43, 44, 45])  # the two at the other end are not among the ten
    english = {f"e{n}": (np.cos(a), np.sin(a)) for n, a in enumerate(np.radians(degrees))}
    before, after = (
        fixed(**english, **{f"f{n}": (np.cos(a), np.sin(a)) for n, a in enumerate(np.radians(there))})
        for there in (degrees, 45 - degrees)
    )
    pairs = {"fr": [(f"e{n}", f"f{n}") for n in range(12)]}
    assert measure_parity(before, before, pairs, Budget()).languages["fr"].first_ten == 1
    assert measure_parity(before, after, pairs, Budget()).languages["fr"].first_ten == 0.8


@pytest.mark.parametrize(
    ("cosine", "after", "kept", "message"),
    [
        (0.99, 97.0, 1.0, r"fr mean cosine 0\.9900 \(at least 0\.995\)"),
        (1.0, 96.4, 1.0, r"fr P@1 97\.00 -> 96\.40 \(loss at most 0\.5\)"),
        (1.0, 97.0, 0.89, r"fr keeps 0\.890 of the ten nearest sentences \(at least 0\.9\)"),
        (float("nan"), 97.0, 1.0, "fr mean cosine nan"),
        (1.0, float("nan"), 1.0, "fr P@1"),
        (1.0, 97.0, float("nan"), "fr keeps nan"),
    ],
)
def test_the_worst_language_decides(cosine: float, after: float, kept: float, message: str) -> None:
    good = LanguageParity(1000, 1.0, 1.0, 1.0, 97.0, 97.0, 1.0)
    bad = LanguageParity(10, cosine, 0.9, 0.9, 97.0, after, kept)
    raises(ParityError, message, Parity({"de": good, "fr": bad}, Budget()).check)
    few, many = replace(good, pairs=99, p1_after=96.0), replace(good, pairs=100, p1_after=96.0)
    assert Parity({"de": good, "fr": many}, Budget()).remark == ""
    with pytest.raises(ParityError, match=r"keeps the trained weights; fr: P@1 of 99 pairs moves in steps of 0\.51,"):
        Parity({"de": good, "fr": few}, Budget()).check()


def test_pairs_are_read_once_and_spread(tmp_path: Path) -> None:
    lines = [f"web\tfr\tenglish {i}\tfrançais {i}" for i in range(10)]
    lines += ["web\tde\tenglish 1\tdeutsch 1", "web\tfr\tenglish 1\tautre", "web\tfr\tother\tfrançais 2"]
    file = tmp_path / "validation.tsv"
    file.write_text("\n".join(lines), encoding="utf-8")
    pairs = read_pairs(file, limit=5)
    assert list(pairs) == ["de", "fr"]
    assert pairs["de"] == [("english 1", "deutsch 1")]
    assert [english for english, _ in pairs["fr"]] == [f"english {i}" for i in (0, 2, 4, 6, 8)]
    file.write_text("")
    raises(DataError, "no usable pair", read_pairs, file)
    file.write_text("web\tA sentence alone.\n")
    raises(DataError, "no translations; expected held-out pairs", read_pairs, file)


@pytest.mark.parametrize("count", [25, 28, 99, 100])
def test_every_nth_text_to_calibrate_on_is_of_both_sides(count: int) -> None:
    """28 of 112 texts are every fourth: if sides took turns, that would be English only."""
    pairs = {language: [(f"en {number}", language) for number in range(56)] for language in ("de", "fr")}
    texts = calibration_texts(pairs)
    assert len(texts) == 112 and "en 0" not in texts  # of every other pair
    sides = Counter(text.split()[0] for text in evenly_spaced(texts, count))
    assert sides["en"] == pytest.approx(count / 2, abs=1) and sides["de"] == pytest.approx(count / 4, abs=1)


def test_processors_that_are_not_named_and_bundles_that_round_more_may_differ_more() -> None:
    allowed = tolerances(BundleSpec(2, 100), 1.0)
    assert len(allowed) == 7
    golden = Golden((), (), allowed)
    assert (golden.allowed("avx_vnni"), golden.allowed("avx2"), golden.allowed("riscv")) == (0.002, 0.002, 0.02)
    assert tolerances(BundleSpec(2, 100, "float32"), 1.0) == {"other": 0.0001}
    allowed = tolerances(BundleSpec(2, 100), 0.995)  # noise of 0.1 of a vector, six times that
    assert set(allowed.values()) == {0.06}
    assert tolerances(BundleSpec(0, 100), 0.995)["avx2"] == 0.002  # without layers nothing adds up
