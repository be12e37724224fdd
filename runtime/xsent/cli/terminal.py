"""The terminal side of a command: how it starts and ends, and its results.

`main` is the entry point of all four programs. It imports their command lines itself, so that Ctrl-C is one line of
error also while they are imported.
"""

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path

from xsent.errors import XsentError

FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, what shells expect after Ctrl-C

_LONG = 1000  # characters shown of the beginning of a long error, and of its end

WriteRow = Callable[[Sequence[object]], None]

_BREAKS = re.compile(r"\s*\n\s*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # characters that a terminal would execute


def main(module: str = "xsent.cli.main") -> None:
    """Import the module of a command line and run its `main`; errors, Ctrl-C and warnings are one line each."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # it was closed, and a file would get its number
            setattr(sys, name, open(os.devnull, mode))
    with one_line_errors(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        import_module(module).main()


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its place in the source."""
    sys.stderr.write(f"Warning: {plain(message)}\n")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn expected failures into one line and an exit code; also a decorator for commands.

    Our own errors, wrong arguments and errors of the system exit with 1, Ctrl-C with 130, after its notes, which say
    what of the work is kept. Anything else is a bug and keeps its traceback.
    """
    try:
        yield
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        sys.stderr.writelines(f"{plain(note)}\n" for note in getattr(error, "__notes__", ()))
        _exit("interrupted", INTERRUPTED)
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_stdout()
        sys.exit(FAILED)
    except OSError as error:
        _drop_stdout()
        reason = error.strerror or str(error)
        _exit(f"{error.filename}: {reason}" if error.filename else reason, FAILED)
    except MemoryError:
        _exit("there is not enough memory for this; close other programs, or give it less at once", FAILED)
    except (XsentError, ValueError, TypeError) as error:
        _exit(str(error), FAILED)


def plain(text: object) -> str:
    """Text, possibly from a file or a name, on one line; characters that do not print are escaped."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def _exit(message: str, code: int) -> None:
    line = plain(message)
    sys.stderr.write(f"Error: {line if len(line) <= _LONG else f'{line[:_LONG]} … {line[-_LONG:]}'}\n")
    sys.exit(code)


def _drop_stdout() -> None:
    """Drop the buffer of standard output if it cannot be written; otherwise Python would report it at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_result(result: Mapping[str, object], text: str, *, as_json: bool) -> None:
    """Print the result of a command: as a line of JSON, or as text for people."""
    if as_json:
        print_json(result)
    else:
        sys.stdout.write(f"{text}\n")


def print_row(*fields: str) -> None:
    """Print fields with tabs between; line breaks become spaces. On a terminal, control characters are escaped."""
    fields = tuple(_BREAKS.sub(" ", field) for field in fields)
    if sys.stdout.isatty():
        fields = tuple(_CONTROL.sub(lambda found: ascii(found[0])[1:-1], field) for field in fields)
    sys.stdout.write("\t".join(fields) + "\n")


def row_output(
    path: Path | None, columns: Mapping[str, type], *, as_json: bool = False, force: bool = False
) -> AbstractContextManager[WriteRow]:
    """Where the rows of a result go: entered, it yields a function that prints or writes the fields of one.

    Ask for it before the work: what cannot be written is refused here.

    Args:
        path: A table to write, see `xsent.files.tables.table_file`; None prints the fields with tabs between.
        columns: The names and types of the fields.
        as_json: Print objects instead.
        force: Replace an existing table.
    """
    from xsent.files.tables import check_table, to_fields

    if path is None:
        return nullcontext(lambda row: print_json(to_fields(columns, row)) if as_json else print_row(*map(_shown, row)))
    if as_json:
        raise ValueError(f"--json prints and --output {path} writes: give one of them; a .jsonl file is JSON too")
    check_table(path, force=force)
    return _written_rows(path, columns, force)


@contextmanager
def _written_rows(path: Path, columns: Mapping[str, type], force: bool) -> Iterator[WriteRow]:
    from xsent.files.tables import table_file

    count = 0
    with table_file(path, columns, force=force) as write:

        def write_row(row: Sequence[object]) -> None:
            nonlocal count
            write(row)
            count += 1

        yield write_row
    sys.stderr.write(f"{path}: {count:,} rows\n")


def _shown(value: object) -> str:
    """A field as people read it; one that is missing is empty."""
    if value is None:
        return ""
    return f"{value:.4f}" if isinstance(value, float) else str(value)


def print_json(content: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(json.dumps(content, ensure_ascii=False) + "\n")


def format_facts(facts: Mapping[str, object]) -> str:
    """Names and values, a line each, aligned."""
    width = max(map(len, facts))
    lines = []
    for name, value in facts.items():
        number = f"{value:,}" if isinstance(value, int) else f"{value:.2g}" if isinstance(value, float) else None
        lines.append(f"{name:<{width}}  {number or plain(value)}")
    return "\n".join(lines)


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows, from column to value, as an aligned table with a heading; numbers are right-aligned, missing values empty.

    Floats have one decimal, or four in a column whose values are between -1 and 1.
    """
    names = dict.fromkeys(name for row in rows for name in row)  # in order of appearance
    columns = [_column(name, [row.get(name, "") for row in rows]) for name in names]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, values: Sequence[object]) -> list[str]:
    """The heading and the values, all of one width."""
    decimals = 4 if all(abs(value) <= 1 for value in values if isinstance(value, float)) else 1
    cells = [plain(name)]
    for value in values:
        if isinstance(value, float):
            cells.append(f"{value:.{decimals}f}")
        else:
            cells.append(f"{value:,}" if isinstance(value, int) else plain(value))
    side = ">" if any(isinstance(value, int | float) for value in values) else "<"
    return [f"{cell:{side}{max(map(len, cells))}}" for cell in cells]
