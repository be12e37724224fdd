"""The `xsent` command: its helps, its small commands and `xsent evaluate`."""

import json
import lzma
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import Runner, edit_json

import xsent

BENCH = Path(__file__).parents[2] / "bench"
NAMES = "Anna\tAnna.\nBoris\tBoris.\n"
NOTES = "The cat sleeps.\tLe chat dort.\nPay the rent.\tPaie le loyer.\n"
ROWS = "Q\ts\tAnna\tAnna.\nC\ts\tBoris\tBoris.\n"
SCORED = "The cat sleeps.,A cat is sleeping.,5\nThe cat sleeps.,Pay the rent.,0\n"
GROUPS = {
    "": "encode similarity info verify doctor mine score index search evaluate classify documents",
    "evaluate": "tatoeba xsr xsim sts contrasts words space",
    "classify": "fit predict zero-shot evaluate",
    "documents": "fit embed align",
}
COMMANDS = [[], *([*group.split(), name] for group, names in GROUPS.items() for name in names.split())]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(run: Runner, command: list[str]) -> None:
    code, out, _ = run(*command, "-h")
    assert code == 0
    assert all(len(line) <= 80 and not line.endswith("...") for line in out.splitlines()[1:])
    assert f"Example: {' '.join(['xsent', *command])}" in " ".join(out.split())


def test_completion_version_and_wrong_usage(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("--version")[:2] == (0, f"{xsent.__version__}\n")
    for wrong in (["encode", "--no-such-option"], ["no-such-command"], ["similarity", "only one text"]):
        assert run(*wrong)[0] == 2
    for wrong, meant in {"note": "notes", "clasify": "classify"}.items():  # of the apps, and our own
        assert f"No such command '{wrong}'. Did you mean '{meant}'?" in run(wrong)[2]
    for name, value in {"_XSENT_COMPLETE": "complete_bash", "COMP_WORDS": "xsent e", "COMP_CWORD": "1"}.items():
        monkeypatch.setenv(name, value)
    assert run() == (0, "encode\nevaluate\n", "")


def test_similarity_and_info(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    assert run("similarity", "Anna sees.", "ANNA  sees.", "--model", mini_bundle)[:2] == (0, "1.0000\n")
    assert -1 <= json.loads(run("similarity", "Anna", "Boris", "--model", mini_bundle, "--json")[1])["cosine"] < 1
    facts = json.loads(run("info", mini_bundle, "--json")[1])
    assert facts["dim"] == 32 and facts["bytes"] > 0 and "parity" in facts
    bundle, trained = shutil.copytree(mini_bundle, tmp_path / "bundle"), {"prefixes": [8, 16], "layers": [0]}
    edit_json(bundle / "xsent.json", name="\x1b[31mred", space="a/b", trained=trained)
    lines = [" ".join(line.split()) for line in run("info", bundle)[1].splitlines()]
    name, fingerprint = r"name \x1b[31mred", f"fingerprint {facts['fingerprint']}"
    assert {name, fingerprint, "space a/b", "trained prefixes 8, 16; layers 0"} < {*lines}
    facts = json.loads(run("info", bundle, "--json")[1])
    assert facts["space"] == "a/b" and facts["trained"] == trained
    edit_json(bundle / "xsent.json", parity={"languages": [1]})
    assert "xsent.json: damaged" in run("info", bundle)[2]


@pytest.mark.parametrize(
    ("task", "files", "options", "printed"),
    [
        ("tatoeba", {"en-fr.tsv": NAMES}, ["--languages", "fr, "], r"mean +100.0 +100.0"),
        ("tatoeba", {"en-fr.tsv": NOTES}, ["--precision", "binary", "--truncate-dim", 128], "100.0"),
        ("xsr", {"en-de.tsv": ROWS, "distractors.de.txt.xz": lzma.compress(b"Clara\n")}, [], "only the rows' English"),
        ("sts", {"en-test.csv": SCORED}, [], r"language +pairs +spearman[^$]*1.0000[^$]*Spearman's correlation"),
        ("contrasts", {"": BENCH / "contrasts.tsv"}, ["--languages", "fr"], r"kind +sentences +fr +mean\norder +25 "),
        (
            "words",
            {"": BENCH / "words.tsv"},
            ["--languages", "fr"],
            r"kind +words +fr +mean\nform +11 [^$]*ties do not",
        ),
    ],
)
def test_table_or_json(
    run: Runner, tmp_path: Path, task: str, files: dict[str, Any], options: list[object], printed: str
) -> None:
    for name, content in files.items():
        if name:
            (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    command = ("evaluate", task, files.get("", tmp_path), *options)
    code, out, err = run(*command)
    assert (code, err) == (0, "")
    assert re.search(printed, out)
    rows = [json.loads(line) for line in run(*command, "--json")[1].splitlines()]
    assert {(row["task"], row["fingerprint"]) for row in rows} == {(task, xsent.SentenceEncoder().fingerprint)}
    assert rows[-1].get("language", rows[-1].get("kind")) == "mean"
