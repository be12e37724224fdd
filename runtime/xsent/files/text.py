"""Text read one line at a time: plain, `.gz`, `.xz` or standard input."""

import gzip
import hashlib
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, cast

from xsent.errors import DataError, warn
from xsent.files.encodings import decode_iso2022_jp, is_iso2022_jp, not_utf8, old_encoding, wide_encoding

_BOM = b"\xef\xbb\xbf"
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"  # the first bytes of compressed files
_BINARY = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"%PDF-")  # those of .xlsx, .docx and archives, of .xls, and of PDFs
_MARK = 4  # bytes that show whether a text is UTF-16 or UTF-32
_SAMPLE = 1 << 16  # bytes that decide what a text is in that is not UTF-8
LONGEST = 1 << 26  # most bytes of a line: a small compressed file may contain a line that fills the memory

# Errors from reading damaged compressed files, besides OSError.
_DAMAGED = (EOFError, MemoryError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


def read_lines(source: str | Path) -> Iterator[str]:
    """Read text as a stream of lines without their ends. Raises DataError with the file and the line.

    The source is a file, plain or compressed by gzip or xz; `-` is standard input. It is in UTF-8, in UTF-16 or UTF-32,
    or, with a warning, in cp1252 or an old Russian or Japanese encoding. Only a line feed ends a line (a carriage
    return before it is dropped), so that rare separators inside a sentence do not shift the lines after it. In a file
    without line feeds, carriage returns do.
    """
    return (line.removesuffix("\n").removesuffix("\r") for line in decoded_lines(source))


def decoded_lines(source: str | Path) -> Iterator[str]:
    """Like `read_lines`, but with the line ends."""
    lines = raw_lines(source)
    ascii_so_far, is_japanese = True, False
    for number, line in enumerate(lines, 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            sample = [line, *_up_to(_SAMPLE, lines)] if ascii_so_far else []
            codec = old_encoding(b"".join(sample))
            if any(b"\0" in one for one in sample):
                raise _not_text(source) from error
            if not codec:
                raise _undecodable(source, number, line) from error
            warn(f"{source_name(source)}: read as {codec}, because it is not UTF-8")
            yield from _old_lines(source, number, chain(sample, lines), codec)
            return
        if is_iso2022_jp(line):
            if not is_japanese:
                warn(f"{source_name(source)}: read as ISO-2022-JP, because of its escape sequences")
            is_japanese, text = True, decode_iso2022_jp(line)
        ascii_so_far = ascii_so_far and line.isascii()
        yield text


def _old_lines(source: str | Path, first: int, lines: Iterable[bytes], codec: str) -> Iterator[str]:
    for number, line in enumerate(lines, first):
        try:
            yield line.decode(codec)
        except UnicodeDecodeError as error:
            raise _undecodable(source, number, line) from error


def _not_text(source: str | Path) -> DataError:
    name = source_name(source)
    return DataError(
        f"{name}: an office file, an archive, a PDF or other binary data, not text; save it as CSV or text"
    )


def _undecodable(source: str | Path, number: int, line: bytes) -> DataError:
    return DataError(f"{source_name(source)}:{number}: {not_utf8(line)}; convert the file to UTF-8")


def _up_to(size: int, lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines until they have this many bytes."""
    for line in lines:
        yield line
        size -= len(line)
        if size <= 0:
            return


def read_fields(source: str | Path, count: int, layout: str) -> Iterator[list[str]]:
    """Read tab-separated lines of `count` fields, see `read_lines`; `layout` names the fields in messages."""
    name = source_name(source)
    for number, line in enumerate(read_lines(source), 1):
        fields = line.split("\t")
        if len(fields) != count:
            raise DataError(f"{name}:{number}: {len(fields)} fields, expected {count} separated by tabs: {layout}")
        yield fields


def raw_lines(source: str | Path) -> Iterator[bytes]:
    """The lines of a source as bytes with their ends, see `read_lines`, without a byte-order mark.

    UTF-16 and UTF-32 become UTF-8.
    """
    name = source_name(source)
    try:
        with _opened(source) as file:
            for number, line in enumerate(_byte_lines(file), 1):
                if number == 1 and line.startswith(_BINARY):
                    raise _not_text(source)
                if len(line) > LONGEST:
                    raise DataError(f"{name}:{number}: over {LONGEST:,} bytes; expected lines that end in a line feed")
                line = line if number > 1 else line.removeprefix(_BOM)
                if number == 1 and not line.endswith(b"\n"):  # of Excel's "CSV (Macintosh)", which has only these
                    yield from line.splitlines(keepends=True)
                else:
                    yield line
    except UnicodeError as error:
        raise DataError(f"{name}: damaged UTF-16 or UTF-32 ({error}); save it as UTF-8") from error
    except _DAMAGED as error:
        raise DataError(
            f"{name}: damaged, or not compressed as its name suggests ({error}); compress it again"
        ) from error
    except IsADirectoryError as error:
        raise DataError(f"{name}: a folder; expected a text file, or search the folder with xsent notes") from error
    except OSError as error:
        raise DataError(f"{name}: cannot be read ({error.strerror}); expected a text file") from error


def file_state(source: str | Path) -> tuple[int, ...] | None:
    """Size, modification time and inode of a regular file; None for a pipe and for standard input."""
    if str(source) == "-":  # even if a file has this name
        return None
    try:
        found = os.stat(source)
    except OSError:  # a missing file, which reading will report
        return None
    return (found.st_size, found.st_mtime_ns, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _byte_lines(file: BinaryIO) -> Iterator[bytes]:
    """Lines of at most one byte or character more than the longest allowed one."""
    start: bytes = file.peek(_MARK)[:_MARK] if hasattr(file, "peek") else b""
    encoding = wide_encoding(start)
    if encoding is None:
        yield from iter(partial(file.readline, LONGEST + 1), b"")
        return
    text = TextIOWrapper(file, encoding, newline="\n")
    try:
        yield from map(str.encode, iter(partial(text.readline, LONGEST + 1), ""))
    finally:
        text.detach()  # leaves the file open


class LineDigest:
    """Running hash of the lines read, used to verify a resume."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, line: str) -> None:
        """Add a line."""
        self._digest.update(line.encode() + b"\n")

    @property
    def hex(self) -> str:
        """The hash of all lines in hex."""
        return self._digest.hexdigest()

    def skip(self, lines: Iterable[str], count: int, known: str, path: Path) -> Iterator[str]:
        """Skip `count` lines that an interrupted job already read. Raises DataError if their hash is not `known`."""
        source = iter(lines)
        for line in islice(source, count):
            self.add(line)
        if count and self.hex != known:
            raise DataError(
                f"{path}: the input does not begin with the {count:,} lines that were read before the interruption; "
                "resume with the same input, or start over with --force"
            )
        return source


def source_name(source: str | Path) -> str:
    """The name of a source in errors."""
    return "standard input" if str(source) == "-" else str(source)


def unpacked_name(source: str | Path) -> str:
    """The name of a file without its compression suffix."""
    return str(source).removesuffix(".gz").removesuffix(".xz")


@contextmanager
def _opened(source: str | Path) -> Iterator[BinaryIO]:
    """Open a source as bytes, decompressed if its first bytes or its name show that it is compressed."""
    path = Path(source)
    with nullcontext(sys.stdin.buffer) if str(source) == "-" else path.open("rb") as file:
        start = file.peek(len(_XZ)) if isinstance(file, BufferedReader) else b""
        if path.suffix == ".gz" or start.startswith(_GZIP):
            yield cast(BinaryIO, gzip.GzipFile(fileobj=file))
        elif path.suffix == ".xz" or start.startswith(_XZ):
            yield cast(BinaryIO, lzma.LZMAFile(file))
        else:
            yield file
