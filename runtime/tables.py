"""Results as text for people."""

from collections.abc import Mapping, Sequence


def format_table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows as an aligned table with a heading; numbers stand right.

    Args:
        rows: One mapping from column to value a row; a value that a row lacks stays empty. Floats get one decimal,
            or four in a column that stays within -1 and 1.
    """
    names = dict.fromkeys(name for row in rows for name in row)  # in order of appearance
    columns = [_column(name, [row.get(name, "") for row in rows]) for name in names]
    return "\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True))


def _column(name: str, values: Sequence[object]) -> list[str]:
    """The heading and the values, all of one width."""
    decimals = 4 if all(abs(value) <= 1 for value in values if isinstance(value, float)) else 1
    cells = [name]
    for value in values:
        if isinstance(value, float):
            cells.append(f"{value:.{decimals}f}")
        else:
            cells.append(f"{value:,}" if isinstance(value, int) else str(value))
    side = ">" if any(isinstance(value, int | float) for value in values) else "<"
    return [f"{cell:{side}{max(map(len, cells))}}" for cell in cells]
