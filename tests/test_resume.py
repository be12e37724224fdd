"""Going on after a kill: the same bytes, nothing encoded twice, nothing mixed up."""

import errno
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import Runner, is_one_line

from xsent import SentenceEncoder
from xsent.bundle import builtin_path
from xsent.errors import DataError, FingerprintError
from xsent.options import Vectors
from xsent.vector_output import VectorOutput, vector_file
from xsent.vectors import VectorNote
from xsent.vectors import _publish_note as publish_note

FORMATS = ["a.npy", "a.f32", "a.jsonl", "a.parquet"]
NOTE = VectorNote("0123456789abcdef", 8, "float32", normalized=True)
JOB: dict[str, object] = {"on_long": "warn"}
ROWS = 13
VECTORS = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
KEPT = "4 lines are encoded and kept; --resume goes on."
GOING_ON = "Going on after line 4; warnings count the lines after it only.\n"
TEXTS = [f"Anna {row}" for row in range(ROWS)]


class Killed(BaseException):
    """Stands for the end of a process."""


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.vector_output.STEP", 4)


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capfd)


@contextmanager
def killed() -> Iterator[None]:
    with pytest.raises(Killed):
        yield


def write(path: Path, stop: int = ROWS, texts: list[str] = TEXTS, **options: object) -> int:
    """Write rows up to `stop`, there the process ends; returns the first row that was written."""
    settings = {"note": NOTE, "job": JOB, **options}
    with vector_file(path, **settings) as output:  # type: ignore[arg-type]
        return write_rows(output, stop, texts)


def write_rows(output: VectorOutput, stop: int, texts: list[str]) -> int:
    first = output.rows
    for text in output.remaining(texts):
        if output.rows == stop:
            raise Killed
        output.write(text, VECTORS[output.rows])
    return first


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("stop", range(ROWS))
def test_the_bytes_are_those_of_a_run_without_a_break(tmp_path: Path, name: str, stop: int) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    whole, broken = tmp_path / "whole" / name, tmp_path / "broken" / name
    for path in (whole, broken):
        path.parent.mkdir()
    write(whole)
    with killed():
        write(broken, stop)
    assert names(broken.parent) == (set() if stop < 4 else {f".{name}.part", f".{name}.part.json"})
    assert write(broken, resume=True) == stop // 4 * 4
    assert names(broken.parent) == {name, f"{name}.json"}
    assert broken.read_bytes() == whole.read_bytes()
    assert broken.with_name(f"{name}.json").read_bytes() == whole.with_name(f"{name}.json").read_bytes()


def test_two_breaks(tmp_path: Path) -> None:
    with killed():
        write(tmp_path / "a.npy", 6)
    with killed():
        write(tmp_path / "a.npy", 7, resume=True)
    with killed():
        write(tmp_path / "a.npy", 9, resume=True)
    assert write(tmp_path / "a.npy", resume=True) == 8
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


def test_with_nothing_to_go_on_with_it_starts(tmp_path: Path) -> None:
    assert write(tmp_path / "a.npy", resume=True) == 0
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


