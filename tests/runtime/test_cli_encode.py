"""`xsent encode`."""

import importlib
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import Runner, assert_refused, interrupt, start, write_lines

from xsent import SentenceEncoder
from xsent.files.vectors import VectorOutput, open_vectors
from xsent.precision import Precision, Vectors

TEXTS = ["Anna sees Boris.", "", 'David "voit" Éléna']
EMPTY = "Warning: 1 of 3 lines are empty; their vectors are zero\n"


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "sentences.txt", TEXTS)


CHANGES: dict[str, Callable[[Path], object]] = {
    "shrink": lambda file: os.truncate(file, 170),
    "grow": lambda file: os.truncate(file, 40_000),
    "replace": lambda file: write_lines(file.with_name("b.txt"), ["Anna sees Clara."] * 2_000).replace(file),
    "remove": Path.unlink,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changing_input(run: Runner, mini_bundle: Path, tmp_path: Path, change: Callable[[Path], None]) -> None:
    file, write = write_lines(tmp_path / "a.txt", ["Anna sees Boris."] * 2_000), VectorOutput.write

    def change_once(self: VectorOutput, sentence: str, vector: Vectors) -> None:
        write(self, sentence, vector)
        if self.rows == 1:
            change(file)

    message = f"{file}: changed while it was read; run it again once the file is complete"
    with mock.patch.object(VectorOutput, "write", change_once), mock.patch("xsent.files.vectors.STEP", 10**6):
        assert_refused(run("encode", file, "--output", tmp_path / "a.npy", "--model", mini_bundle), message)
    assert not list(tmp_path.glob(".*")) + list(tmp_path.glob("*.npy*"))


def test_interrupt_exits_130_and_leaves_nothing(mini_bundle: Path, tmp_path: Path) -> None:
    arguments = ("encode", "-", "--output", tmp_path / "a.npy", "--model", mini_bundle)
    ended = interrupt(*arguments, lines=b"Anna sees Boris.\n" * 1000, once=(tmp_path / ".a.npy.part").exists)
    said = b"No line is kept yet; run the same command again.\nError: interrupted\n"
    assert (ended, list(tmp_path.iterdir())) == ((130, said), [])


def test_a_warning_names_the_option_that_helps(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    write_lines(tmp_path / "long.txt", ["Anna sees Boris. " * 60])
    code, _, said = run("encode", tmp_path / "long.txt", "--output", tmp_path / "long.npy", "--model", mini_bundle)
    assert code == 0 and "were cut; --on-long split encodes all of them" in said


@pytest.mark.parametrize(
    ("suffix", "precision"),
    [
        *((".npy", precision) for precision in ("float32", "float16", "int8", "binary")),
        *((suffix, "float32") for suffix in (".f32", ".jsonl", ".parquet")),
        *((None, precision) for precision in ("float32", "int8", "binary")),
    ],
)
def test_every_format_and_precision(
    run: Runner, encoder: SentenceEncoder, sentences: Path, suffix: str | None, precision: Precision
) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    expected = encoder.encode(TEXTS, precision=precision, truncate_dim=16)
    options = ["--precision", precision, "--truncate-dim", 16, "--model", encoder.bundle.path]
    output = sentences.with_name(f"out{suffix}")
    source = [sentences, "--output", output] if suffix else ["-"]
    code, out, err = run("encode", *source, *options, stdin=sentences.read_text("utf-8"))
    assert (code, err) == (0, EMPTY + (f"{output}: 3 vectors of 16 numbers\n" if suffix else ""))
    if suffix in (".npy", ".f32"):
        opened = open_vectors(output)
        note = (opened.note.fingerprint, opened.note.precision, opened.note.dim)
        assert note == (encoder.fingerprint, precision, 16) and opened.rows.dtype == expected.dtype
        assert isinstance(opened.rows, np.memmap) and np.array_equal(opened.rows, expected)
        assert suffix == ".npy" or output.read_bytes() == expected.astype("<f4").tobytes()
        return
    if suffix == ".parquet":
        rows = importlib.import_module("pyarrow.parquet").read_table(output).to_pylist()
    else:
        rows = [json.loads(line) for line in (output.read_text() if suffix else out).splitlines()]
    assert [row["sentence"] for row in rows] == TEXTS
    assert np.array_equal(np.array([row["vector"] for row in rows], expected.dtype), expected)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_standard_output_that_is_full_or_closed(mini_bundle: Path, sentences: Path) -> None:
    sentences.write_text("Anna sees Boris.\n" * 2000)  # more than a buffer holds
    with open("/dev/full", "wb") as full:
        process = start("encode", sentences, "--model", mini_bundle, stdout=full)
        assert_refused((process.wait(), "", process.communicate()[1].decode()), "No space left on device")
    process = start("encode", sentences, "--model", mini_bundle, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""  # it ends quietly
    process.stderr.close()
    assert process.wait() == 1
