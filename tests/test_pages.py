"""Python on our pages runs as it stands, offline, and prints what the comments behind `print` say.

Every fenced block whose first line is "```python" runs alone; "```python fragment" is only to be read.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = ("README.md", "docs/integrations.md", "docs/notes.md")
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
IMPORTED = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)
SAYS = re.compile(r"^\s*print\(.*\)  # (.+)$", re.MULTILINE)

REFUSED = 99  # exit code where a block opened a connection
OFFLINE = f"""
import os, sys
sys.addaudithook(lambda event, _: os._exit({REFUSED}) if event in ("socket.connect", "socket.getaddrinfo") else None)
"""


def blocks() -> list[object]:
    """Every block, named by its page and line."""
    found = []
    for page in PAGES:
        text = (ROOT / page).read_text(encoding="utf-8")
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start()) + 1
            found.append(pytest.param(block[1], id=f"{page}:{line}"))
    return found


@pytest.mark.parametrize("block", blocks())
def test_it_runs_and_prints_what_it_says(block: str, tmp_path: Path) -> None:
    if missing := [name for name in IMPORTED.findall(block) if not find_spec(name)]:
        pytest.skip(f"without {', '.join(missing)}")
    command = [sys.executable, "-c", f"{OFFLINE}\n{block}"]
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, "opened a connection" if done.returncode == REFUSED else done.stderr
    expected = [line for says in SAYS.findall(block) for line in says.split(" / ")]
    assert done.stdout.splitlines() == expected
