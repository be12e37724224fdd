"""Files of vectors; going on after a kill: the same bytes, nothing encoded twice, nothing mixed up."""

import errno
import fcntl
import io
import json
import os
import resource
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import Runner, assert_refused, file_names, raises, start, write_lines

from xsent import SentenceEncoder
from xsent.bundle import builtin_path
from xsent.errors import DataError, MissingExtraError
from xsent.files.vectors import VectorMeta, VectorOutput, open_vectors, vector_file
from xsent.precision import Vectors

FORMATS = ["a.npy", "a.f32", "a.jsonl", "a.parquet"]
NOTE = VectorMeta("0123456789abcdef", 8, "float32", normalized=True)
JOB: dict[str, object] = {"on_long": "warn"}
ROWS = 13
VECTORS = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
KEPT = "4 lines are encoded and kept; continue with --resume."
CONTINUING = "Continuing after line 4; warnings count only the lines after it.\n"
TEXTS = [f"Anna {row}" for row in range(ROWS)]
PARTS = {".a.npy.part", ".a.npy.part.json"}
OTHER_TEXT = "a.npy: the input does not begin with the 8 lines that were read before the interruption"


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.files.vectors.STEP", 4)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.npy"


def write(path: Path, stop: int = ROWS, texts: list[str] = TEXTS, rows: Vectors = VECTORS, **options: Any) -> int:  # noqa: ANN401
    """Write rows up to `stop`, there the process ends; returns the first row that was written."""
    if path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
    with vector_file(path, **{"note": NOTE, "job": JOB, **options}) as output:
        first = output.rows
        for text in output.remaining(texts):
            if output.rows == stop:
                raise Killed
            output.write(text, rows[output.rows])
        return first


@pytest.mark.parametrize("precision", ["float32", "float16", "int8", "uint8"])
def test_parquet(tmp_path: Path, precision: str) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    vectors = (VECTORS * 20).astype(precision)
    note = VectorMeta("f", 64 if precision == "uint8" else 8, precision.replace("uint8", "binary"), normalized=True)
    texts = [f'"{row}" é' for row in range(ROWS)]
    write(tmp_path / "a.parquet", texts=texts, rows=vectors, note=note)
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)] == [4, 4, 4, 1]
    table = file.read()
    write(tmp_path / "b.parquet", texts=[])
    assert parquet.read_table(tmp_path / "b.parquet").column_names == ["sentence", "vector"]
    assert table["sentence"].to_pylist() == texts
    assert np.array_equal(np.array(table["vector"].to_pylist(), precision), vectors)


def test_empty_files_and_a_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.npy", "a.f32"):
        write(tmp_path / name, texts=[])
        assert open_vectors(tmp_path / name).rows.shape == (0, 8)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = r"pyarrow is not installed; run pip install .xsent\[parquet\]."
    with pytest.raises(MissingExtraError, match=message), vector_file(tmp_path / "a.parquet", NOTE):
        pass
    assert not list(tmp_path.glob("*.parquet*"))


