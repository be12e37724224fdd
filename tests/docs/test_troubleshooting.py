"""The messages on the page of troubleshooting are those of the code."""

import ast
from collections.abc import Iterator

from pages import ROOMS, ROOT, table

PAGE = "docs/guides/troubleshooting.md"


def literals() -> Iterator[str]:
    """The texts in our code, with … for what is filled in."""
    for path in (path for room in ROOMS for path in (ROOT / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_every_message_is_one_of_ours() -> None:
    ours = {*literals()}
    told = [message.strip("`… ") for message, _ in table(PAGE, "## By message")]
    assert len(told) > 20
    assert [message for message in told if not any(message in text for text in ours)] == []
