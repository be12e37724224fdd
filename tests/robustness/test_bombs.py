"""Small files that claim, or unpack to, more than any memory holds, under a limit of memory."""

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from commands import assert_refused, edit_json, start, write_lines

from xsent import LinearClassifier, SentenceEncoder
from xsent.bundle import MANIFEST
from xsent.files.vectors import VectorMeta, vector_file

resource = pytest.importorskip("resource")

TERABYTE = 10**12


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "a.txt", ["Anna sees Boris.", "Clara"] * 2)


def refused(message: str, *arguments: object) -> None:
    limit_memory = lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))  # noqa: E731
    process = start(*arguments, stdout=-1, preexec_fn=limit_memory)
    out, err = process.communicate()
    assert_refused((process.returncode, out.decode(), err.decode()), message)


def test_a_manifest_without_end(mini_bundle: Path, tmp_path: Path) -> None:
    bundle = Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))
    os.truncate(bundle / MANIFEST, TERABYTE)
    refused("xsent.json: damaged .1,000,000,000,000 bytes", "info", bundle)


def test_a_head_without_end(encoder: SentenceEncoder, texts: Path, tmp_path: Path) -> None:
    vectors = encoder.encode(texts.read_text().splitlines())
    LinearClassifier.fit(vectors, ["a", "b"] * 2, fingerprint=encoder.fingerprint).save(tmp_path / "a.npz")
    os.truncate(tmp_path / "a.npz", TERABYTE)
    predict = ("classify", "predict", tmp_path / "a.npz", texts, "--model", encoder.bundle.path)
    edit_json(tmp_path / "a.json", dim=TERABYTE)
    refused("a.npz: damaged .1,000,000,000,000 bytes, expected at most 1,073,741,824", *predict)


def test_vectors_without_end(texts: Path, tmp_path: Path) -> None:
    with vector_file(tmp_path / "a.npy", VectorMeta("abc", 7, "float32", normalized=True)) as out:
        out.write("Anna", np.ones(7, np.float32))
    with (tmp_path / "a.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (TERABYTE // 28, 7)}
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(TERABYTE + 200)
    refused("a.npy: damaged", "mine", texts, texts, "--src-vectors", tmp_path / "a.npy")


def test_a_line_without_end(tmp_path: Path) -> None:
    bomb = tmp_path / "a.gz"
    bomb.write_bytes(gzip.compress(bytes(1 << 24)) * 400)  # 110 KB, 6.7 GB
    refused("a.gz:1: over 67,108,864 bytes", "encode", bomb, "--output", tmp_path / "a.npy")
    assert [file.name for file in tmp_path.iterdir()] == ["a.gz"]
