"""Markdown tables."""

from collections.abc import Sequence


def markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column stands left and whose others stand right.

    Args:
        headings: One a column.
        rows: As many cells a row.
    """
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "\n".join("| " + " | ".join(text.replace("|", "\\|") for text in line) + " |" for line in lines)
