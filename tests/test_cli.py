"""The `xsent` command."""

import json
import shutil
from pathlib import Path

import pytest
from commands import Runner, assert_refused

import xsent

GROUPS = {
    "": "encode similarity info verify doctor mine score index search evaluate classify documents",
    "evaluate": "tatoeba xsr xsim sts contrasts space",
    "classify": "fit predict evaluate",
    "documents": "fit embed align",
}
COMMANDS = [[], *([*group.split(), name] for group, names in GROUPS.items() for name in names.split())]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(run: Runner, command: list[str]) -> None:
    code, out, _ = run(*command, "--help")
    assert code == 0
    assert f"Example: {' '.join(['xsent', *command])}" in " ".join(out.split())


def test_version_and_wrong_usage(run: Runner) -> None:
    code, out, _ = run("--version")
    assert (code, out) == (0, f"{xsent.__version__}\n")
    for wrong in (["encode", "--no-such-option"], ["no-such-command"], ["similarity", "only one text"]):
        assert run(*wrong)[0] == 2


def test_similarity(run: Runner, mini_bundle: Path) -> None:
    code, out, _ = run("similarity", "Anna sees.", "ANNA  sees.", "--model", mini_bundle)
    assert (code, out) == (0, "1.0000\n")
    _, out, _ = run("similarity", "Anna", "Boris", "--model", mini_bundle, "--json")
    assert -1 <= json.loads(out)["cosine"] < 1


def test_info(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    facts = json.loads(run("info", mini_bundle, "--json")[1])
    assert facts["dim"] == 32 and facts["bytes"] > 0 and "parity" in facts
    bundle = shutil.copytree(mini_bundle, tmp_path / "bundle")
    manifest = json.loads((bundle / "xsent.json").read_text())
    manifest |= {"space": "a/b", "trained": {"prefixes": [8, 16], "layers": [0]}}
    (bundle / "xsent.json").write_text(json.dumps(manifest))
    lines = [line.split(maxsplit=1) for line in run("info", bundle)[1].splitlines()]
    for line in (["fingerprint", facts["fingerprint"]], ["space", "a/b"], ["trained", "prefixes 8, 16; layers 0"]):
        assert line in lines
    facts = json.loads(run("info", bundle, "--json")[1])
    assert facts["space"] == "a/b" and facts["trained"] == {"prefixes": [8, 16], "layers": [0]}


@pytest.mark.parametrize("command", [["info"], ["verify"], ["similarity", "a", "b", "--model"]])
def test_missing_bundle_is_one_line(run: Runner, tmp_path: Path, command: list[str]) -> None:
    assert_refused(run(*command, tmp_path / "nothing"), "no such folder")
