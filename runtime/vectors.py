"""Files of sentence vectors, read as memory maps.

Beside every file lies `NAME.json` with the fingerprint of the encoder, so that vectors of different encoders
are never compared by mistake.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.files import naming_damage, read_json
from xsent.options import stored_as


@dataclass(frozen=True)
class VectorNote:
    """What lies beside a file of vectors."""

    fingerprint: str  # identity of the encoder's vector space
    dim: int  # length of a vector (D)
    precision: str  # form of the numbers, see `xsent.SentenceEncoder.encode`
    normalized: bool  # whether vectors have length 1


@dataclass(frozen=True)
class VectorFile:
    """A file of vectors, opened."""

    path: Path
    note: VectorNote
    rows: NDArray[Any]  # [n, D], binary ones [n, D / 8], mapped into memory: only what is looked at is read

    def __len__(self) -> int:
        return len(self.rows)


def open_vectors(path: str | Path) -> VectorFile:
    """Open a `.npy` or `.f32` file that `xsent encode` wrote; its note must lie beside it."""
    path = Path(path)
    if path.suffix not in (".npy", ".f32"):
        raise DataError(f"{path}: expected vectors in a .npy or .f32 file")
    note = _read_note(path)
    dtype, width = stored_as(note.precision, note.dim)
    try:
        rows = np.load(path, mmap_mode="r", allow_pickle=False) if path.suffix == ".npy" else _map_raw(path, note.dim)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file; expected vectors written by xsent encode") from error
    except (OSError, ValueError, EOFError) as error:
        cut = isinstance(error, EOFError) or str(error).startswith(("mmap length", "EOF"))
        reason = "cut short" if cut else f"no readable vectors ({error})"
        raise DataError(f"{path}: {reason}; encode the text again") from error
    if rows.ndim != 2 or rows.shape[1] != width or rows.dtype != dtype:
        raise DataError(
            f"{path}: {rows.dtype} of shape {list(rows.shape)}, its note says {note.precision} of {note.dim} "
            "dimensions; encode the text again"
        )
    return VectorFile(path, note, rows)


def check_same_space(a: VectorFile, b: VectorFile) -> None:
    """See whether two files can be compared: a FingerprintError or a DataError says in what they differ."""
    if a.note.fingerprint != b.note.fingerprint:
        raise FingerprintError(
            f"{a.path} has vectors of {a.note.fingerprint}, {b.path} of {b.note.fingerprint}: use one model"
        )
    if (a.note.dim, a.note.precision) != (b.note.dim, b.note.precision):
        raise DataError(
            f"{a.path} holds {a.note.precision} of {a.note.dim} dimensions, {b.path} {b.note.precision} of "
            f"{b.note.dim}: encode both alike"
        )


def note_file(path: Path) -> Path:
    """The note beside a file of vectors."""
    return path.with_name(f"{path.name}.json")


def _read_note(path: Path) -> VectorNote:
    file = note_file(path)
    remedy = "encode the text again"
    if not file.exists():
        raise DataError(f"{file}: missing; it says which model made {path.name}, copy it too")
    with naming_damage(file, remedy):
        note = VectorNote(**read_json(file, remedy))
        if type(note.dim) is not int or note.dim < 1:
            raise ValueError(f"dim = {note.dim!r} must be a number")
        stored_as(note.precision, note.dim)
    return note


def _map_raw(path: Path, dim: int) -> NDArray[Any]:
    row = 4 * dim
    if (size := path.stat().st_size) % row:
        raise DataError(f"{path}: {size:,} bytes are no whole number of vectors of {row:,}; encode the text again")
    return np.memmap(path, "<f4", "r", shape=(size // row, dim)) if size else np.empty((0, dim), "<f4")
