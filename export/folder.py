"""A bundle folder that appears whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from xsent.bundle import MANIFEST
from xsent.errors import BundleError
from xsent.files import atomic_folder


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
    check_place(out, replace=replace)
    with atomic_folder(out) as folder:
        yield folder


def check_parent(out: Path) -> None:
    """See whether there is a folder to put something in.

    Raises:
        BundleError: There is none.
    """
    if not out.parent.is_dir():
        raise BundleError(f"{out.parent}: no such folder; create it first")


def check_place(out: Path, *, replace: bool) -> None:
    """See whether a bundle may be put somewhere.

    Raises:
        BundleError: See `new_bundle_folder`.
    """
    out = out.resolve()
    check_parent(out)
    if not out.exists():
        return
    if not replace:
        raise BundleError(f"{out}: exists; name another folder, or replace it with --force")
    # A slip of the hand must not delete a folder of something else.
    if not (out / MANIFEST).is_file():
        raise BundleError(f"{out}: is not a bundle and will not be replaced; name another folder")
