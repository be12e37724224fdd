"""Errors that a caller can act on; wrong arguments raise `ValueError` and `TypeError`. And warnings at its line."""

import operator
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import inf
from numbers import Real

_OURS = ("xsent", "xsent_apps")  # packages whose lines mean nothing to who reads a warning


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


def real_number(name: str, value: float, least: float = -inf, most: float = inf) -> float:
    """Check that an argument is a number in a range; raises TypeError or ValueError with its name."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} = {value!r:.80} must be a number")
    if not least <= value <= most:
        raise ValueError(f"{name} = {value} must be " + ("a number" if most == inf else f"between {least} and {most}"))
    return float(value)


def counted(number: int, noun: str) -> str:
    """A number with its noun, such as "1 vector"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def listed(items: Iterable[object], last: str) -> str:
    """Items in a sentence: with "or" before the last, such as "1, 2 or 3"."""
    return f" {last} ".join(", ".join(map(str, items)).rsplit(", ", 1))


def not_text(value: object) -> str:
    """The message for a value that should be a str, with advice for missing values of pandas, NumPy and Arrow."""
    kind = type(value).__name__
    missing = kind in ("NoneType", "NAType", "NaTType") or (isinstance(value, float) and value != value)
    advice = ", a missing value; drop the row or give an empty text" if missing else ""
    if kind == "dict":
        advice = "; pass only its text, such as row['text']"
    return f"expected str, got {kind}{advice}"


def lone_surrogate(error: UnicodeEncodeError, text: str) -> str:
    """What a text has that cannot be encoded: half of a character, as in escapes of JSON and in odd file names."""
    half = error.object[error.start]
    return f"a lone surrogate ({half!r} at {text.index(half)})"


def check_choice(name: str, value: str, offered: Sequence[str]) -> None:
    """Raise ValueError if an argument is not one of the choices."""
    if not isinstance(value, str) or value not in offered:
        raise ValueError(f"{name} = {value!r:.80} must be one of {', '.join(offered)}")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside of xsent that led to this call, so that users see their own line, and each one once."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


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
