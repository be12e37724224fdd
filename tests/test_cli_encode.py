"""`xsent encode`."""

import importlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, hear_interrupts, is_one_line, start

from xsent import SentenceEncoder
from xsent.options import Precision, Vectors
from xsent.vector_output import VectorOutput
from xsent.vectors import open_vectors

TEXTS = ["Anna sees Boris.", "", "David voit Elena"]
EMPTY = "Warning: 1 of 3 lines are empty; their vectors are zero\n"


@pytest.fixture
def sentences(tmp_path: Path) -> Path:
    file = tmp_path / "sentences.txt"
    file.write_text("".join(f"{text}\n" for text in TEXTS))
    return file


def test_encode_to_npy_with_a_note_beside(run: Runner, mini_bundle: Path, sentences: Path) -> None:
    output = sentences.with_name("out.npy")
    assert run("encode", sentences, "--output", output, "--model", mini_bundle) == (0, "", EMPTY)
    encoder = SentenceEncoder(mini_bundle)
    assert np.array_equal(np.load(output), encoder.encode(TEXTS))
    assert json.loads(output.with_name("out.npy.json").read_text())["fingerprint"] == encoder.fingerprint


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_encode_in_every_precision(run: Runner, mini_bundle: Path, sentences: Path, precision: Precision) -> None:
    output = sentences.with_name("out.npy")
    options = ["--precision", precision, "--truncate-dim", 16, "--model", mini_bundle]
    assert run("encode", sentences, "--output", output, *options)[0] == 0
    expected = SentenceEncoder(mini_bundle).encode(TEXTS, precision=precision, truncate_dim=16)
    opened = open_vectors(output)
    assert (opened.note.precision, opened.note.dim, opened.rows.dtype) == (precision, 16, expected.dtype)
    assert np.array_equal(opened.rows, expected)
    code, out, _ = run("encode", sentences, *options)
    rows = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [row["sentence"] for row in rows] == TEXTS
    assert np.array_equal(np.array([row["vector"] for row in rows], expected.dtype), expected)


@pytest.mark.parametrize("suffix", [".f32", ".jsonl", ".parquet"])
def test_encode_to_other_formats(run: Runner, mini_bundle: Path, sentences: Path, suffix: str) -> None:
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    output = sentences.with_name(f"out{suffix}")
    assert run("encode", sentences, "--output", output, "--model", mini_bundle)[0] == 0
    expected = SentenceEncoder(mini_bundle).encode(TEXTS)
    if suffix == ".f32":
        assert output.read_bytes() == expected.tobytes()
        assert np.array_equal(open_vectors(output).rows, expected)
        return
    if suffix == ".jsonl":
        rows = [json.loads(line) for line in output.read_text().splitlines()]
    else:
        rows = importlib.import_module("pyarrow.parquet").read_table(output).to_pylist()
    assert [row["sentence"] for row in rows] == TEXTS
    assert np.array_equal(np.array([row["vector"] for row in rows], np.float32), expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--output", "a.csv"], "a.csv: expected a name that ends in .npy or .jsonl or .parquet or .f32"),
        (["--output", "a.f32", "--precision", "int8"], "a.f32: .f32 holds float32, not int8"),
        (["--precision", "int8", "--no-normalize"], "precision = 'int8' keeps no lengths"),
        (["--precision", "binary", "--truncate-dim", "9"], "truncate_dim = 9 must be a multiple of 8"),
        (["--truncate-dim", "33"], "truncate_dim = 33 must lie between 1 and 32"),
        (["--output", "nowhere/a.npy"], "nowhere/.a.npy.part.json: No such file or directory"),
    ],
)
def test_encode_refuses_options_that_cannot_be(
    run: Runner,
    mini_bundle: Path,
    sentences: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(sentences.parent)
    code, out, err = run("encode", sentences, "--model", mini_bundle, *options)
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert message in err
    assert list(sentences.parent.iterdir()) == [sentences]


def test_more_threads_than_cores_change_nothing(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"Anna {row}, Boris\n" for row in range(200)))
    for threads in (1, 64):
        options = ["--output", tmp_path / f"{threads}.npy", "--model", mini_bundle, "--threads", threads]
        assert run("encode", tmp_path / "a.txt", *options) == (0, "", "")
    assert (tmp_path / "1.npy").read_bytes() == (tmp_path / "64.npy").read_bytes()


