"""A bundle folder that appears whole or not at all."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xsent.bundle import MANIFEST
from xsent.errors import BundleError


@contextmanager
def new_bundle_folder(out: Path, *, replace: bool) -> Iterator[Path]:
    """Fill a folder beside `out` and put it in its place once it is complete and on the disk.

    Whatever goes wrong (a full disk, Ctrl-C) leaves nothing behind, and an older bundle as it was.

    Args:
        out: Where the bundle shall be; its parent must exist.
        replace: Replace a bundle that is there.

    Yields:
        An empty folder to fill.

    Raises:
        BundleError: `out` exists and may not be replaced, or its parent does not exist.
    """
    out = out.resolve()
    _check(out, replace=replace)
    partial = _beside(out, "part")
    try:
        partial.mkdir()
        yield partial
        for file in sorted(partial.iterdir()):
            with file.open("rb+") as opened:
                os.fsync(opened.fileno())
        _put(partial, out)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _check(out: Path, *, replace: bool) -> None:
    if not out.parent.is_dir():
        raise BundleError(f"{out.parent}: no such folder; create it first")
    if not out.exists():
        return
    if not replace:
        raise BundleError(f"{out}: exists; name another folder, or replace it with --force")
    # A slip of the hand must not delete a folder of something else.
    if not (out / MANIFEST).is_file():
        raise BundleError(f"{out}: is not a bundle and will not be replaced; name another folder")


def _put(partial: Path, out: Path) -> None:
    old = _beside(out, "old")
    try:
        if out.exists():
            out.rename(old)
        partial.rename(out)
    except BaseException:
        if old.exists() and not out.exists():
            old.rename(out)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _beside(out: Path, suffix: str) -> Path:
    return out.with_name(f".{out.name}.{os.getpid()}.{suffix}")
