"""The examples of docstrings print what they show, and every public name has one."""

import doctest
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from pages import blocks

import xsent
from xsent.bundle import builtin_path

SHARED = next(block.text for block in blocks("docs/reference/python.md", "python"))
NAMES = {name: getattr(xsent, name) for name in xsent.__all__ if name != "__version__"}
RUNTIME = sorted({str(value.__module__) for value in NAMES.values()} - {"typing", "xsent.errors"})
MORE = ["xsent.clean", "xsent.fingerprint", "xsent.precision"]  # whose names are on the page, too
HEAVY = {"xsent_apps.chroma", "xsent_apps.langchain", "xsent_apps.llamaindex"}  # take seconds to import
ADAPTERS = {  # and what they need
    "xsent_apps.map": "sklearn",
    "xsent_apps.server.application": "starlette",
    "xsent_apps.sklearn": "sklearn",
    "xsent_apps.chroma": "chromadb",
    "xsent_apps.langchain": "langchain_core",
    "xsent_apps.llamaindex": "llama_index.core",
}
RESULTS = {"ClusterName", "Clusters", "Hit"}  # their makers have the examples


def run(module: str) -> int:
    """The number of examples of a module; fails where one prints something else."""
    names = {"np": np, "builtin_path": builtin_path, **NAMES}
    exec(SHARED, names)
    imported = import_module(module)
    runner, printed = doctest.DocTestRunner(), list[str]()
    for test in doctest.DocTestFinder(exclude_empty=True).find(imported, globs={**names, **vars(imported)}):
        runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)
    return runner.tries


@pytest.mark.parametrize("module", [*RUNTIME, *MORE])
def test_the_examples_of_the_runtime(module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if module.startswith("xsent.mining"):
        pytest.importorskip("sklearn")
    monkeypatch.chdir(tmp_path)
    assert run(module)


@pytest.mark.parametrize(
    "module", [pytest.param(name, marks=[pytest.mark.slow] if name in HEAVY else []) for name in ADAPTERS]
)
def test_the_examples_of_the_adapters(module: str) -> None:
    pytest.importorskip(ADAPTERS[module])
    assert run(module)


def test_every_public_name_has_an_example() -> None:
    def is_error(value: object) -> bool:
        return isinstance(value, type) and issubclass(value, BaseException)

    wanted = {name for name, value in NAMES.items() if value.__module__ in RUNTIME and not is_error(value)}
    assert {name for name in wanted if ">>>" not in (NAMES[name].__doc__ or "")} == RESULTS
