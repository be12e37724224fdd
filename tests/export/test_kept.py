"""What stays of the ten nearest passages, beside the same by sorting all cosines."""

from pathlib import Path

import numpy as np
import pytest
from bench_toy import write_toy_tests

from xsent import SentenceEncoder
from xsent.evaluation.retrieval import read_test
from xsent.open_model import SupportsEncode
from xsent.precision import pack_signs, unpack_signs
from xsent_export.kept import kept_by_depth, kept_rows
from xsent_train.checkpoint import CheckpointEncoder
from xsent_train.derive import checkpoint_from_bundle


def ten_nearest(queries: np.ndarray, passages: np.ndarray) -> list[set[int]]:
    return [{*row} for row in np.argsort(-(queries @ passages.T), axis=1, kind="stable")[:, :10].tolist()]


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
def test_shares_by_hand(deep_bundle: Path, tmp_path: Path) -> None:
    folder = write_toy_tests(tmp_path) / "passages"
    exact = checkpoint_from_bundle(deep_bundle)
    found = list(kept_by_depth(deep_bundle, exact, folder, ["en", "fr", "de"]))

    def sides(encoder: SupportsEncode, language: str) -> list[np.ndarray]:
        return [side.vectors for side in read_test(encoder, folder, language)]

    for layers, shares in found:
        kept: dict[str, list[float]] = {"bundle": [], "binary": []}
        for language in ("en", "fr", "de"):
            own = sides(SentenceEncoder(deep_bundle, layers=layers), language)
            signs = [unpack_signs(pack_signs(side)) for side in own]
            for form, old, new in (
                ("bundle", sides(CheckpointEncoder(exact, depth=layers), language), own),
                ("binary", own, signs),
            ):
                both = zip(ten_nearest(*old), ten_nearest(*new), strict=True)
                kept[form].append(float(np.mean([10 * len(a & b) for a, b in both])))
        for form, figures in kept.items():
            assert shares[form] == pytest.approx(np.mean(figures), abs=3)  # equal cosines in another order
            assert shares[f"{form}_worst"] == pytest.approx(min(figures), abs=5)
    [row, *_] = kept_rows(iter(found))
    assert list(row) == ["layers", "encoder", "int8 vectors", "binary vectors"] and "(" in str(row["encoder"])