@pytest.mark.parametrize("change", ["shrinks", "grows", "is replaced", "goes away"])
def test_an_input_that_changes_while_it_is_read(
    run: Runner, mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Anna sees Boris.\n" * 2_000)
    write = VectorOutput.write

    def change_once(self: VectorOutput, sentence: str, vector: Vectors) -> None:
        write(self, sentence, vector)
        if self.rows == 1:
            if change == "shrinks":
                os.truncate(file, 170)
            elif change == "grows":
                with file.open("a") as opened:
                    opened.write("Clara\n")
            else:
                file.unlink()
            if change == "is replaced":
                file.write_text("Anna sees Clara.\n" * 2_000)

    monkeypatch.setattr(VectorOutput, "write", change_once)
    monkeypatch.setattr("xsent.vector_output.STEP", 10**6)
    code, out, err = run("encode", file, "--output", tmp_path / "a.npy", "--model", mini_bundle)
    assert (code, out) == (1, "")
    assert err == f"Error: {file}: changed while it was read; run it again once the file is complete\n"
    assert not list(tmp_path.glob(".*")) + list(tmp_path.glob("*.npy*"))


def test_encode_reads_standard_input(mini_bundle: Path) -> None:
    process = start("encode", "--model", mini_bundle, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    out, _ = process.communicate(b"Anna\nClara\n")
    assert process.returncode == 0
    assert len(out.splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty; expected one sentence a line"),
        (b"good\ncaf\xe9\n", "2: not UTF-8"),
        (None, "cannot be read"),
    ],
)
def test_encode_refuses_bad_input_and_leaves_nothing(
    run: Runner, mini_bundle: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "in" / "a.txt"
    file.parent.mkdir()
    if content is not None:
        file.write_bytes(content)
    (tmp_path / "out").mkdir()
    code, out, err = run("encode", file, "--output", tmp_path / "out" / "a.npy", "--model", mini_bundle)
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert f"{file}:" in err
    assert message in err
    assert not list((tmp_path / "out").iterdir())


def test_encode_of_long_sentences(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Anna " * 100_000 + "\nClara\n")
    code, _, err = run("encode", file, "--output", tmp_path / "cut.npy", "--model", mini_bundle)
    assert code == 0
    assert is_one_line(err)
    assert err.startswith("Warning: 1 of 2 sentences had more than 64 tokens")
    options = ["--output", tmp_path / "x.npy", "--model", mini_bundle, "--on-long"]
    code, _, err = run("encode", file, *options, "error")
    assert code == 1
    assert is_one_line(err)
    assert run("encode", file, *options, "split") == (0, "", "")


def test_encode_of_a_language_that_the_model_does_not_know(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("სახლი დიდია.\nThe cat sleeps.\n", "utf-8")
    code, _, err = run("encode", tmp_path / "a.txt", "--output", tmp_path / "a.npy")
    assert code == 0
    assert is_one_line(err)
    assert err.startswith("Warning: 1 of 2 sentences are mostly of characters that this model does not know")


def test_encode_on_a_full_disk(mini_bundle: Path, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    file = tmp_path / "a.txt"
    file.write_text("Anna sees Boris.\n" * 2000)
    (tmp_path / "out").mkdir()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # noqa: E731
    output = tmp_path / "out" / "a.npy"
    process = start("encode", file, "--output", output, "--model", mini_bundle, preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == 1
    assert is_one_line(err.decode())
    assert f"{output}: File too large; nothing was kept" in err.decode()
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_standard_output(mini_bundle: Path, sentences: Path) -> None:
    with open("/dev/full", "wb") as full:
        process = start("encode", sentences, "--model", mini_bundle, stdout=full)
        _, err = process.communicate()
    assert process.returncode == 1
    assert is_one_line(err.decode())
    assert "No space left on device" in err.decode()


def test_closed_pipe_ends_quietly(mini_bundle: Path, tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("Anna sees Boris.\n" * 2000)
    process = start("encode", file, "--model", mini_bundle, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() == 1


def test_interrupt_exits_130_and_leaves_nothing(mini_bundle: Path, tmp_path: Path) -> None:
    arguments = ("encode", "-", "--output", tmp_path / "a.npy", "--model", mini_bundle)
    process = start(*arguments, stdin=subprocess.PIPE, preexec_fn=hear_interrupts)
    assert process.stdin is not None
    process.stdin.write(b"Anna sees Boris.\n" * 1000)
    process.stdin.flush()
    for _ in range(600):
        if list(tmp_path.glob(".a.npy.part")):
            break
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == b"Error: interrupted\n"
    assert not list(tmp_path.iterdir())
