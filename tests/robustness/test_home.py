"""Tests leave the home folder of whoever runs them as it is, and a session that does not fails."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from commands import write_lines
from home import REAL, WORKER

TESTS = Path(__file__).parents[1]
LOOK = "import os, tempfile, pathlib; print(pathlib.Path.home(), tempfile.gettempdir(), *os.environ)"


def test_home_and_temporary_files_are_those_of_the_session() -> None:
    home, temporary, *names = subprocess.check_output([sys.executable, "-c", LOOK], text=True).split()
    assert (home, temporary) == (str(Path.home()), tempfile.gettempdir())
    assert Path(home) != REAL and Path(home).parent == Path(temporary).parent
    assert not [name for name in names if name.startswith("XDG_")]
    assert WORKER == ("PYTEST_XDIST_WORKER_COUNT" in os.environ)  # all workers have the folders of their session


# Statements of a test, and the changes that are told.
GUILTY = {
    "(REAL / '.bashrc').write_text('source x')": [".bashrc (changed)"],
    "(REAL / '.config/x').mkdir()": [".config/x (new)"],
    "(REAL / '.profile').unlink()": [".profile (gone)"],
    "(REAL / '.zfunc').mkdir(); (REAL / '.zfunc/_x').touch()": [".zfunc (new)", ".zfunc/_x (new)"],
}
INNOCENT: dict[str, list[str]] = {
    "[(REAL / x).touch() for x in ('.bash_history', '.cache/x', 'download.zip')]": [],  # other programs
    "(Path.home() / '.bashrc').touch(); tempfile.mkdtemp()": [],  # the session's own
}
WHERE = {"here": [], "worker": ["-p", "xdist", "-n1"]}


@pytest.mark.parametrize("does", [GUILTY, INNOCENT], ids=["guilty", "innocent"])
@pytest.mark.parametrize("options", WHERE.values(), ids=WHERE)
def test_a_session_that_changes_the_home_folder_fails(
    does: dict[str, list[str]], options: list[str], tmp_path: Path
) -> None:
    if options:
        pytest.importorskip("xdist")
    home, temporary, folder = (tmp_path / name for name in ("home", "tmp", "tests"))
    for made in (home / ".config", home / ".cache", temporary, folder):
        made.mkdir(parents=True)
    for name in (".bashrc", ".profile"):
        write_lines(home / name, ["export A=1"])
    code = ["import tempfile", "from pathlib import Path", f"REAL = Path({str(home)!r})", "def test():"]
    write_lines(folder / "test_it.py", [*code, *(f"    {statement}" for statement in does)])
    environment = {"HOME": str(home), "TMPDIR": str(temporary), "PYTHONPATH": str(TESTS), "XDG_CONFIG_HOME": str(home)}
    environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-p", "home", "-p", "no:cacheprovider", *options, "test_it.py"]
    done = subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True)
    expected = [change for changes in does.values() for change in changes]
    assert done.returncode == bool(expected), done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith(str(home))]
    assert told == [f"{home}/{change}" for change in expected]
    assert not [path for path in temporary.iterdir() if not path.name.startswith("pytest-of-")]