def test_what_was_cut_short_is_neither_lost_nor_used_unasked(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with killed():
        write(path, 10)
    kept = (tmp_path / ".a.npy.part").read_bytes()
    with pytest.raises(FileExistsError, match=r"got to line 8; --resume goes on, --force starts over"):
        write(path)
    assert (tmp_path / ".a.npy.part").read_bytes() == kept
    assert write(path, force=True) == 0
    assert names(tmp_path) == {"a.npy", "a.npy.json"}


def test_starting_over_forgets_the_old_journal(tmp_path: Path) -> None:
    with killed():
        write(tmp_path / "a.npy", 10)
    with killed():
        write(tmp_path / "a.npy", 2, force=True)
    assert names(tmp_path) == set()
    assert write(tmp_path / "a.npy", resume=True) == 0


def test_an_older_output_stays_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write(path)
    old = path.read_bytes()
    with killed():
        write(path, 10, force=True)
    assert path.read_bytes() == old
    with pytest.raises(FileExistsError, match="exists; --force replaces it"):
        write(path)
    assert path.read_bytes() == old
    assert write(path, resume=True) == 8  # it was begun with force
    assert names(tmp_path) == {"a.npy", "a.npy.json"}


def test_an_output_that_is_complete_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    write(path)
    for _ in range(2):
        with pytest.raises(FileExistsError, match="complete already; there is nothing to resume"):
            write(path, resume=True)
        with killed():
            write(tmp_path / "b.npy", 10)
        for end in ("", ".json"):  # a file that came from elsewhere is no output to replace either
            (tmp_path / f".b.npy.part{end}").replace(tmp_path / f".a.npy.part{end}")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"job": {"on_long": "split"}}, "on_long was warn, is now split"),
        ({"job": {"on_long": "warn", "bytes of input": 5}}, "bytes of input was None, is now 5"),
        ({"note": VectorNote("0123456789abcdef", 8, "float16", True)}, "precision was float32, is now float16"),
        ({"note": VectorNote("0123456789abcdef", 4, "float32", True)}, "dim was 8, is now 4"),
        ({"note": VectorNote("0123456789abcdef", 8, "float32", False)}, "normalized was True, is now False"),
        ({"texts": ["Anna 0", "other", *TEXTS[2:]]}, "its first 8 lines had another text, the input has changed"),
        ({"texts": TEXTS[:7]}, "its first 8 lines had another text, the input has changed"),
        ({"texts": TEXTS[1:]}, "its first 8 lines had another text, the input has changed"),
    ],
)
def test_another_job_is_refused_and_nothing_is_lost(tmp_path: Path, change: dict[str, object], message: str) -> None:
    with killed():
        write(tmp_path / "a.npy", 10)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(DataError, match=f"a.npy: cannot be gone on with: {message}"):
        write(tmp_path / "a.npy", resume=True, **change)
    assert set(before) == names(tmp_path)
    assert write(tmp_path / "a.npy", resume=True) == 8
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


def test_another_model_is_refused_with_both_fingerprints(tmp_path: Path) -> None:
    with killed():
        write(tmp_path / "a.npy", 10)
    other = VectorNote("fedcba9876543210", 8, "float32", normalized=True)
    with pytest.raises(FingerprintError, match="was 0123456789abcdef, is now fedcba9876543210"):
        write(tmp_path / "a.npy", resume=True, note=other)


@pytest.mark.parametrize("content", [None, b"", b"short", b"{"])
def test_damaged_leftovers_are_named(tmp_path: Path, content: bytes | None) -> None:
    with killed():
        write(tmp_path / "a.npy", 10)
    damaged = tmp_path / (".a.npy.part.json" if content == b"{" else ".a.npy.part")
    damaged.unlink() if content is None else damaged.write_bytes(content)
    message = "part.json: damaged" if content == b"{" else "part: shorter than its journal says"
    with pytest.raises(DataError, match=f"{message}.*--force starts over"):
        write(tmp_path / "a.npy", resume=True)
    assert write(tmp_path / "a.npy", force=True) == 0


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    with vector_file(tmp_path / "a.npy", NOTE, job=JOB) as output:
        write_rows(output, ROWS, TEXTS)
        for options in ({"force": True}, {"resume": True}):
            with pytest.raises(DataError, match=r"\.a\.npy\.part: another process is writing it"):
                write(tmp_path / "a.npy", **options)
    assert np.array_equal(np.load(tmp_path / "a.npy"), VECTORS)


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_an_output_that_is_being_published_is_locked(tmp_path: Path, name: str) -> None:
    pytest.importorskip("fcntl")
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    refused: list[str] = []

    def publish(*arguments: Any) -> None:  # noqa: ANN401
        for options in ({"force": True}, {"resume": True}):
            with pytest.raises(DataError, match="another process is writing it") as error:
                write(path, **options)
            refused.append(str(error.value))
        publish_note(*arguments)

    with mock.patch("xsent.vectors._publish_note", publish):
        write(path)
    assert len(refused) == 2
    assert names(tmp_path) == {name, f"{name}.json"}


@pytest.mark.parametrize("name", FORMATS)
def test_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    monkeypatch.setattr("xsent.part_file._LOCKS", False)
    with killed():
        write(tmp_path / name, 3)
    assert names(tmp_path) == set()
    with killed():
        write(tmp_path / name, 10)
    assert write(tmp_path / name, resume=True) == 8
    assert write(tmp_path / name, force=True) == 0
    assert names(tmp_path) == {name, f"{name}.json"}


