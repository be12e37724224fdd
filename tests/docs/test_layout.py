"""Rules that a machine can check: the rooms and the direction of imports."""

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path

from pages import ROOT

ROOMS = {"runtime": "xsent"} | {room: f"xsent_{room}" for room in ("train", "export", "bench", "apps")}
MAY_IMPORT = {
    "xsent": set(),
    "xsent_train": {"xsent"},
    "xsent_export": {"xsent", "xsent_train"},
    "xsent_bench": {"xsent", "xsent_train", "xsent_export"},
    "xsent_apps": {"xsent"},
}
# Modules that one room may import from another, where it may not import all.
EXPORT_FROM_TRAIN = ("model", "tokens", "checkpoint", "derive", "data.corpus", "data.vocabulary", "teacher")
APPS_FROM_RUNTIME = {
    "xsent",
    "xsent.clean",
    "xsent.errors",
    "xsent.files.atomic",
    "xsent.files.encodings",
    "xsent.files.hyphens",
    "xsent.files.tables",
    "xsent.files.text",
    "xsent.files.vectors",
    "xsent.greetings",
    "xsent.marks",
    "xsent.phrases",
    "xsent.cli.terminal",
    "xsent.cli.options",
    "xsent.cli.program",
    "xsent.cli.rows",
    "xsent.words",
}
RUNTIME_THIRD_PARTY = {"numpy", "onnxruntime", "sentencepiece", "typer"}
OPTIONAL = {  # one module each may import an optional package
    "xsent.backends.openvino": {"openvino"},
    "xsent.documents.sentences": {"sentencex"},
    "xsent.mining.clusters": {"scipy", "sklearn"},
}
FORBIDDEN = {"pickle", "dill", "joblib", "cloudpickle"}
NETWORK = {"socket", "urllib", "http", "ftplib", "ssl", "requests", "httpx"}
MODULES = {
    ".".join(path.relative_to(ROOT / room).with_suffix("").parts).removesuffix(".__init__"): path
    for room, package in ROOMS.items()
    for path in (ROOT / room / package).rglob("*.py")
}


def imports(path: Path) -> set[str]:
    """Dotted names of the modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            found |= {f"{node.module}.{alias.name}" for alias in node.names} & MODULES.keys() or {node.module}
    return found


def test_imports_point_towards_the_runtime_and_no_pickle_is_loaded() -> None:
    for module, path in MODULES.items():
        source = path.read_text(encoding="utf-8")
        assert "allow_pickle=True" not in source and "torch.load" not in source, module
        room, modules = module.split(".")[0], imports(path)
        for other in modules & MODULES.keys():
            package, _, rest = other.partition(".")
            assert package in {room} | MAY_IMPORT[room], f"{module} imports {other}"
            if (room, package) == ("xsent_export", "xsent_train"):
                assert rest.startswith(EXPORT_FROM_TRAIN), f"{module} imports {other}"
            if (room, package) == ("xsent_apps", "xsent"):
                assert other in APPS_FROM_RUNTIME, f"{module} imports {other}"
        top = {name.split(".")[0] for name in modules}
        assert not top & FORBIDDEN, module
        if room == "xsent":
            above = {other for other in modules if other.startswith("xsent.cli")}
            assert not above or module.startswith("xsent.cli"), f"{module} imports the command line"
            known = RUNTIME_THIRD_PARTY | OPTIONAL.get(module, set())
            assert top - set(sys.stdlib_module_names) - {"xsent"} <= known and not top & NETWORK, module


def test_packages_hold_no_code_but_exports() -> None:
    lazy = {"__getattr__", "__dir__"}  # names of `xsent` load when they are first used
    for module, path in MODULES.items():
        if path.name == "__init__.py":
            found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            code = {node.name for node in found if isinstance(node, ast.FunctionDef | ast.ClassDef)}
            assert code <= lazy, f"{module}: move {', '.join(code - lazy)} to a module that says what it is"


def test_no_modules_import_each_other_in_a_circle() -> None:
    packages = {name for name, path in MODULES.items() if path.name == "__init__.py"}  # they only re-export names
    graph = {name: imports(MODULES[name]) & MODULES.keys() - packages for name in MODULES.keys() - packages}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle
