"""An index on disk: a folder of plain files with a manifest, `index.json`.

    vectors.f16      float16 [rows, D], of length 1
    rows.u64         uint64 [rows, 2]: number of the line, and where its text ends in texts.txt
    texts.txt        UTF-8, one after the other, each with a line feed behind it
    graph-N.usearch  optional: the first N rows as a graph, see `xsent.search.graph`

The first three only ever grow. The manifest says how much of them counts, and is replaced last: what a killed process
has left behind is no part of the index. `unfinished.json` has the same fields and says how far a long job has come.
Numbers are little-endian.
"""

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files import atomic_file
from xsent.search.growing_file import FileState

VERSION = 1
MANIFEST = "index.json"
UNFINISHED = "unfinished.json"
VECTORS = "vectors.f16"
ROWS = "rows.u64"
TEXTS = "texts.txt"
GROWING = (VECTORS, ROWS, TEXTS)
GRAPHS = "graph-*.usearch"
ROW_TYPE = np.dtype("<u8")
NO_INPUT = FileState.sha256


@dataclass(frozen=True)
class IndexManifest:
    """What an index says about itself.

    Attributes:
        fingerprint: Identity of the vector space.
        dim: Length of a vector (D).
        lines: Lines read, the empty ones too.
        rows: Lines that have a vector.
        start: Lines that were there before the last addition.
        input: Checksum of the lines that the last addition read, in hex.
        graph: Rows that the graph holds; 0 without one.
        files: How much of every file counts, by name.
    """

    fingerprint: str
    dim: int
    lines: int = 0
    rows: int = 0
    start: int = 0
    input: str = NO_INPUT
    graph: int = 0
    files: dict[str, FileState] = field(default_factory=lambda: {name: FileState() for name in GROWING})

    @classmethod
    def open(cls, path: Path) -> Self:
        """Read the manifest of an index and see whether its files are there.

        Args:
            path: The folder.

        Raises:
            DataError: There is no index, it is damaged, or it was written by another version.
        """
        if not (path / MANIFEST).is_file():
            what = "not an index, but a file" if path.exists() else "no such folder"
            if path.is_dir():
                what = f"not an index, it has no {MANIFEST}"
            raise DataError(f"{path}: {what}; make one with xsent index")
        manifest = cls.read(path / MANIFEST)
        for name, state in manifest.files.items():
            file = path / name
            if not file.is_file():
                raise DataError(f"{file}: missing; build the index again")
            if (size := file.stat().st_size) < state.bytes:
                raise DataError(f"{file}: {size:,} bytes, expected {state.bytes:,}; build the index again")
        return manifest

    @classmethod
    def read(cls, file: Path) -> Self:
        """Read a manifest.

        Raises:
            DataError: It is damaged, or was written by another version.
        """
        try:
            raw = json.loads(file.read_bytes())
            version, checksum = raw.pop("version"), raw.pop("checksum")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{file}: damaged, no manifest of an index; build the index again") from error
        if version != VERSION:
            raise DataError(
                f"{file}: version {version!r} is unknown, this xsent reads {VERSION}; upgrade xsent or build the "
                "index again"
            )
        if checksum != _checksum(raw):
            raise DataError(f"{file}: damaged (its checksum is wrong); build the index again")
        return cls(**{**raw, "files": {name: FileState(**state) for name, state in raw["files"].items()}})

    def write(self, file: Path) -> None:
        """Write it so that a reader sees the old one or the new one."""
        fields = asdict(self)
        with atomic_file(file) as opened:
            content = {"version": VERSION, "checksum": _checksum(fields), **fields}
            opened.write(json.dumps(content, indent=1).encode() + b"\n")

    @property
    def graph_file(self) -> str:
        """Name of the graph's file."""
        return GRAPHS.replace("*", str(self.graph))

    def check_fingerprint(self, fingerprint: str, path: Path) -> None:
        """See whether an encoder fits.

        Args:
            fingerprint: The encoder's.
            path: The index, for the message.

        Raises:
            FingerprintError: It made other vectors; names both fingerprints.
        """
        if fingerprint != self.fingerprint:
            raise FingerprintError(
                f"{path} has vectors of {self.fingerprint}, the model makes {fingerprint}: use the model of the index, "
                "or build the index again"
            )


def map_rows(path: Path, manifest: IndexManifest) -> NDArray[np.uint64]:
    """Number of the line and end of the text, [rows, 2], mapped into memory: only what is looked at is read."""
    return np.memmap(path / ROWS, ROW_TYPE, "r", shape=(manifest.rows, 2))


def _checksum(fields: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
