"""Other people's tools in tests: imported by the process that runs the test, not by each that collects it."""

from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

import pytest


class Lazy:
    """A module, or by `module:name` something in it, imported when it is used; some take seconds."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_"):  # pytest asks everything in a module whether it is a fixture
            raise AttributeError(name)
        return getattr(resolve_name(self._name), name)

    def __call__(self, *arguments: object, **options: object) -> Any:  # noqa: ANN401
        """Call the function or make an object of the class."""
        return resolve_name(self._name)(*arguments, **options)


def needs(*modules: str) -> pytest.MarkDecorator:
    """Skip tests where a module is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {' and '.join(missing)}")
