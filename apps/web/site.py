"""What the page consists of: its own files, those of a model, and a list of both."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from xsent import Bundle, DataError, SentenceEncoder
from xsent.files import atomic_folder, existing, recover

LIST = "files.json"  # of the service worker, which keeps every file for offline use
MANIFEST = "xsent.json"
_STATIC = Path(__file__).parent / "static"
# Of a bundle; the card says whose the model is. Files of other backends stay behind.
_FETCHED = ("sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin", "README.md")


@dataclass(frozen=True)
class File:
    """A file of the site."""

    path: Path
    sha256: str
    bytes: int


@dataclass(frozen=True)
class Site:
    """All files by their address, relative to the page's."""

    files: dict[str, File]

    @classmethod
    def of(cls, model: Path | None) -> "Site":
        """The page with a bundle, by default the built-in one; a BundleError or DataError says why not."""
        bundle = SentenceEncoder(model, threads=1).bundle  # opened whole, so that a page with it works too
        own = sorted(path for path in _STATIC.rglob("*") if path.is_file())
        files = {path.relative_to(_STATIC).as_posix(): _read(path) for path in own}
        if "index.html" not in files:
            raise DataError(f"{_STATIC}: the page is not there; install xsent again")
        return cls(files | {f"model/{name}": file for name, file in _model_files(bundle).items()})

    @property
    def list(self) -> bytes:
        """The file `LIST`: digest and size of each file, and a version that is another where any of them is."""
        files = {name: {"sha256": file.sha256, "bytes": file.bytes} for name, file in sorted(self.files.items())}
        version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
        return json.dumps({"version": version, "files": files}, indent=1).encode() + b"\n"

    def write(self, folder: Path, *, replace: bool = False) -> int:
        """Put everything into a folder that any static host can serve, and return its bytes.

        The folder appears whole or not at all; one that exists is replaced only on demand, by an OSError else.
        """
        folder = folder.absolute()
        recover(folder)
        if folder.exists() and not replace:
            raise existing(folder)
        if folder.exists() and not ((folder / LIST).is_file() or (folder.is_dir() and not any(folder.iterdir()))):
            raise DataError(f"{folder}: was not written by `xsent web`, so it is not replaced; choose another name")
        with atomic_folder(folder) as partial:
            for name, file in self.files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, partial / name)
            (partial / LIST).write_bytes(self.list)
        return sum(file.bytes for file in self.files.values()) + len(self.list)


def _model_files(bundle: Bundle) -> dict[str, File]:
    files = {name: bundle.files[name] for name in _FETCHED if name in bundle.files}
    named = {name: File(bundle.path / name, entry.sha256, entry.bytes) for name, entry in files.items()}
    return {MANIFEST: _read(bundle.path / MANIFEST), **named}


def _read(path: Path) -> File:
    content = path.read_bytes()
    return File(path, hashlib.sha256(content).hexdigest(), len(content))
