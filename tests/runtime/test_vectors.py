"""Files of vectors."""

import io
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from xsent.errors import DataError, MissingExtraError
from xsent.files.vectors import VectorMeta, open_vectors, vector_file
from xsent.precision import Vectors

VECTORS = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
NOTE = VectorMeta("0123456789abcdef", 7, "float32", normalized=False)


def write(path: Path, vectors: Vectors = VECTORS, note: VectorMeta = NOTE) -> None:
    with vector_file(path, note) as writer:
        for row, vector in enumerate(vectors):
            writer.write(f'"{row}" é', vector)


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "uint8"])
def test_parquet(tmp_path: Path, precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr("xsent.files.vectors.STEP", 128)
    vectors = (VECTORS * 20).astype(precision)
    note = VectorMeta("f", 56 if precision == "uint8" else 7, precision.replace("uint8", "binary"), normalized=True)
    write(tmp_path / "a.parquet", vectors, note)
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [128, 128, 44]
    table = file.read()
    write(tmp_path / "b.parquet", VECTORS[:0])
    assert parquet.read_table(tmp_path / "b.parquet").column_names == ["sentence", "vector"]
    assert table["sentence"].to_pylist() == [f'"{row}" é' for row in range(300)]
    assert np.array_equal(np.array(table["vector"].to_pylist(), precision), vectors)


@pytest.mark.parametrize("name", ["a.npy", "a.f32"])
def test_files_may_be_empty(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, VECTORS[:0])
    assert open_vectors(tmp_path / name).rows.shape == (0, 7)


def test_parquet_wants_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"pyarrow is not installed; pip install 'xsent\[parquet\]'"):
        write(tmp_path / "a.parquet")
    assert not list(tmp_path.iterdir())


def header(rows: int) -> bytes:
    """A NumPy file that claims to have so many."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 7)})
    return file.getvalue() + bytes(8400)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npy", -4, r"a.npy: damaged .*; encode the text again"),
        ("a.npy", 0, r"a.npy: damaged"),
        ("a.npy", b"no NumPy file" * 20, r"a.npy: damaged"),
        ("a.npy", b"PK\5\6" + bytes(18), r"a.npy: damaged"),  # an archive without files
        *(("a.npy", header(rows), r"a.npy: (damaged|float32 of shape)") for rows in (-300, 10**6, 2**62, 2**70)),
        ("a.npy", None, r"a.npy: missing"),
        ("a.f32", -3, r"damaged \(8,397 bytes are no whole number of vectors of 28"),
        ("a.npy.json", None, r"a.npy.json: missing; it says which model made a.npy"),
        ("a.npy.json", b'{"dim": 3}', r"a.npy.json: damaged"),
        ("a.npy.json", {"precision": "binary", "dim": 8}, r"shape \[300, 7\], its note says binary of 8 dimensions"),
        *(
            ("a.npy.json", change, r"a.npy.json: damaged")
            for change in ({"precision": "int4"}, {"precision": ["x"]}, {"dim": "8"}, {"dim": 0}, {"dim": True})
        ),
        ("a.jsonl", 10, r"a.jsonl: damaged"),
    ],
)
def test_damaged_vectors_are_named(
    tmp_path: Path, name: str, content: int | bytes | dict[str, object] | None, message: str
) -> None:
    file, path = tmp_path / name, tmp_path / name.removesuffix(".json")
    write(path)
    whole = file.read_bytes()
    file.unlink()
    if isinstance(content, dict):
        content = json.dumps({**json.loads(whole), **content}).encode()
    if content is not None:
        file.write_bytes(whole[:content] if isinstance(content, int) else content)
    with pytest.raises(DataError, match=message):
        open_vectors(path)


@pytest.mark.parametrize("name", ["a.npy", "a.npy.json"])
def test_pipes_and_folders_are_not_waited_for(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.npy")
    for make in (os.mkfifo, os.mkdir):
        (tmp_path / name).unlink()
        make(tmp_path / name)
        with pytest.raises(DataError, match=rf"{name}: damaged \(no plain file\)"):
            open_vectors(tmp_path / "a.npy")
        (tmp_path / name).rename(tmp_path / make.__name__)
        (tmp_path / name).touch()
