"""Results as text for people."""

from collections.abc import Mapping, Sequence


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as an aligned table with a heading; floats get one decimal, numbers stand right.

    Args:
        rows: One mapping from column to value a row; a value that a row lacks stays empty.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [columns, *([_cell(row.get(column, "")) for column in columns] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [any(isinstance(row.get(column), int | float) for row in rows) for column in columns]
    lines = []
    for line in cells:
        padded = (f"{c:>{w}}" if r else f"{c:<{w}}" for c, w, r in zip(line, widths, right, strict=True))
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