def test_what_another_process_begins_after_the_renaming_is_its_own(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "a.npy"
    replace = os.replace

    with ExitStack() as stack:

        def begin(source: Path, target: Path) -> None:
            replace(source, target)
            if target == path:
                other = stack.enter_context(vector_file(path, NOTE, job=JOB, force=True))
                with killed():
                    write_rows(other, 6, TEXTS)

        with mock.patch("os.replace", begin):
            write(path)
        assert names(tmp_path) == {"a.npy", "a.npy.json", ".a.npy.part", ".a.npy.part.json"}
        stack.pop_all()  # it was killed
    gc.collect()
    assert np.array_equal(np.load(path), VECTORS)
    assert write(path, resume=True) == 4
    assert np.array_equal(np.load(path), VECTORS)


def test_a_lock_on_a_file_that_was_published_meanwhile_does_not_count(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    path = tmp_path / "a.npy"
    flock = fcntl.flock

    def publish_first(*arguments: object) -> None:
        if not path.exists():
            (tmp_path / ".a.npy.part").write_bytes(b"complete")
            (tmp_path / ".a.npy.part").rename(path)
        flock(*arguments)

    with (
        mock.patch("fcntl.flock", publish_first),
        pytest.raises(FileExistsError, match="exists; --force replaces it"),
    ):
        write(path)
    assert path.read_bytes() == b"complete"


@pytest.mark.parametrize("step", ["arrow_to_parquet", "_publish_note", "_sync"])
@pytest.mark.parametrize("old", [False, True])
def test_a_disk_that_is_full_in_the_end(tmp_path: Path, step: str, old: bool) -> None:
    pytest.importorskip("pyarrow")
    path = tmp_path / "a.parquet"
    if old:
        write(path)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with (
        mock.patch(f"xsent.vectors.{step}", side_effect=OSError(errno.ENOSPC, "full")),
        pytest.raises(OSError, match="make room, then --resume goes on") as error,
    ):
        write(path, force=old)
    assert error.value.filename == str(path)
    assert names(tmp_path) == {*before, ".a.parquet.part", ".a.parquet.part.json"}
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())
    assert write(path, resume=True) == 12
    assert names(tmp_path) == {"a.parquet", "a.parquet.json"}


@pytest.mark.parametrize(("full", "first"), [(1, None), (2, 4)])
def test_a_disk_without_room_for_the_journal(tmp_path: Path, full: int, first: int | None) -> None:
    writes = 0

    def dump(*arguments: Any, **options: Any) -> None:  # noqa: ANN401
        nonlocal writes
        writes += 1
        if writes == full:
            raise OSError(errno.ENOSPC, "full")
        json_dump(*arguments, **options)

    json_dump = json.dump
    advice = "nothing was kept" if first is None else "make room, then --resume goes on"
    with mock.patch("xsent.part_file.json.dump", dump), pytest.raises(OSError, match=advice):
        write(tmp_path / "a.npy")
    assert bool(names(tmp_path)) == (first is not None)
    assert write(tmp_path / "a.npy", resume=True) == (first or 0)
    assert names(tmp_path) == {"a.npy", "a.npy.json"}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_vectors_never_lack_their_note(tmp_path: Path, name: str, old: bool) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    if old:
        write(path, note=VectorNote("fedcba9876543210", 8, "float32", normalized=True))
    replace = os.replace

    def stop(source: Path, target: Path) -> None:
        if target == path:
            raise Killed
        replace(source, target)

    with mock.patch("os.replace", stop), killed():
        write(path, force=old)
    assert names(tmp_path) == {f"{name}.json", f".{name}.part", f".{name}.part.json"}
    assert write(path, resume=True) == 12
    assert names(tmp_path) == {name, f"{name}.json"}


def test_without_a_job_nothing_is_left(tmp_path: Path) -> None:
    with killed():
        write(tmp_path / "a.npy", 10, job=None)
    assert names(tmp_path) == set()


def start_in_small_steps(
    *arguments: object, preexec_fn: Callable[[], object] | None = None
) -> "subprocess.Popen[bytes]":
    script = "import xsent.vector_output; xsent.vector_output.STEP = 100; from xsent.cli import main; main()"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=preexec_fn)


