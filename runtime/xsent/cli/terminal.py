"""The terminal side of a command: how it starts and ends, its results and its tables.

`main` is the entry point of all four programs. It imports their command lines itself, so that Ctrl-C during the
import prints one line, too.
"""

import io
import logging
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module

from xsent.errors import XsentError
from xsent.files.json_lines import to_json_line
from xsent.progress import clear_line

FAILED = 1
INTERRUPTED = 130  # 128 + SIGINT, what shells expect after Ctrl-C

_LONG = 1000  # characters shown of the beginning of a long error, and of its end


def main(module: str = "xsent.cli.main") -> None:
    """Import the module of a command line and run its `main`; errors, Ctrl-C and warnings are one line each."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by the caller; the next file that opens would get its number
            setattr(sys, name, open(os.devnull, mode))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # like files, whatever the locale
    with one_line_errors(), warnings.catch_warnings():
        warnings.showwarning = _show_warning
        import_module(module).main()


def log_to_stderr(*, times: bool = True) -> None:
    """Write the log of a long command to standard error, in lines that replace a progress bar."""
    line = "%(asctime)s %(message)s" if times else "%(message)s"
    logging.basicConfig(level=logging.INFO, format=clear_line() + line, datefmt="%H:%M:%S", stream=sys.stderr)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning without its place in the source."""
    sys.stderr.write(f"Warning: {plain(message)}\n")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn expected failures into one line and an exit code; also a decorator for commands.

    Our own errors, wrong arguments, errors of the system and missing packages exit with 1, Ctrl-C with 130, after its
    notes about the work that is kept. Anything else is a bug and keeps its traceback.
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
        reason = error.strerror or str(error)
        _exit(f"{error.filename}: {reason}" if error.filename else reason, FAILED)
    except MemoryError:
        _exit("not enough memory for this; close other programs, or process less at once", FAILED)
    except (XsentError, ValueError, TypeError) as error:
        _exit(str(error), FAILED)
    except ImportError as error:
        if (error.name or "").startswith("xsent"):  # a bug; anything else is missing, or does not fit the system
            raise
        advice = "install it again; some packages have no wheels for musl (Alpine) and 32-bit systems"
        _exit(f"a package cannot be imported ({error}); {advice}", FAILED)


def plain(text: object) -> str:
    """Text, possibly from a file or a name, on one line; characters that do not print are escaped."""
    words = " ".join(str(text).split())
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in words)


def _exit(message: str, code: int) -> None:
    _drop_stdout()
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


def print_report(
    rows: Iterable[Mapping[str, object]], facts: Mapping[str, object], text: str, *, as_json: bool
) -> None:
    """Print the rows of a measurement: as a line of JSON for each, with the facts of all, or as text for people."""
    if as_json:
        for row in rows:
            print_json({**facts, **row})
    else:
        sys.stdout.write(f"{text}\n")


def print_json(content: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(f"{to_json_line(content)}\n")


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
    columns = [[row.get(name, "") for row in rows] for name in names]
    named = zip(names, columns, strict=True)
    lines = [*zip(*([plain(name), *_cells(values)] for name, values in named), strict=True)]
    right = {place for place, values in enumerate(columns) if any(isinstance(value, int | float) for value in values)}
    return align_cells(lines, right)


def _cells(values: Sequence[object]) -> list[str]:
    """The values of a column as text."""
    decimals = 4 if all(abs(value) <= 1 for value in values if isinstance(value, float)) else 1

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.{decimals}f}"
        return f"{value:,}" if isinstance(value, int) else plain(value)

    return [*map(cell, values)]


def align_cells(lines: Sequence[Sequence[str]], right: Collection[int], *, widest: int | None = None) -> str:
    """Lines of cells as text with aligned columns, those in `right` to the right; no cell is cut.

    Cells longer than `widest` do not widen their column.
    """
    from xsent.words import display_width  # costs time before Ctrl-C is heard

    widths = [max(map(display_width, cells)) for cells in zip(*lines, strict=True)]
    if widest is not None:
        widths = [min(width, widest) for width in widths]
    padded = []
    for line in lines:
        gaps = [" " * (width - display_width(cell)) for cell, width in zip(line, widths, strict=True)]
        cells = enumerate(zip(line, gaps, strict=True))
        padded.append("  ".join(gap + cell if place in right else cell + gap for place, (cell, gap) in cells).rstrip())
    return "\n".join(padded)


def markdown_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown, with the first column aligned left and the others right."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
