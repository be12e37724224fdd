"""Tests leave the home folder of whoever runs them as it is, and a session that does not fails."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commands import write_lines
from home import REAL

TESTS = Path(__file__).parents[1]
LOOK = "import os, tempfile, pathlib; print(pathlib.Path.home(), tempfile.gettempdir(), *os.environ)"


def test_home_and_temporary_files_are_those_of_the_session() -> None:
    home, temporary, *names = subprocess.check_output([sys.executable, "-c", LOOK], text=True).split()
    assert (home, temporary) == (str(Path.home()), tempfile.gettempdir())
    assert Path(home) != REAL and Path(home).parent == Path(temporary).parent
    assert not [name for name in names if name.startswith("XDG_")]


SESSIONS = {
    "nothing": ("pass", []),
    "a start file": ("(REAL / '.bashrc').write_text('source x')", [".bashrc (changed)"]),
    "a completion": ("(REAL / '.zfunc').mkdir(); (REAL / '.zfunc/_x').touch()", [".zfunc (new)", ".zfunc/_x (new)"]),
    "settings": ("(REAL / '.config/x').mkdir()", [".config/x (new)"]),
    "less": ("(REAL / '.profile').unlink()", [".profile (gone)"]),
    "other programs": ("[(REAL / x).touch() for x in ('.bash_history', '.cache/x', 'download.zip')]", []),
    "its own": ("(Path.home() / '.bashrc').touch(); tempfile.mkdtemp()", []),
}


@pytest.mark.parametrize("does", SESSIONS)
@pytest.mark.parametrize("options", [[], ["-n1"]], ids=["here", "worker"])
def test_a_session_that_changes_the_home_folder_fails(does: str, options: list[str], tmp_path: Path) -> None:
    home, temporary, folder = (tmp_path / name for name in ("home", "tmp", "tests"))
    for made in (home / ".config", home / ".cache", temporary, folder):
        made.mkdir(parents=True)
    for name in (".bashrc", ".profile"):
        write_lines(home / name, ["export A=1"])
    statement, expected = SESSIONS[does]
    code = ["import tempfile", "from pathlib import Path", f"REAL = Path({str(home)!r})", "def test(): " + statement]
    write_lines(folder / "test_it.py", code)
    environment = {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": str(TESTS), "XDG_CONFIG_HOME": str(home)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "home", "-p", "no:cacheprovider", *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True)
    assert done.returncode == bool(expected), done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith(str(home))]
    assert told == [f"{home}/{change}" for change in expected]
    assert not [path for path in temporary.iterdir() if not path.name.startswith("pytest-of-")]
