"""Files of vectors."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError
from xsent.options import Vectors
from xsent.vectors import VectorNote, check_same_space, open_vectors, vector_file

VECTORS = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
NOTE = VectorNote("0123456789abcdef", 7, "float32", normalized=False)


def write(path: Path, vectors: Vectors = VECTORS, note: VectorNote = NOTE, *, force: bool = False) -> None:
    with vector_file(path, note, force=force) as writer:
        for row, vector in enumerate(vectors):
            writer.write(f'"{row}" é', vector)


@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_npy(tmp_path: Path, precision: str) -> None:
    vectors = VECTORS.astype(precision)
    write(tmp_path / "a.npy", vectors, VectorNote("f", 7, precision, normalized=True))
    loaded = np.load(tmp_path / "a.npy", allow_pickle=False, mmap_mode="r")
    assert loaded.dtype == precision
    assert np.array_equal(loaded, vectors)


def test_npy_without_rows(tmp_path: Path) -> None:
    write(tmp_path / "a.npy", VECTORS[:0])
    assert np.load(tmp_path / "a.npy").shape == (0, 7)


def test_jsonl_keeps_every_bit(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines()]
    assert [row["sentence"] for row in rows] == [f'"{row}" é' for row in range(300)]
    assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), VECTORS)


def test_note_lies_beside(tmp_path: Path) -> None:
    write(tmp_path / "a.npy")
    note = json.loads((tmp_path / "a.npy.json").read_text())
    assert note == {"fingerprint": "0123456789abcdef", "dim": 7, "precision": "float32", "normalized": False}


@pytest.mark.parametrize("taken", ["a.npy", "a.npy.json"])
def test_nothing_is_overwritten_without_force(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("old")
    with pytest.raises(FileExistsError, match="--force"):
        write(tmp_path / "a.npy")
    assert (tmp_path / taken).read_text() == "old"
    write(tmp_path / "a.npy", force=True)
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"\.npy or \.jsonl"):
        write(tmp_path / "a.csv")


def test_failure_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), vector_file(tmp_path / "a.npy", NOTE) as writer:
        writer.write("x", VECTORS[0])
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def write_npy(path: Path, rows: NDArray[np.float32], fingerprint: str = "0123456789abcdef") -> Path:
    with vector_file(path, VectorNote(fingerprint, rows.shape[1], "float32", True)) as writer:
        for row in rows:
            writer.write("", row)
    return path


def test_vectors_come_back_as_a_memory_map(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    opened = open_vectors(write_npy(tmp_path / "a.npy", rows))
    assert isinstance(opened.rows, np.memmap) and len(opened) == 4
    np.testing.assert_array_equal(opened.rows, rows)
    (tmp_path / "raw.f32").write_bytes(rows.tobytes())
    (tmp_path / "raw.f32.json").write_bytes((tmp_path / "a.npy.json").read_bytes())
    np.testing.assert_array_equal(open_vectors(tmp_path / "raw.f32").rows, rows)


def test_vectors_of_two_encoders_are_not_compared(tmp_path: Path) -> None:
    rows = np.ones((2, 3), np.float32)
    a, b = write_npy(tmp_path / "a.npy", rows), write_npy(tmp_path / "b.npy", rows, "fedcba9876543210")
    with pytest.raises(FingerprintError, match=r"a.npy has vectors of 0123456789abcdef, .*b.npy of fedcba9876543210"):
        check_same_space(open_vectors(a), open_vectors(b))
    narrow = write_npy(tmp_path / "c.npy", rows[:, :2])
    with pytest.raises(DataError, match=r"float32 of 3 dimensions, .*c.npy float32 of 2: encode both alike"):
        check_same_space(open_vectors(a), open_vectors(narrow))


def test_damaged_vectors_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none.npy.json: missing; it says which model made none.npy"):
        open_vectors(tmp_path / "none.npy")
    path = write_npy(tmp_path / "a.npy", np.ones((2, 3), np.float32))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(DataError, match=r"a.npy: no readable vectors"):
        open_vectors(path)
    path.unlink()
    with pytest.raises(DataError, match=r"a.npy: no such file"):
        open_vectors(path)
    (tmp_path / "a.npy.json").write_text('{"dim": 3}')
    with pytest.raises(DataError, match=r"a.npy.json: damaged"):
        open_vectors(path)
