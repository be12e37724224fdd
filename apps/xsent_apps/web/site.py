"""The files of the page and of its model."""

import hashlib
import json
import shutil
from dataclasses import dataclass
from importlib.resources import files as resources
from pathlib import Path

from xsent.errors import DataError
from xsent.files.atomic import atomic_folder, file_exists_error, recover

STATIC = Path(__file__).parent / "static"
FILES_JSON = "files.json"  # the service worker caches every file in it for offline use
# Files of a bundle that the page reads; the card names the model's licence. Files of other backends are omitted.
MODEL_FILES = ("sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin", "README.md")
MANIFEST = "xsent.json"
OF_NPM = (".json", ".md", ".ts")  # files beside the modules of the npm package that no page needs
SHARED = {"function_words.json": "", "notations.js": "xsent/"}  # files of the runtime, and their folders in the page


@dataclass(frozen=True)
class File:
    """A file of the site."""

    path: Path
    sha256: str
    bytes: int

    @classmethod
    def of(cls, path: Path) -> "File":
        """Read a file."""
        content = path.read_bytes()
        return cls(path, hashlib.sha256(content).hexdigest(), len(content))


@dataclass(frozen=True)
class Site:
    """The files of the page and of its model, by their URL relative to the page."""

    files: dict[str, File]

    @classmethod
    def of(cls, model: Path | None) -> "Site":
        """The page with a bundle, by default the built-in one. Raises BundleError or DataError for a damaged file."""
        from xsent import SentenceEncoder

        # Opens all of the bundle, so that a damaged one fails here, not in the page.
        bundle = SentenceEncoder(model, threads=1).bundle
        own = (path for path in sorted(STATIC.rglob("*")) if path.is_file() and path.suffix not in OF_NPM)
        names = [path.relative_to(STATIC).as_posix() for path in own]
        files = {name: File.of(STATIC / name) for name in names}
        for name, folder in SHARED.items():
            files[folder + name] = File.of(Path(str(resources("xsent") / name)))
        for name in (MANIFEST, *MODEL_FILES):
            if name == MANIFEST or name in bundle.files:
                files[f"model/{name}"] = File.of(bundle.path / name)
        return cls(files)

    @property
    def list(self) -> bytes:
        """Content of `files.json`: digest and size of each file, and a version that depends on all of them."""
        files = {name: {"sha256": file.sha256, "bytes": file.bytes} for name, file in sorted(self.files.items())}
        version = hashlib.sha256(json.dumps(files).encode()).hexdigest()[:16]
        return json.dumps({"version": version, "files": files}, indent=1).encode() + b"\n"

    def write(self, folder: Path, *, replace: bool = False) -> int:
        """Write everything into a folder for any static host, and return the number of bytes.

        The folder appears complete or not at all. Raises FileExistsError if it exists, unless `replace` is set.
        """
        folder = folder.absolute()
        recover(folder)
        if folder.exists() and not replace:
            raise file_exists_error(folder)
        if folder.exists() and not ((folder / FILES_JSON).is_file() or (folder.is_dir() and not any(folder.iterdir()))):
            raise DataError(f"{folder}: was not written by `xsent web`, so it is not replaced; choose another name")
        with atomic_folder(folder) as partial:
            for name, file in self.files.items():
                (partial / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.path, partial / name)
            (partial / FILES_JSON).write_bytes(self.list)
        return sum(file.bytes for file in self.files.values()) + len(self.list)
