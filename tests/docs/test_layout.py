"""Rules that a machine can check: the rooms, the direction of imports, and the figures that pages quote."""

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {  # folder and package
    "runtime": "xsent",
    "train": "xsent_train",
    "export": "xsent_export",
    "bench": "xsent_bench",
    "apps": "xsent_apps",
}
MAY_IMPORT = {
    "xsent": set(),
    "xsent_train": {"xsent"},
    "xsent_export": {"xsent", "xsent_train"},
    "xsent_bench": {"xsent", "xsent_train", "xsent_export"},
    "xsent_apps": {"xsent"},
}
# From the train room, export needs models and teachers and what they can be read from, nothing else.
EXPORT_FROM_TRAIN = ("model", "tokens", "checkpoint", "from_bundle", "data.vocabulary", "teacher")
# Apps stand on what `import xsent` offers, and on what all commands share.
APPS_FROM_RUNTIME = {"xsent", "xsent.errors", "xsent.files.atomic", "xsent.cli.terminal", "xsent.cli.options"}
RUNTIME_THIRD_PARTY = {"numpy", "onnxruntime", "sentencepiece", "typer"}
# One module each may use an optional package.
OPTIONAL = {
    "xsent.backends.openvino": {"openvino"},
    "xsent.search.graph": {"usearch"},
    "xsent.documents.encoder": {"sentencex"},
}
FORBIDDEN = {"pickle", "dill", "joblib", "cloudpickle"}
NETWORK = {"socket", "urllib", "http", "ftplib", "ssl", "requests", "httpx"}


def name_of(path: Path) -> str:
    """The dotted name of the module in a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts[1:]).removesuffix(".__init__")


MODULES = {name_of(path): path for room, package in ROOMS.items() for path in (ROOT / room / package).rglob("*.py")}


def imports(path: Path) -> set[str]:
    """Dotted names of the modules that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            modules = {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys()
            found |= modules or {node.module}
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_point_towards_the_runtime_and_no_pickle_is_loaded(module: str) -> None:
    path = MODULES[module]
    source = path.read_text(encoding="utf-8")
    assert "allow_pickle=True" not in source and "torch.load" not in source
    room = module.split(".")[0]
    modules = imports(path)
    for other in modules & MODULES.keys():
        package, _, rest = other.partition(".")
        assert package in {room} | MAY_IMPORT[room], f"{module} imports {other}"
        if (room, package) == ("xsent_export", "xsent_train"):
            assert rest.startswith(EXPORT_FROM_TRAIN), other
        if (room, package) == ("xsent_apps", "xsent"):
            assert other in APPS_FROM_RUNTIME, other
    top = {name.split(".")[0] for name in modules}
    assert not top & FORBIDDEN
    if room == "xsent":
        allowed = RUNTIME_THIRD_PARTY | OPTIONAL.get(module, set())
        assert top - set(sys.stdlib_module_names) - {"xsent"} <= allowed
        assert not top & NETWORK


def test_no_modules_import_each_other_in_a_circle() -> None:
    faces = {name for name, path in MODULES.items() if path.name == "__init__.py"}  # they only hand names on
    graph = {name: imports(path) & MODULES.keys() - faces for name, path in MODULES.items() if name not in faces}
    TopologicalSorter(graph).prepare()  # raises a CycleError that names the circle


def table_by_layers(page: str, heading: str) -> list[list[str]]:
    """Cells of the rows of the first table below a heading."""
    section = (ROOT / page).read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


@pytest.mark.parametrize(("page", "heading"), [("README.md", "Quality and speed"), ("docs/choosing.md", "Layers")])
def test_figures_by_layers_stand_in_the_report(page: str, heading: str) -> None:
    report = "docs/results/bench/report.md"
    known = {layers: {layers, *costs} for layers, *costs in table_by_layers(report, "In short")}
    for _, layers, _, _, *figures in table_by_layers(report, "Quality and cost"):
        known[layers] |= set(figures[:4])  # the costs beside them are of another turn
    rows = table_by_layers(page, heading)
    assert [row[0] for row in rows] == ["6", "3", "2", "1", "0"]
    for row in rows:
        assert set(row) <= known[row[0]]
