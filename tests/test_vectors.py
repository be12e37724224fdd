"""Files of vectors."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from xsent.errors import DataError, FingerprintError, MissingExtraError
from xsent.options import Vectors
from xsent.vector_output import vector_file
from xsent.vectors import VectorNote, check_same_space, open_vectors

VECTORS = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
NOTE = VectorNote("0123456789abcdef", 7, "float32", normalized=False)


def write(path: Path, vectors: Vectors = VECTORS, note: VectorNote = NOTE, *, force: bool = False) -> None:
    with vector_file(path, note, force=force) as writer:
        for row, vector in enumerate(vectors):
            writer.write(f'"{row}" é', vector)


def test_jsonl_keeps_every_bit(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text("utf-8").splitlines()]
    assert [row["sentence"] for row in rows] == [f'"{row}" é' for row in range(300)]
    assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), VECTORS)


@pytest.mark.parametrize("taken", ["a.npy", "a.npy.json"])
def test_nothing_is_overwritten_without_force(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("old")
    with pytest.raises(FileExistsError, match="--force"):
        write(tmp_path / "a.npy")
    assert (tmp_path / taken).read_text() == "old"
    write(tmp_path / "a.npy", force=True)
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


def test_unknown_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends in \.npy or \.jsonl or \.parquet or \.f32"):
        write(tmp_path / "a.csv")


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_raw_files_hold_float32(tmp_path: Path, precision: str) -> None:
    with pytest.raises(ValueError, match=f"a.f32: .f32 holds float32, not {precision}; give a name that ends in .npy"):
        write(tmp_path / "a.f32", VECTORS, VectorNote("f", 8, precision, normalized=True))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "uint8"])
def test_parquet(tmp_path: Path, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("xsent.vector_output.STEP", 128)
    vectors = (VECTORS * 20).astype(precision)
    note = VectorNote("f", 56 if precision == "uint8" else 7, precision.replace("uint8", "binary"), normalized=True)
    write(tmp_path / "a.parquet", vectors, note)
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [128, 128, 44]
    table = file.read()
    write(tmp_path / "b.parquet", VECTORS[:0])
    assert parquet.read_table(tmp_path / "b.parquet").column_names == ["sentence", "vector"]
    assert table["sentence"].to_pylist() == [f'"{row}" é' for row in range(300)]
    assert np.array_equal(np.array(table["vector"].to_pylist(), precision), vectors)


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow is not installed; pip install 'xsent\[parquet\]'"):
        write(tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def write_npy(path: Path, rows: NDArray[np.float32], fingerprint: str = "0123456789abcdef") -> Path:
    with vector_file(path, VectorNote(fingerprint, rows.shape[1], "float32", True)) as writer:
        for row in rows:
            writer.write("", row)
    return path


def test_vectors_come_back_as_a_memory_map(tmp_path: Path) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    for name in ("a.npy", "a.f32"):
        opened = open_vectors(write_npy(tmp_path / name, rows))
        assert isinstance(opened.rows, np.memmap) and len(opened) == 4
        np.testing.assert_array_equal(opened.rows, rows)
        write(tmp_path / f"empty{name}", VECTORS[:0])
        assert open_vectors(tmp_path / f"empty{name}").rows.shape == (0, 7)
    assert (tmp_path / "a.f32").read_bytes() == rows.astype("<f4").tobytes()


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
    content = path.read_bytes()
    for length in (len(content) - 4, 100, 0):
        path.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"a.npy: cut short; encode the text again"):
            open_vectors(path)
    path.write_bytes(b"no NumPy file" * 20)
    with pytest.raises(DataError, match=r"a.npy: no readable vectors"):
        open_vectors(path)
    path.unlink()
    with pytest.raises(DataError, match=r"a.npy: no such file"):
        open_vectors(path)
    (tmp_path / "a.npy.json").write_text('{"dim": 3}')
    with pytest.raises(DataError, match=r"a.npy.json: damaged"):
        open_vectors(path)


@pytest.mark.parametrize(("precision", "dtype", "width"), [("int8", np.int8, 16), ("binary", np.uint8, 2)])
def test_int8_and_binary_files_are_opened(tmp_path: Path, precision: str, dtype: type, width: int) -> None:
    rows = np.random.default_rng(0).integers(0, 100, (5, width)).astype(dtype)
    write(tmp_path / "a.npy", rows, VectorNote("f", 16, precision, normalized=True))
    opened = open_vectors(tmp_path / "a.npy")
    assert (opened.rows.dtype, opened.note.dim) == (dtype, 16)
    assert np.array_equal(opened.rows, rows)


def test_a_file_must_be_what_its_note_says(tmp_path: Path) -> None:
    path = write_npy(tmp_path / "a.npy", np.ones((2, 8), np.float32))
    beside = tmp_path / "a.npy.json"
    note = json.loads(beside.read_text())
    beside.write_text(json.dumps({**note, "precision": "binary"}))
    with pytest.raises(DataError, match=r"a.npy: float32 of shape \[2, 8\], its note says binary of 8 dimensions"):
        open_vectors(path)
    for change in ({"precision": "int4"}, {"precision": ["x"]}, {"dim": "8"}, {"dim": 0}, {"dim": True}):
        beside.write_text(json.dumps({**note, **change}))
        with pytest.raises(DataError, match=r"a.npy.json: damaged"):
            open_vectors(path)


def test_only_files_that_can_be_mapped_are_opened(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl")
    with pytest.raises(DataError, match=r"a.jsonl: expected vectors in a .npy or .f32 file"):
        open_vectors(tmp_path / "a.jsonl")


def test_raw_file_that_was_cut_is_named(tmp_path: Path) -> None:
    write(tmp_path / "a.f32")
    path = tmp_path / "a.f32"
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(DataError, match=r"8,397 bytes are no whole number of vectors of 28"):
        open_vectors(path)
