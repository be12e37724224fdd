"""What the commands of `xsent-bench` share."""

import shlex
import sys

from xsent.commands.options import split_names
from xsent.errors import DataError, MissingExtraError


def numbers(text: str, *, least: int = 0) -> list[int]:
    """Numbers with commas between.

    Raises:
        DataError: One is no number or below the least, or there is none.
    """
    try:
        found = [int(name) for name in split_names(text)]
    except ValueError as error:
        raise DataError(f"{text!r}: expected whole numbers with commas between, such as 1,2,3") from error
    if found and min(found) < least:
        raise DataError(f"{text!r}: {min(found)} must be at least {least}")
    if not found:
        raise DataError("no number given; expected whole numbers with commas between, such as 1,2,3")
    return found


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["xsent-bench", *sys.argv[1:]])


def missing(error: ModuleNotFoundError) -> MissingExtraError:
    """What to install."""
    return MissingExtraError(f"{error.name} is not installed; pip install 'xsent[bench]'")
