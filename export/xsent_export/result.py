"""A folder that is written whole or not at all."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from xsent.bundle import MANIFEST
from xsent.errors import BundleError
from xsent.files.atomic import atomic_folder, recover
from xsent_export.check import Agreement, Parity


@dataclass(frozen=True)
class ExportResult:
    """A folder that was written, and what was measured."""

    path: Path
    bytes: int  # of a bundle without its manifest
    parity: Parity | None = None  # None without pairs to measure with
    agreement: Agreement | None = None  # of a teacher
    fingerprint: str = ""  # of its vector space, where the format has one


def new_folder(out: Path, *, replace: bool | None = None) -> AbstractContextManager[Path]:
    """An empty folder to fill; it takes its place, see `check_place`, once it is complete: see `atomic_folder`."""
    check_place(out, replace=replace)
    return atomic_folder(out.resolve())


def check_place(out: Path, *, replace: bool | None) -> None:
    """Refuse a place that is taken or whose parent is missing; `replace` is None where that cannot be asked for."""
    out = out.resolve()
    recover(out)
    if not out.parent.is_dir():
        raise BundleError(f"{out.parent}: no such folder; create it first")
    if not out.exists():
        return
    if not replace:
        force = "" if replace is None else ", or replace it with --force"
        raise BundleError(f"{out}: exists; name another folder{force}")
    # A slip of the hand must not delete a folder of something else.
    if not (out / MANIFEST).is_file():
        raise BundleError(f"{out}: is not a bundle and will not be replaced; name another folder")


def folder_size(folder: Path) -> int:
    """Bytes of all files in a folder."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