def header(rows: int) -> bytes:
    """A NumPy file that claims to have so many."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 8)})
    return file.getvalue() + bytes(416)


def test_damaged_files(tmp_path: Path) -> None:
    for name, content, message in [
        ("a.npy", -4, r"a.npy: damaged .*; encode the text again"),
        ("a.npy", 0, r"a.npy: damaged"),
        ("a.npy", b"no NumPy file" * 20, r"a.npy: damaged"),
        ("a.npy", b"PK\5\6" + bytes(18), r"a.npy: damaged"),  # an archive without files
        *(("a.npy", header(rows), r"a.npy: (damaged|float32 of shape)") for rows in (-300, 10**6, 2**62, 2**70)),
        ("a.npy", None, r"a.npy: no such file; create it with xsent encode"),
        ("a.f32", -3, r"damaged \(413 bytes are not a multiple of the 32 bytes per vector"),
        ("a.npy.json", None, r"a.npy.json: missing; it names the model of a.npy"),
        ("a.npy.json", b'{"dim": 3}', r"a.npy.json: damaged"),
        ("a.npy.json", {"precision": "binary", "dim": 8}, r"shape \[13, 8\], but its note has binary of 8 dimensions"),
        *(
            ("a.npy.json", change, r"a.npy.json: damaged")
            for change in (
                {"precision": "int4"},
                {"precision": ["x"]},
                {"dim": "8"},
                {"dim": 0},
                {"dim": True},
                {"fingerprint": 1},
            )
        ),
        ("a.jsonl", 10, r"a.jsonl: damaged"),
        ("a.jsonl", b'{"sentence": "a", "vector": [1, 2]}\n', r"row 1: \[2\] numbers, expected 8"),
    ]:
        file, path = tmp_path / name, tmp_path / name.removesuffix(".json")
        write(path, force=True)
        whole = file.read_bytes()
        file.unlink()
        if isinstance(content, dict):
            content = json.dumps({**json.loads(whole), **content}).encode()
        if content is not None:
            file.write_bytes(whole[:content] if isinstance(content, int) else content)
        raises(DataError, message, open_vectors, path)
    raises(
        DataError,
        "a.txt: expected vectors in a file that ends in .npy, .jsonl, .parquet or .f32",
        open_vectors,
        tmp_path / "a.txt",
    )


@pytest.mark.parametrize("name", ["a.npy", "a.npy.json"])
def test_pipes_and_folders_are_not_waited_for(tmp_path: Path, name: str) -> None:
    write(tmp_path / "a.npy")
    for make in (os.mkfifo, os.mkdir):
        (tmp_path / name).unlink()
        make(tmp_path / name)
        raises(DataError, rf"{name}: damaged \(not a regular file\)", open_vectors, tmp_path / "a.npy")
        (tmp_path / name).rename(tmp_path / make.__name__)
        (tmp_path / name).touch()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("stop", [0, 3, 4, 5, 8, 12])
def test_the_bytes_are_those_of_a_run_without_a_break(tmp_path: Path, name: str, stop: int) -> None:
    whole, broken = tmp_path / "whole" / name, tmp_path / "broken" / name
    for path in (whole, broken):
        path.parent.mkdir()
    write(whole)
    raises(Killed, "^$", write, broken, stop)
    assert file_names(broken.parent) == (set() if stop < 4 else {f".{name}.part", f".{name}.part.json"})
    raises(Killed, "^$", write, broken, max(stop, 2), resume=True)
    assert write(broken, resume=True) == stop // 4 * 4
    assert file_names(broken.parent) == {name, f"{name}.json"}
    for end in (name, f"{name}.json"):
        assert broken.with_name(end).read_bytes() == whole.with_name(end).read_bytes()


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_two_processes_do_not_write_one_file(tmp_path: Path, name: str) -> None:
    path, flock = tmp_path / name, fcntl.flock
    replace, refused = os.replace, []

    def publish(source: Path, target: Path) -> None:  # also while a note or a file gets its name, and after that
        for when in (lambda: None, lambda: replace(source, target)):
            when()
            for options in ({"force": True}, {"resume": True}):
                with pytest.raises(DataError, match=r"part\.json: another process is writing it") as error:
                    write(path, **options)
                refused.append(error)

    with mock.patch("os.replace", publish):
        write(path)
    assert len(refused) == 8

    def go_first(*arguments: object) -> None:  # a lock on a journal that went meanwhile does not count
        path.with_name(f".{name}.part.json").unlink()
        flock(*arguments)

    with mock.patch("fcntl.flock", go_first), pytest.raises(DataError, match="another process is writing it"):
        write(path, force=True)
    assert file_names(tmp_path) == {name, f"{name}.json"}


@pytest.mark.parametrize(("full", "first"), [(0, 0), (1, 4)])
def test_a_disk_without_room_for_a_checkpoint(path: Path, full: int, first: int) -> None:
    calls = [mock.DEFAULT] * 9
    calls[full] = OSError(errno.ENOSPC, "full")
    dumps = mock.patch("xsent.files.vectors.json.dumps", wraps=json.dumps, side_effect=calls)
    advice = "make room, then continue with --resume" if first else "nothing was kept"
    with dumps, pytest.raises(OSError, match=advice):
        write(path)
    assert file_names(path.parent) == (PARTS if first else set())
    assert write(path, resume=True) == first


SMALL_STEPS = "import xsent.files.vectors as output; output.STEP = 100"


def interrupt(command: Callable[[], tuple[int, str, str]]) -> tuple[int, str, str]:
    """Run a command that is interrupted in its seventh line; four are kept."""
    write = VectorOutput.write

    def stop(self: VectorOutput, sentence: str, vector: Vectors) -> None:
        if self.rows == 6:
            raise KeyboardInterrupt
        write(self, sentence, vector)

    with mock.patch.object(VectorOutput, "write", stop):
        return command()


@pytest.fixture
def interrupted(run: Runner, path: Path, mini_bundle: Path) -> list[object]:
    """The arguments of a command that was interrupted."""
    file = write_lines(path.with_name("a.txt"), TEXTS)
    arguments = ["encode", file, "--output", path, "--model", mini_bundle, "--threads", 1]
    assert interrupt(lambda: run(*arguments)) == (130, "", f"{path}: {KEPT}\nError: interrupted\n")
    return arguments


def test_only_the_rest_is_encoded(run: Runner, interrupted: list[object], mini_bundle: Path, path: Path) -> None:
    encoded: list[str] = []
    encode_items = SentenceEncoder.encode_items

    def note_down(self: SentenceEncoder, sentences: Iterable[str], **options: Any) -> Iterator[Any]:  # noqa: ANN401
        return encode_items(self, (encoded.append(text) or text for text in sentences), **options)

    with mock.patch.object(SentenceEncoder, "encode_items", note_down):
        assert run(*interrupted, "--resume") == (0, "", f"{CONTINUING}{path}: 13 vectors of 32 numbers\n")
    assert encoded == TEXTS[4:]
    assert np.array_equal(np.load(path), SentenceEncoder(mini_bundle).encode(TEXTS))
    assert run(*interrupted, "--force") == (0, "", f"{path}: 13 vectors of 32 numbers\n")


@pytest.mark.parametrize("on_long", ["warn", "error"])
def test_lines_are_counted_and_numbered(run: Runner, mini_bundle: Path, path: Path, on_long: str) -> None:
    lines = [f"Anna {row}" for row in range(20)]
    lines[1] = lines[18] = ""
    lines[17] = "Anna " * 100
    file = write_lines(path.with_name("a.txt"), lines)
    arguments = ["encode", file, "--output", path, "--model", mini_bundle, "--threads", 1, "--on-long", on_long]
    assert interrupt(lambda: run(*arguments))[0] == 130
    code, _, err = run(*arguments, "--resume")
    assert err.startswith(CONTINUING)
    if on_long == "error":
        assert code == 1
        assert "Error: sentence 18 (counted from 1): " in err
        assert "shorten it, use --on-long split, or --on-long warn" in err
    else:
        assert code == 0
        assert "Warning: 1 of 15 sentences had more than 64 tokens" in err
        assert "Warning: 1 of 16 lines are empty" in err


def test_what_was_cut_short_is_neither_lost_nor_used_unasked(path: Path) -> None:
    raises(Killed, "^$", write, path, 10, job=None)
    assert file_names(path.parent) == set()  # without a job nothing is left
    raises(Killed, "^$", write, path, 10)
    part, journal = path.with_name(".a.npy.part"), path.with_name(".a.npy.part.json")
    kept = part.read_bytes()
    raises(FileExistsError, r"stopped at line 8; continue with --resume or overwrite with --force", write, path)
    assert part.read_bytes() == kept
    journal.write_bytes(journal.read_bytes()[:-9])  # a checkpoint that a kill has cut does not count
    assert write(path, resume=True) == 4
    assert np.array_equal(np.load(path), VECTORS)
    for file, content, message in (
        (journal, b"{\n", r"part\.json: damaged .*; start over"),
        (part, b"x", "part: shorter than its journal records; start over"),
    ):
        raises(Killed, "^$", write, path, 10, force=True)
        file.write_bytes(content)
        raises(DataError, message, write, path, resume=True, force=True)
    raises(Killed, "^$", write, path, 2, force=True)
    assert file_names(path.parent) == {"a.npy", "a.npy.json"}


def test_a_full_disk_keeps_what_a_checkpoint_covers(mini_bundle: Path, path: Path) -> None:
    file = path.with_name("a.txt")
    file.write_text("Anna sees Boris.\n" * 450)
    arguments = ("encode", file, "--output", path, "--model", mini_bundle)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))  # noqa: E731
    _, err = start(*arguments, preexec_fn=limit, before=SMALL_STEPS).communicate()
    assert err.decode() == f"Error: {path}: File too large; make room, then continue with --resume\n"
    assert start(*arguments, "--resume", before=SMALL_STEPS).communicate()[1].endswith(b": 450 vectors of 32 numbers\n")
    assert len(np.load(path)) == 450


def test_other_input_and_options_are_refused(
    run: Runner, interrupted: list[object], mini_bundle: Path, path: Path
) -> None:
    both = f"was {SentenceEncoder(mini_bundle).fingerprint}, is now {SentenceEncoder().fingerprint}"
    for options, message in (
        (["--precision", "int8"], "precision was float32, is now int8"),
        (["--truncate-dim", 8], "dim was 32, is now 8"),
        (["--on-long", "split"], "on_long was warn, is now split"),
        (["--model", builtin_path()], both),
        (["--force"], "use either --resume or --force"),
    ):
        assert_refused(run(*interrupted, "--resume", *options), message)
    file = path.with_name("a.txt")
    before = file.read_text()
    for old, new, message in (
        ("Anna 0", "Boris and Clara", "bytes of input was 94, is now"),
        ("Anna 2", "Emma 2", "does not begin with the 4"),
    ):
        file.write_text(before.replace(old, new))
        assert_refused(run(*interrupted, "--resume"), message)
    file.write_text(before)
    assert run(*interrupted, "--resume") == (0, "", f"{CONTINUING}{path}: 13 vectors of 32 numbers\n")
    content = path.read_bytes()
    for _ in range(2):  # the same command once more
        warning = f"Warning: {path}: already complete; there is nothing to resume\n"
        assert run(*interrupted, "--resume") == (0, "", warning)
    for options, message in (
        (["--truncate-dim", 16], "complete, but of another job: its dim is 32, not 16; use the same, or start over"),
        (["--precision", "int8"], "its precision is float32, not int8"),
        (["--model", builtin_path()], "its fingerprint is "),
    ):
        assert_refused(run(*interrupted, "--resume", *options), message)
    for texts in (f"{before}Anna 13\n", before.partition("\n")[2]):  # the input has grown, or shrunk
        file.write_text(texts)
        message = (
            f"complete, but the input had 13 texts, and now {len(texts.splitlines())}; encode all of them with --force"
        )
        assert_refused(run(*interrupted, "--resume"), message)
    assert path.read_bytes() == content
    path.with_name("a.npy.json").unlink()
    assert_refused(run(*interrupted, "--resume"), "missing; it names the model")
    assert run("encode", "-", "--resume") == (1, "", "Error: --resume needs --output\n")


def test_an_older_output_stays_until_the_new_one_is_complete(path: Path) -> None:
    path.with_name("a.npy.json").write_text("old")  # a note alone
    raises(FileExistsError, "exists; --force replaces it", write, path)
    assert path.with_name("a.npy.json").read_text() == "old"
    write(path, force=True)
    old = path.read_bytes()
    raises(Killed, "^$", write, path, 10, force=True)
    raises(FileExistsError, "exists; --force replaces it", write, path)
    for texts in (["Anna 0", "other", *TEXTS[2:]], TEXTS[:7]):
        raises(DataError, OTHER_TEXT, write, path, resume=True, texts=texts)
    assert path.read_bytes() == old
    assert write(path, resume=True) == 8  # it was begun with force
    assert file_names(path.parent) == {"a.npy", "a.npy.json"}
    for _ in range(2):
        raises(FileExistsError, "already complete; there is nothing to resume", write, path, resume=True)
        raises(Killed, "^$", write, path.with_name("b.npy"), 10)
        for end in ("", ".json"):  # a file that came from elsewhere is no output to replace either
            path.with_name(f".b.npy.part{end}").replace(path.with_name(f".a.npy.part{end}"))