@pytest.mark.parametrize("name", ["a.npy", "a.parquet"])
def test_a_killed_command_goes_on(mini_bundle: Path, tmp_path: Path, name: str) -> None:
    if name.endswith("parquet"):
        pytest.importorskip("pyarrow")
    texts = [f"Anna {row % 50}, Boris" for row in range(450)]
    lines = "".join(f"{text}\n" for text in texts).encode()
    output, journal = tmp_path / name, tmp_path / f".{name}.part.json"
    arguments = ("encode", "-", "--output", output, "--model", mini_bundle)
    process = start_in_small_steps(*arguments)
    assert process.stdin is not None
    process.stdin.write(lines)
    process.stdin.flush()
    for _ in range(600):
        if journal.exists():
            break
        time.sleep(0.05)
    process.kill()  # SIGKILL
    process.communicate()
    assert names(tmp_path) >= {f".{name}.part", f".{name}.part.json"}
    assert not output.exists()

    process = start_in_small_steps(*arguments, "--resume")
    _, err = process.communicate(lines)
    assert (process.returncode, err.startswith(b"Going on after line ")) == (0, True)
    assert names(tmp_path) == {name, f"{name}.json"}
    vectors = SentenceEncoder(mini_bundle).encode(texts)
    with mock.patch("xsent.vector_output.STEP", 100):
        note = VectorNote(**json.loads((tmp_path / f"{name}.json").read_text()))
        with vector_file(tmp_path / f"whole{output.suffix}", note) as whole:
            for text, vector in zip(texts, vectors, strict=True):
                whole.write(text, vector)
    assert output.read_bytes() == (tmp_path / f"whole{output.suffix}").read_bytes()


def test_a_full_disk_keeps_what_a_checkpoint_covers(mini_bundle: Path, tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    file, output = tmp_path / "a.txt", tmp_path / "a.npy"
    file.write_text("Anna sees Boris.\n" * 450)
    arguments = ("encode", file, "--output", output, "--model", mini_bundle)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))  # noqa: E731
    process = start_in_small_steps(*arguments, preexec_fn=limit)
    _, err = process.communicate()
    assert process.returncode == 1
    assert err.decode() == f"Error: {output}: File too large; make room, then --resume goes on\n"
    process = start_in_small_steps(*arguments, "--resume")
    assert is_one_line(process.communicate()[1].decode())
    assert len(np.load(output)) == 450


@pytest.fixture
def interrupted(run: Runner, tmp_path: Path, mini_bundle: Path) -> list[object]:
    """The arguments of a command that was interrupted in its seventh line; four are kept."""
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    arguments = ["encode", tmp_path / "a.txt", "--output", tmp_path / "a.npy", "--model", mini_bundle, "--threads", 1]
    write = VectorOutput.write

    def interrupt(self: VectorOutput, sentence: str, vector: Vectors) -> None:
        if self.rows == 6:
            raise KeyboardInterrupt
        write(self, sentence, vector)

    with mock.patch.object(VectorOutput, "write", interrupt):
        assert run(*arguments) == (130, "", f"{tmp_path / 'a.npy'}: {KEPT}\nError: interrupted\n")
    return arguments


def test_only_the_rest_is_encoded(run: Runner, interrupted: list[object], mini_bundle: Path, tmp_path: Path) -> None:
    encoded: list[str] = []
    encode_iter = SentenceEncoder.encode_iter

    def note_down(self: SentenceEncoder, sentences: Iterable[str], **options: Any) -> Iterator[Vectors]:  # noqa: ANN401
        return encode_iter(self, (encoded.append(text) or text for text in sentences), **options)

    with mock.patch.object(SentenceEncoder, "encode_iter", note_down):
        assert run(*interrupted, "--resume") == (0, "", GOING_ON)
    assert encoded == TEXTS[4:]
    assert np.array_equal(np.load(tmp_path / "a.npy"), SentenceEncoder(mini_bundle).encode(TEXTS))


