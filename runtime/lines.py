"""Text read one line at a time: plain, `.gz`, `.xz` or standard input."""

import gzip
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from xsent.errors import DataError

BOM = b"\xef\xbb\xbf"

# What reading a damaged packed file raises, beside OSError.
DAMAGED = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def read_lines(source: str | Path) -> Iterator[str]:
    """Read UTF-8 text as a stream.

    Only a line feed ends a line (and a carriage return before it is dropped): a rare separator inside a
    sentence must not shift all lines after it.

    Args:
        source: A file, packed if it ends in `.gz` or `.xz`; `-` is standard input.

    Yields:
        The lines without their ends.

    Raises:
        DataError: The file is missing or damaged, or a line is not UTF-8; names file and line.
    """
    name = "standard input" if str(source) == "-" else str(source)
    try:
        with open_binary(source) as file:
            yield from _decode(file, name)
    except DAMAGED as error:
        raise DataError(f"{name}: damaged or not packed as its name says ({error}); pack it again") from error
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}); expected a text file") from error


def steady_lines(source: str | Path) -> Iterator[str]:
    """Read UTF-8 text that must not change meanwhile, see `read_lines`.

    Raises:
        DataError: As `read_lines`; or the file was changed before its end was read.
    """
    before = file_state(source)
    yield from read_lines(source)
    if file_state(source) != before:
        raise DataError(f"{source}: changed while it was read; run it again once the file is complete")


def read_fields(source: str | Path, count: int, layout: str) -> Iterator[list[str]]:
    """Read tab-separated lines as a stream.

    Args:
        source: See `read_lines`.
        count: Fields a line.
        layout: Their names, for messages.

    Yields:
        The fields of each line.

    Raises:
        DataError: As `read_lines`; or a line has another number of fields.
    """
    for number, line in enumerate(read_lines(source), 1):
        fields = line.split("\t")
        if len(fields) != count:
            raise DataError(f"{source}:{number}: {len(fields)} fields, expected {count} with tabs between: {layout}")
        yield fields


def open_binary(source: str | Path) -> AbstractContextManager[Iterable[bytes]]:
    """Open text for reading as lines of bytes.

    Args:
        source: A file, unpacked if it ends in `.gz` or `.xz`; `-` is standard input.
    """
    if str(source) == "-":
        return nullcontext(sys.stdin.buffer)
    path = Path(source)
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    return path.open("rb")


def _decode(file: Iterable[bytes], name: str) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        if number == 1:
            line = line.removeprefix(BOM)
        try:
            yield line.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{name}:{number}: not UTF-8 (byte 0x{line[error.start]:02x} at {error.start + 1}); "
                "convert the file to UTF-8"
            ) from error


def file_state(source: str | Path) -> tuple[int, ...] | None:
    """Size of a plain file, when it was changed, and which it is; None for a pipe."""
    try:
        found = os.stat(source)
    except OSError:  # standard input; or missing, which reading it will say
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino) if stat.S_ISREG(found.st_mode) else None
