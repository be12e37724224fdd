"""Faults at the writes of a command, which runs in a process of its own: forked, so that imports cost nothing."""

import errno
import importlib
import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KILL, FULL, READ_ONLY, BROKEN = "kill", "full disk", "read-only disk", "broken disk"
LIMIT = "no longer files"  # a full disk that is noticed in the middle of a write, by SQLite and other libraries too

_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.link"}
TAKES_ROOM = {"open", "os.mkdir", "fsync"}
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload(
    "onnxruntime sentencepiece pyarrow.parquet pandas xsent.cli.main xsent.encoder xsent.files.vectors "
    "xsent.search.lines xsent.search.documents xsent.classification.classifier xsent.documents.encoder "
    "xsent.mining.paraphrases "
    "xsent_apps.notes.report xsent_export.cli xsent_export.export xsent_train.cli xsent_train.trainer".split()
)


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and at which write, counted from 1; for LIMIT at how many bytes of a file."""

    kind: str
    at: int


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    code: int  # negative: of the signal
    said: str  # on standard error
    writes: list[str]  # event and path of each that it came to


def run(
    folder: Path, arguments: Sequence[str], fault: Fault | None = None, settings: Mapping[str, object] | None = None
) -> Outcome:
    """Run one of our commands in a folder, with a fault or without; settings by names like `xsent.files.atomic.X`."""
    said, writes = (folder.with_name(f"{folder.name}.{kind}") for kind in ("said", "writes"))
    process = _FORKING.Process(target=_work, args=(folder, arguments, fault, settings or {}, said, writes))
    process.start()
    process.join()
    return Outcome(process.exitcode or 0, said.read_text(), writes.read_text().splitlines())


def _work(
    folder: Path,
    arguments: Sequence[str],
    fault: Fault | None,
    settings: Mapping[str, object],
    said: Path,
    writes: Path,
) -> None:
    os.chdir(folder)
    tempfile.tempdir = str(folder)
    for number, path in ((1, Path(os.devnull)), (2, said)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
    for name, value in settings.items():
        module, _, attribute = name.rpartition(".")
        setattr(importlib.import_module(module), attribute, value)
    rooms = {"xsent": "xsent.cli.main", "xsent-train": "xsent_train.cli", "xsent-export": "xsent_export.cli"}
    main = importlib.import_module(rooms.get(arguments[0], arguments[0])).main
    sys.argv = list(arguments)
    _Injector(folder, writes, fault).install()
    main()


class _Injector:
    """Counts what changes a folder, and lets one of these changes fail."""

    def __init__(self, folder: Path, log: Path, fault: Fault | None) -> None:
        self._folder, self._fault, self._count = f"{folder}/", fault, 0
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def install(self) -> None:
        """Begin."""
        if self._fault and self._fault.kind == LIMIT:
            resource.setrlimit(resource.RLIMIT_FSIZE, (self._fault.at, self._fault.at))
        fsync, connect = os.fsync, sqlite3.connect

        def counted(handle: int) -> None:
            self._step("fsync", os.readlink(f"/proc/self/fd/{handle}"))
            fsync(handle)

        def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:  # noqa: ANN401
            connection = connect(*arguments, **options)
            connection.set_trace_callback(lambda statement: self._step("sqlite", f"{self._folder}{statement[:40]}"))
            return connection

        os.fsync, sqlite3.connect = counted, traced  # type: ignore[assignment]
        sys.addaudithook(self._hear)

    def _hear(self, event: str, about: tuple[Any, ...]) -> None:
        if event in _CHANGES or (event == "open" and isinstance(about[2], int) and about[2] & os.O_ACCMODE):
            path = about[0] if isinstance(about[0], int) else os.fspath(about[0])
            if event in ("os.remove", "os.rmdir") and about[1] != -1:  # shutil.rmtree's
                path = os.path.join(os.readlink(f"/proc/self/fd/{about[1]}"), path)
            if isinstance(path, str):
                self._step(event, os.path.abspath(path))

    def _step(self, event: str, path: str) -> None:
        if not path.startswith(self._folder):
            return
        self._count += 1
        if not self._fault or self._fault.kind != LIMIT:
            os.write(self._log, f"{event} {' '.join(path[len(self._folder) :].split())}\n".encode())
        if self._fault and (error := self._error(self._fault, event)):
            raise OSError(error, os.strerror(error), path)

    def _error(self, fault: Fault, event: str) -> int:
        """What this change fails with; 0 where it does not."""
        if fault.kind == KILL and self._count == fault.at:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.kind == FULL and self._count >= fault.at and event in TAKES_ROOM:
            return errno.ENOSPC
        if fault.kind == READ_ONLY and self._count >= fault.at:
            return errno.EROFS
        return errno.EIO if fault.kind == BROKEN and self._count == fault.at else 0
