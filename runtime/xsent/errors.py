"""Errors that a caller can act on; wrong arguments raise `ValueError` and `TypeError`."""

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec


class XsentError(Exception):
    """Base of these errors; the message is one line, written for people."""


class BundleError(XsentError):
    """A bundle is missing, damaged or of an unknown version; the message names the path."""


class FingerprintError(XsentError):
    """Vectors or heads come from another encoder; the message names both fingerprints."""


class BackendError(XsentError):
    """The requested backend is not available; the message lists those that are."""


class DataError(XsentError):
    """Input or data that cannot be used; the message names it, and the file and the line if there are any."""


class ParityError(XsentError):
    """An exported encoder differs too much from the trained one; the message gives the measured numbers."""


class MissingExtraError(XsentError, ImportError):
    """An optional dependency is missing; the message gives the pip command that installs it."""


def whole_number(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """Check that an argument is a whole number in a range; raises TypeError or ValueError with its name."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r:.80} must be a whole number") from None
    if number < least or (most is not None and number > most):
        expected = f"be at least {least}" if most is None else f"be between {least} and {most}"
        raise ValueError(f"{name} = {number} must {expected}")
    return number


def check_choice(name: str, value: str, offered: Sequence[str]) -> None:
    """Raise ValueError if an argument is not one of the choices."""
    if not isinstance(value, str) or value not in offered:
        raise ValueError(f"{name} = {value!r:.80} must be one of {', '.join(offered)}")


def in_one_line(error: Exception) -> str:
    """The message of a library's error in one line, or its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Turn a missing package into a MissingExtraError; wrap the imports of an extra's packages in it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; {install_advice(extra)}") from error


def find_extra(extra: str, *packages: str) -> None:
    """Raise MissingExtraError if a package of an extra is not installed; imports nothing, so it can be called first."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtraError(f"{package} is not installed; {install_advice(extra)}")


def install_advice(extra: str, options: str = "") -> str:
    """How to add an extra to the installed xsent, from a clone or from PyPI, perhaps with more options of pip."""
    return f'run pip install {options}"xsent[{extra}]"'
