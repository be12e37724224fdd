"""Folders that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Fill a folder under another name and rename it once it is complete; `path` must not exist yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    try:
        yield partial
        partial.chmod(0o755)  # mkdtemp's is for the user alone
        os.replace(partial, path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
