"""The house rules that a machine can see: rooms, which way imports point, and figures that a page quotes."""

import ast
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = {
    room: "xsent" if room == "runtime" else f"xsent.{room}" for room in ("runtime", "train", "export", "bench", "apps")
}
MAY_IMPORT = {
    "runtime": set(),
    "train": {"runtime"},
    "export": {"runtime", "train"},
    "bench": {"runtime", "train", "export"},
    "apps": {"runtime"},
}
# From the train room, export needs models and teachers and what they can be read from, nothing else.
EXPORT_FROM_TRAIN = {
    *("xsent.train.model", "xsent.train.tokens", "xsent.train.data.vocabulary"),
    *("xsent.train.checkpoint", "xsent.train.bundles"),
    *("xsent.train.teacher", "xsent.train.transfer", "xsent.train.sentence_transformer"),
}
# Apps stand on what `import xsent` offers, and on what all commands share.
APPS_FROM_RUNTIME = {"xsent", "xsent.errors", "xsent.files", "xsent.terminal", "xsent.commands.options"}
RUNTIME_THIRD_PARTY = {"numpy", "onnxruntime", "sentencepiece", "typer"}
# One module each may use an optional package.
OPTIONAL = {
    "openvino_backend": {"openvino"},
    "search/graph": {"usearch"},
    "documents/segments": {"sentencex"},
}
FORBIDDEN = {"pickle", "dill", "joblib", "cloudpickle"}
NETWORK = {"socket", "urllib", "http", "ftplib", "ssl", "requests", "httpx"}


def imports(source: str) -> set[str]:
    """Dotted names of the modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            found.add(node.module or "")
    return found


def room_of(module: str) -> str | None:
    """The room that one of our modules lives in."""
    names = [room for room, package in ROOMS.items() if (module + ".").startswith(package + ".")]
    return max(names, key=lambda room: len(ROOMS[room]), default=None)


FILES = [(room, path) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize(("room", "path"), FILES, ids=[str(path.relative_to(ROOT)) for _, path in FILES])
def test_imports_point_towards_the_runtime_and_no_pickle_is_loaded(room: str, path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    assert "allow_pickle=True" not in source and "torch.load" not in source
    modules = imports(source)
    for module in modules:
        other = room_of(module)
        assert other in {None, room} | MAY_IMPORT[room], f"{path.name} imports {module}"
        if room == "export" and other == "train":
            assert module in EXPORT_FROM_TRAIN
        if room == "apps" and other == "runtime":
            assert module in APPS_FROM_RUNTIME
    top = {module.split(".")[0] for module in modules}
    assert not top & FORBIDDEN
    if room == "runtime":
        allowed = RUNTIME_THIRD_PARTY | OPTIONAL.get(path.relative_to(ROOT / room).with_suffix("").as_posix(), set())
        assert top - set(sys.stdlib_module_names) - {"xsent"} <= allowed
        assert not top & NETWORK


def test_the_folders_are_the_packages() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert tool["package-dir"] == {package: room for room, package in ROOMS.items()}
    found = {".".join([ROOMS[room], *path.parent.relative_to(ROOT / room).parts]) for room, path in FILES}
    assert sorted(tool["packages"]) == sorted(found)


def test_the_runtime_has_no_module_named_like_a_room() -> None:
    assert not {path.stem for path in (ROOT / "runtime").glob("*.py")} & {"train", "export", "bench", "apps"}


def test_every_row_of_costs_stands_in_the_report() -> None:
    section = (ROOT / "README.md").read_text().partition("\n## What it costs\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    known = set((ROOT / "docs" / "results" / "bench" / "report.md").read_text().splitlines())
    assert len(rows) == 2 + 5 and [row for row in rows if row not in known] == []
