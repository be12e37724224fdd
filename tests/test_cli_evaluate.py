"""`xsent evaluate`."""

import json
import lzma
from pathlib import Path

import pytest
from commands import Runner, is_one_line

from xsent import SentenceEncoder


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capfd)


def test_evaluate_tatoeba(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "en-fr.tsv").write_text("Anna\tAnna.\nBoris\tBoris.\n")
    code, out, _ = run("evaluate", "tatoeba", tmp_path, "--model", mini_bundle)
    assert code == 0
    assert "mean" in out
    _, out, _ = run("evaluate", "tatoeba", tmp_path, "--model", mini_bundle, "--languages", "fr, ", "--json")
    report = json.loads(out)
    assert report["task"] == "tatoeba"
    assert [row["language"] for row in report["rows"]] == ["fr", "mean"]
    assert report["fingerprint"] == SentenceEncoder(mini_bundle).fingerprint


def test_evaluate_xsr(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "en-de.tsv").write_text("Q\ts\tAnna\tAnna.\nC\ts\tBoris\tBoris.\n")
    (tmp_path / "distractors.de.txt.xz").write_bytes(lzma.compress(b"Clara\nDavid\n"))
    code, out, _ = run("evaluate", "xsr", tmp_path, "--model", mini_bundle, "--languages", "de", "--json")
    assert code == 0
    assert json.loads(out)["rows"][0]["en_xx_candidates"] == 4


def test_evaluate_without_data(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    code, _, err = run("evaluate", "tatoeba", tmp_path, "--model", mini_bundle, "--languages", "fr")
    assert code == 1
    assert is_one_line(err)
    assert "en-fr.tsv" in err


def test_evaluate_space(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "en-fr.tsv").write_text("Anna\tAnna.\nBoris\tBoris.\n")
    command = ("evaluate", "space", tmp_path, "--model", mini_bundle, "--english-by", mini_bundle)
    code, out, _ = run(*command)
    assert code == 0
    assert "cosine_across" in out and "English encoded by the other model" in out
    report = json.loads(run(*command, "--json")[1])
    assert report["english_by"] == str(mini_bundle)
    assert report["rows"][0]["cosine_english"] == pytest.approx(1)
    code, _, err = run(*command[:-1], tmp_path / "nowhere")
    assert (code, is_one_line(err)) == (1, True)
    assert "nowhere: no such folder" in err
