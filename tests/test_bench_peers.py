"""Ours beside other systems."""

import re
from pathlib import Path

import numpy as np
import pytest
from sentencepiece import SentencePieceProcessor
from typer.testing import CliRunner

from xsent.bench.cli import app
from xsent.bench.peers import race
from xsent.bench.peers.peak import operations
from xsent.bench.peers.race import Result, rows, run_child
from xsent.bench.peers.report import ENTRIES, _stream, measure_peers
from xsent.bench.peers.systems import SYSTEMS
from xsent.bench.peers.texts import LENGTHS, mixed, sentences
from xsent.bench.peers.vocabulary import fill_vocabulary
from xsent.bundle import TOKENIZER
from xsent.errors import DataError


def turn(rate: float, ms: float, mib: float = 10.0) -> dict[str, float]:
    return {"sentences_per_second": rate, "latency_ms": ms, "first_ms": ms, "first_mib": mib, "peak_mib": mib}


def test_ratios_are_medians_of_turns() -> None:
    ours = Result([turn(100, 1), turn(200, 2), turn(300, 3)])
    theirs = Result([turn(10, 5), turn(50, 8), turn(30, 6)])
    table = rows({"xsent": ours, "bare": Result([turn(1, 1, 5.0)]), "other": theirs, "gone": Result([], "not here")})
    assert table[0] == ["xsent", "200", "2.00", "2", "10", "10"]
    assert table[1] == ["bare", "", "", "1 (1.00 ×)", "5 (0.50 ×)", "5 (0.50 ×)"]
    # 100 / 10, 200 / 50, 300 / 30 sentences a second; 5 / 1, 8 / 2, 6 / 3 ms.
    assert table[2][1:3] == ["30 (10.00 ×)", "6.00 (4.00 ×)"]
    assert table[3] == ["gone", "", "", "", "", ""]


def test_a_system_runs_in_a_process_of_its_own(mini_bundle: Path) -> None:
    facts, points = run_child("xsent", mini_bundle, number=20, stream=3000)
    assert set(facts) >= {"first_ms", "first_mib", "latency_ms", "sentences_per_second", "peak_mib"}
    assert [point["after"] for point in points] == [1000, 2000, 3000]
    assert 0 < facts["first_mib"] <= facts["peak_mib"]


def test_a_system_that_fails_is_left_out(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^xsent: .*BundleError.*nowhere: no such folder"):
        run_child("xsent", tmp_path / "nowhere", number=20)
    results = race.race({"xsent": mini_bundle, "onnxruntime": tmp_path}, turns=2, number=20)
    assert len(results["xsent"].turns) == 2
    assert not results["onnxruntime"].turns and "onnxruntime: " in results["onnxruntime"].failure


def test_a_system_that_is_not_there_is_named(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no system abacus; there are xsent, bare, "):
        measure_peers(mini_bundle, tmp_path, only=["bare", "abacus"], turns=1, number=20, stream=0, command="")
    assert not any("," in name for name in ENTRIES)  # --only takes them with commas between


def test_the_slope_is_of_the_second_half() -> None:
    points = [{"after": 1000.0 * i, "mib": 50.0 + max(0, 5 - i)} for i in range(1, 11)]
    assert "+0.00 MiB per 10,000 over the second half" in _stream("xsent", points)
    rising = [{"after": 1000.0 * i, "mib": float(i)} for i in range(1, 11)]
    assert "MiB 1.0 after 1,000, 6.0 after 6,000, 10.0 after 10,000; +10.00 MiB" in _stream("xsent", rising)


def test_arithmetic_by_hand(mini_bundle: Path) -> None:
    # Two layers of 32 x (96 + 32 + 64) + 64 x 32 weights, and attention of 5 x 5 x 32, twice.
    assert operations(mini_bundle, 5) == 2 * 5 * 2 * (32 * 96 + 32 * 32 + 32 * 64 + 64 * 32) + 2 * 4 * 25 * 32


def test_texts_are_many_and_different() -> None:
    assert len(set(sentences(5000))) == 5000
    lengths = [len(text) for text in mixed(500)]
    assert min(lengths) < 30 and max(lengths) > 250
    assert set(SYSTEMS) > {"xsent", "bare", "onnxruntime", "fastembed", "sentence-transformers"}


def test_a_filled_vocabulary_is_larger_and_cuts_alike(mini_bundle: Path, tmp_path: Path) -> None:
    ours = SentencePieceProcessor(model_file=str(mini_bundle / TOKENIZER))
    fill_vocabulary(mini_bundle / TOKENIZER, 30_000, tmp_path / "filled.model")
    filled = SentencePieceProcessor(model_file=str(tmp_path / "filled.model"))
    assert len(filled) == 30_000 > len(ours)
    texts = sentences(100)
    assert filled.encode(texts) == ours.encode(texts)


def test_sentences_are_as_long_as_real_ones() -> None:
    words = [len(text.split()) - 1 for text in sentences(400)]
    assert sorted(words[:20]) == sorted(LENGTHS)
    assert np.corrcoef(words[:-1], words[1:])[0, 1] < 0.1  # no system gets them sorted


def test_the_command_prints_the_comparison(mini_bundle: Path, tmp_path: Path) -> None:
    options = ["--out", str(tmp_path), "--only", "bare", "--turns", "1", "--sentences", "20", "--stream", "1000"]
    result = CliRunner().invoke(app, ["peers", str(mini_bundle), *options])
    assert result.exit_code == 0, result.output
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in result.stdout.splitlines() if line[:1] == "|"]
    head, _, ours, bare = cells
    assert head[0] == "system" and len(head) == 6
    assert ours[0] == "xsent" and all(float(cell.replace(",", "")) > 0 for cell in ours[1:])
    assert bare[:3] == ["bare", "", ""] and all(cell.endswith("×)") for cell in bare[3:])
    assert "xsent, sentences of 5 to 100 tokens: MiB " in result.stdout
    assert re.search(r"A sentence of 32 tokens reaches \d+% of the \d+ GOP/s", result.stdout)
