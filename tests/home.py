"""A home folder and a temporary folder that belong to the session of tests: nobody's own are written to.

Libraries read the environment when they are imported, so importing this changes it. Processes that tests start inherit
it, those of pytest-xdist too. pytest's own folders, such as `tmp_path`, stay where they were: it keeps the last three.
"""

import atexit
import fcntl
import gc
import os
import re
import shutil
import site
import tempfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

WORKER = "PYTEST_XDIST_WORKER" in os.environ  # it inherits what is set here
REAL = Path(os.environ["XSENT_REAL_HOME"]) if WORKER else Path.home()
_XDG = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR")
# What other programs write at any time.
_BUSY = re.compile(r"history|viminfo|lesshst|wget-hsts|authority|session|\.sw.$|\.tmp$", re.IGNORECASE)
_COMPLETIONS = (".bash_completions", ".zfunc", ".config/fish/completions", ".local/share/bash-completion/completions")
_SETTINGS = (".config", ".local/bin", ".local/share", ".local/state")


def listing(home: Path) -> dict[str, tuple[int, int]]:
    """What a program that leaves something in a home folder adds or changes there, by its path.

    Hidden files, such as `.bashrc`, and completions of shells, each with its size and its time; folders, also those in
    which programs keep settings, by their names. Neither caches nor histories: other programs write these at any time.
    """
    files = [*home.glob(".*"), *(path for place in _COMPLETIONS for path in (home / place).rglob("*"))]
    folders = [*home.glob("*"), *(path for place in _SETTINGS for path in (home / place).glob("*"))]
    found = {}
    for path in dict.fromkeys([*files, *folders]):
        name = str(path.relative_to(home))
        with suppress(OSError):  # gone meanwhile, or not ours to look at
            if path.is_dir():
                found[name] = 0, 0
            elif path in files and not _BUSY.search(name):
                found[name] = path.stat().st_size, path.stat().st_mtime_ns
    return found


@cache
def changes() -> list[str]:
    """What has changed in the real home folder since this was imported, one name each; none in a worker."""
    after = listing(REAL) if _BEFORE is not None else {}
    before = _BEFORE or {}
    names = sorted(before.keys() | after.keys())
    kinds = {name: "new" if name not in before else "gone" if name not in after else "changed" for name in names}
    return [f"{REAL / name} ({kinds[name]})" for name in names if before.get(name) != after.get(name)]


def _move() -> None:
    """Make the folder of the session, let the environment point there, and remove it when this process ends."""
    temporary = tempfile.gettempdir()
    folder = Path(tempfile.mkdtemp(prefix="xsent-"))  # short: paths of sockets have at most 104 bytes
    for name in _XDG:
        os.environ.pop(name, None)  # otherwise below HOME
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", temporary)
    os.environ.setdefault("PYTHONUSERBASE", site.getuserbase())  # packages that were installed with --user
    if (REAL / ".gitconfig").exists():
        os.environ.setdefault("GIT_CONFIG_GLOBAL", str(REAL / ".gitconfig"))  # it may say that this clone is safe
    for variable, name in (("HOME", "home"), ("TMPDIR", "tmp")):
        (folder / name).mkdir()
        os.environ[variable] = str(folder / name)
    tempfile.tempdir = None  # so that it is read again
    atexit.register(_remove, folder, os.getpid())  # the first to be registered is the last to run


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:  # not a fork of it
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _turn(name: str) -> Iterator[None]:
    """Wait for the worker that imports the same: it compiles what is imported, and the others read that."""
    with Path(os.environ["HOME"], name).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


_BEFORE = None
_conftest = ExitStack()
if WORKER:
    _conftest.enter_context(_turn("conftest"))
    # A worker has one core: threads that wait for each other would take those of other workers.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
else:
    os.environ["XSENT_REAL_HOME"] = str(REAL)
    _BEFORE = listing(REAL)
    _move()


def pytest_sessionstart() -> None:
    _conftest.close()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    with _turn(collector.path.name) if WORKER and isinstance(collector, pytest.Module) else nullcontext():
        return (yield)


def pytest_collection_finish() -> None:
    gc.freeze()  # pytest collects garbage five times at the end: all that was imported is none


def pytest_sessionfinish(session: pytest.Session) -> None:
    if changes():
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if changes():
        terminalreporter.write_sep("=", "the home folder is not as it was", red=True, bold=True)
        terminalreporter.write_line("\n".join([*changes(), "Find the test that did it, unless you did it yourself."]))