def test_a_command_that_was_cut_short_says_so(run: Runner, interrupted: list[object], tmp_path: Path) -> None:
    message = "an unfinished run got to line 4; --resume goes on, --force starts over"
    assert run(*interrupted) == (1, "", f"Error: {tmp_path / 'a.npy'}: {message}\n")
    assert run(*interrupted, "--force") == (0, "", "")


@pytest.mark.parametrize("line", [0, 12])
def test_a_changed_input_is_refused(run: Runner, interrupted: list[object], tmp_path: Path, line: int) -> None:
    changed = [*TEXTS[:line], "Boris and Clara", *TEXTS[line + 1 :]]
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in changed))
    code, out, err = run(*interrupted, "--resume")
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert f"{tmp_path / 'a.npy'}: cannot be gone on with: bytes of input was 94, is now" in err


def test_an_input_of_equal_size_but_other_text_is_refused(
    run: Runner, interrupted: list[object], tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("".join(f"{text}\n" for text in TEXTS).replace("Anna 2", "Emma 2"))
    code, out, err = run(*interrupted, "--resume")
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert "its first 4 lines had another text, the input has changed" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--precision", "int8"], "precision was float32, is now int8"),
        (["--truncate-dim", 8], "dim was 32, is now 8"),
        (["--no-normalize"], "normalized was True, is now False"),
        (["--on-long", "split"], "on_long was warn, is now split"),
    ],
)
def test_other_options_are_refused(run: Runner, interrupted: list[object], options: list[object], message: str) -> None:
    code, out, err = run(*interrupted, "--resume", *options)
    assert (code, out) == (1, "")
    assert is_one_line(err)
    assert message in err
    assert run(*interrupted, "--resume") == (0, "", GOING_ON)


def test_the_model_must_be_the_same(run: Runner, interrupted: list[object], mini_bundle: Path) -> None:
    code, _, err = run(*interrupted, "--resume", "--model", builtin_path())
    assert code == 1
    assert is_one_line(err)
    assert f"was {SentenceEncoder(mini_bundle).fingerprint}, is now {SentenceEncoder().fingerprint}" in err


def test_resume_needs_a_file(run: Runner) -> None:
    assert run("encode", "-", "--resume") == (1, "", "Error: --resume goes on with a file: name it with --output\n")


def test_resume_and_force_exclude_each_other(run: Runner, interrupted: list[object]) -> None:
    message = "--resume goes on and --force starts over: give one of them"
    assert run(*interrupted, "--resume", "--force") == (1, "", f"Error: {message}\n")
    assert run(*interrupted, "--resume") == (0, "", GOING_ON)


def test_a_complete_output_says_so(run: Runner, interrupted: list[object], tmp_path: Path) -> None:
    assert run(*interrupted, "--resume")[0] == 0
    message = "complete already; there is nothing to resume"
    assert run(*interrupted, "--resume") == (1, "", f"Error: {tmp_path / 'a.npy'}: {message}\n")


@pytest.mark.parametrize("on_long", ["warn", "error"])
def test_lines_are_counted_and_numbered(run: Runner, mini_bundle: Path, tmp_path: Path, on_long: str) -> None:
    lines = [f"Anna {row}" for row in range(20)]
    lines[1] = lines[18] = ""
    lines[17] = "Anna " * 100
    (tmp_path / "a.txt").write_text("".join(f"{line}\n" for line in lines))
    arguments = ["encode", tmp_path / "a.txt", "--output", tmp_path / "a.npy", "--model", mini_bundle]
    arguments += ["--threads", 1, "--on-long", on_long]
    write = VectorOutput.write

    def interrupt(self: VectorOutput, sentence: str, vector: Vectors) -> None:
        if self.rows == 6:
            raise KeyboardInterrupt
        write(self, sentence, vector)

    with mock.patch.object(VectorOutput, "write", interrupt):
        assert run(*arguments)[0] == 130
    code, _, err = run(*arguments, "--resume")
    assert err.startswith(GOING_ON)
    if on_long == "error":
        assert code == 1
        assert "Error: sentence 18 (counted from 1): " in err
    else:
        assert code == 0
        assert "Warning: 1 of 16 sentences had more than 64 tokens" in err
        assert "Warning: 1 of 16 lines are empty" in err
