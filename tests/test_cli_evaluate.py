"""`xsent evaluate`."""

import json
import lzma
import re
from pathlib import Path
from typing import Any

import pytest
from commands import Runner, assert_refused

from xsent.encoder import SentenceEncoder

CONTRASTS = Path(__file__).parent.parent / "bench" / "contrasts.tsv"
NAMES = "Anna\tAnna.\nBoris\tBoris.\n"
NOTES = "The cat sleeps.\tLe chat dort.\nPay the rent.\tPaie le loyer.\n"
ROWS = "Q\ts\tAnna\tAnna.\nC\ts\tBoris\tBoris.\n"
SCORED = "The cat sleeps.,A cat is sleeping.,5\nThe cat sleeps.,Pay the rent.,0\n"


@pytest.mark.parametrize(
    ("task", "files", "options", "printed"),
    [
        ("tatoeba", {"en-fr.tsv": NAMES}, ["--languages", "fr, "], r"mean +100.0 +100.0"),
        ("tatoeba", {"en-fr.tsv": NOTES}, ["--precision", "binary", "--truncate-dim", 128], "100.0"),
        ("xsr", {"en-de.tsv": ROWS, "distractors.de.txt.xz": lzma.compress(b"Clara\n")}, [], "only the rows' English"),
        ("sts", {"en-test.csv": SCORED}, [], r"language +pairs +spearman[^$]*1.0000[^$]*Spearman's correlation"),
        (
            "contrasts",
            {"": CONTRASTS},
            ["--languages", "fr,de"],
            r"kind +sentences +de +fr +mean\norder +50 [^$]*nearer",
        ),
    ],
)
def test_the_command_prints_a_table_or_json(
    run: Runner, tmp_path: Path, task: str, files: dict[str, Any], options: list[object], printed: str
) -> None:
    for name, content in files.items():
        if name:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ("evaluate", task, files.get("", tmp_path), *options)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert re.search(printed, out)
    report = json.loads(run(*command, "--json")[1])
    assert (report["task"], report["fingerprint"]) == (task, SentenceEncoder().fingerprint)
    assert report["rows"][-1].get("language", report["rows"][-1].get("kind")) == "mean"


def test_the_command_of_another_models_space(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "en-fr.tsv").write_text(NAMES)
    command = ("evaluate", "space", tmp_path, "--model", mini_bundle, "--english-by", mini_bundle)
    code, out, _ = run(*command)
    assert code == 0 and "cosine_across" in out and "English encoded by the other model" in out
    report = json.loads(run(*command, "--json")[1])
    assert report["english_by"] == str(mini_bundle)
    assert report["rows"][0]["cosine_english"] == pytest.approx(1)
    assert_refused(run(*command[:-1], tmp_path / "nowhere"), "nowhere: no such folder")


def test_what_the_command_cannot_measure(run: Runner, tmp_path: Path) -> None:
    assert_refused(run("evaluate", "tatoeba", tmp_path, "--languages", "fr"), "en-fr.tsv")
    assert_refused(run("evaluate", "tatoeba", tmp_path, "--languages", ","), "names none; expected codes")
    options = ["--precision", "binary", "--truncate-dim", 100]  # no whole number of bytes
    (tmp_path / "en-fr.tsv").write_text(NAMES)
    assert_refused(run("evaluate", "tatoeba", tmp_path, *options), "must be a multiple of 8")
