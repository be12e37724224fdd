"""Errors that a caller can act on; wrong arguments raise `ValueError` and `TypeError`."""

import operator
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


class XsentError(Exception):
    """Base of every error that xsent raises on purpose; its text is one line for people."""


class BundleError(XsentError):
    """A bundle is missing, damaged or of an unknown version; the text names the path."""


class FingerprintError(XsentError):
    """Vectors or heads were made by another encoder; the text names both fingerprints."""


class BackendError(XsentError):
    """The backend asked for is not available; the text says which are."""


class DataError(XsentError):
    """Input that cannot be read; the text names file and line."""


class ParityError(XsentError):
    """An exported encoder differs too much from the trained one; the text has the measured numbers."""


class MissingExtraError(XsentError, ImportError):
    """An optional dependency is missing; the text has the pip line that installs it."""


def whole_number(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """An argument that must be a whole number. Raises TypeError or ValueError with its name and what is expected."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r:.80} must be a whole number") from None
    if number < least or (most is not None and number > most):
        expected = f"be at least {least}" if most is None else f"lie between {least} and {most}"
        raise ValueError(f"{name} = {number} must {expected}")
    return number


def check_choice(name: str, value: str, offered: Sequence[str]) -> None:
    """Raises ValueError if an argument is not one of those offered."""
    if not isinstance(value, str) or value not in offered:
        raise ValueError(f"{name} = {value!r:.80} must be one of {', '.join(offered)}")


def in_one_line(error: Exception) -> str:
    """The message of a library's error in one line, or its type if it has none."""
    return " ".join(str(error).split()) or type(error).__name__


@contextmanager
def require_extra(extra: str) -> Iterator[None]:
    """Around imports of an extra's packages: turns a missing package into a MissingExtraError."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{error.name} is not installed; pip install 'xsent[{extra}]'") from error
