"""`xsent encode --engine ray` on a cluster of two workers on this machine."""

import gc
import gzip
import json
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Runner, assert_refused, file_names, raises, write_lines

from xsent import DataError, FingerprintError
from xsent.progress import Progress

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
pytest.importorskip("ray")

from xsent_apps import ray  # noqa: E402
from xsent_apps.ray import PARTS, Part, Report, find_files, find_parts, start_job  # noqa: E402

TEXTS = ["Anna sees Boris.", "", "one\u2028line", 'David "voit" Éléna', "Clara.\r", *(f"Anna {n}" for n in range(15))]
TEXTS.append("[2024-05-01 10:00:00] INFO Anna")
NOTE = {"fingerprint": "abc", "precision": "float32"}
OPTIONS = {"resume": True, "force": False}


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    from ray import init, shutdown

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ours = os.pathsep.join(map(str, [Path(__file__).parent, Path(__file__).parents[1]]))
        patch.setenv("PYTHONPATH", ours, prepend=os.pathsep)  # workers import this module
        # A thread of Ray's reports a dead worker at any time after, on what is by then the output of another command.
        patch.setattr("ray._private.worker.print_to_stdstream", lambda *_, **__: None)
        init("local", num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
        yield
        shutdown()


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ray, "ROWS", 5)
    yield
    gc.collect()  # the workers of a run that failed, whose CPUs the next one waits for


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "texts.txt", TEXTS)


@pytest.fixture
def command(texts: Path, mini_bundle: Path) -> list[object]:
    return ["encode", texts, "--model", mini_bundle, "--output", texts.with_name("parts"), "--engine", "ray"]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [row for part in sorted(folder.glob(PARTS)) for row in pq.read_table(part).to_pylist()]


class DiesOnce(ray.Worker):
    """A worker that is killed in its second part, if none was before."""

    def encode(self, part: Part) -> Report:  # noqa: D102
        sign = part.path.with_name("_killed")
        if part.row == 5 and not sign.exists():
            sign.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode(part)


@pytest.mark.usefixtures("cluster")
def test_two_workers_give_the_vectors_of_the_local_path(
    run: Runner, command: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ["--precision", "float16", "--truncate-dim", 16, "--clean"]
    assert run(*command[:4], "--output", tmp_path / "local.parquet", *options)[0] == 0
    local = pq.read_table(tmp_path / "local.parquet")

    monkeypatch.setattr(ray, "Worker", DiesOnce)  # another one does its part
    code, _, err = run(*command, "--workers", 2, *options)
    assert code == 0 and "Warning: 1 of 21 lines are empty; their vectors are zero\n" in err
    assert re.search(r"^21 lines in [\d.]+ s, [\d,]+ a second; [\d.]+ s of CPU time", err, re.MULTILINE)
    names = {f"part-{number:06}.parquet" for number in range(5)}
    assert file_names(tmp_path / "parts") == {*names, "_job.json", "_killed"}
    found = rows(tmp_path / "parts")
    assert [row.pop("row") for row in found] == list(range(len(TEXTS))) and found == local.to_pylist()
    note = json.loads(local.schema.metadata[b"xsent"])
    for name in names:
        assert json.loads(pq.read_schema(tmp_path / "parts" / name).metadata[b"xsent"]).items() >= note.items()


@pytest.mark.usefixtures("cluster")
def test_ctrl_c_keeps_parts_and_resume_makes_the_others(
    run: Runner, command: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(progress: Progress, count: int) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "advance", interrupt)
        code, _, err = run(*command, "--workers", 1)
    assert (
        code == 130 and "complete and kept; --resume makes the others." in err and err.endswith("Error: interrupted\n")
    )
    first, *others = sorted((tmp_path / "parts").glob(PARTS))  # a worker may still end one more
    for part in others:
        part.unlink()
    before = first.stat().st_mtime_ns
    assert_refused(run(*command), "parts: has parts; --resume makes the others, --force starts over")
    assert run(*command, "--resume")[0] == 0
    assert first.stat().st_mtime_ns == before and len(rows(tmp_path / "parts")) == len(TEXTS)
    assert run(*command, "--resume") == (0, "", "All parts are there; nothing was left to do.\n")
    assert_refused(run(*command, "--resume", "--precision", "int8"), "precision was float32, is now int8")
    write_lines(tmp_path / "texts.txt", [*TEXTS, "Anna"])
    assert_refused(run(*command, "--resume"), "parts: of another job: input was ")


@pytest.mark.usefixtures("cluster")
def test_what_a_worker_cannot_do_is_one_line(run: Runner, command: list[object], texts: Path) -> None:
    code, _, err = run(*command, "--workers", 3)  # before it Ray may warn of settings of its own
    assert code == 1 and err.endswith("Error: 3 workers of 1 threads: there are 2 CPUs; give fewer --workers\n")
    texts.write_bytes(b"Anna\n" * 6 + b"caf\xe9\n")
    code, _, err = run(*command)
    assert code == 1 and err.endswith(f"Error: {texts}:7: not UTF-8 (byte 0xe9 at 4); convert the file to UTF-8\n")
    assert file_names(texts.with_name("parts")) <= {"_job.json", "part-000000.parquet"}
    write_lines(texts, [*TEXTS[:6], "word " * 300])
    gc.collect()  # the workers of the run that failed, whose CPUs the next one waits for
    code, _, err = run(*command, "--force", "--on-long", "error")
    assert code == 1 and "Error: sentence 7 (counted from 1): " in err.splitlines()[-1]


def test_a_folder_of_files(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbfAnna\r\n\nBoris")
    (folder / "b.gz").write_bytes(gzip.compress("\n".join(TEXTS[5:12]).encode(), mtime=0))
    (folder / "_SUCCESS").touch()
    (folder / "empty.txt").touch()
    files = find_files(folder)
    found = list(find_parts(files, None, tmp_path))
    assert [(part.row, part.line, part.sentences) for part in found] == [
        (0, 0, ["Anna", "", "Boris"]),
        (3, 0, TEXTS[5:10]),
        (8, 5, TEXTS[10:12]),
    ]
    pq.write_table(pa.table({"id": range(12), "title": [*TEXTS[5:16], None]}), tmp_path / "a.parquet")
    parts = list(find_parts([tmp_path / "a.parquet"], "title", tmp_path))
    assert [sentence for part in parts for sentence in part.sentences] == [*TEXTS[5:16], ""]
    message = r"name the column: --column NAME \(columns: id, title\)"
    raises(DataError, message, list, find_parts([tmp_path / "a.parquet"], None, tmp_path))
    raises(DataError, "empty; expected one text a line", list, find_parts([folder / "empty.txt"], None, tmp_path))
    raises(DataError, "no file there; expected a file of texts", find_files, tmp_path / "none")


def test_a_file_that_changes_while_it_is_read_is_an_error(texts: Path, tmp_path: Path) -> None:
    parts = find_parts([texts], None, tmp_path)
    next(parts)
    with texts.open("a") as file:
        file.write("One more.\n")
    raises(DataError, "changed while it was read; run it again once the file is complete", list, parts)


def test_another_job_is_not_resumed(texts: Path, tmp_path: Path) -> None:
    folder = tmp_path / "parts"
    start_job(folder, [texts], NOTE, **OPTIONS)
    found = list(find_parts([texts], None, folder))
    found[0].path.write_bytes(b"damaged")
    pq.write_table(pa.table({"row": range(5)}), found[1].path)
    assert [ray.is_complete(part) for part in found] == [False, True, False, False, False]
    start_job(folder, [texts], NOTE, **OPTIONS)
    other = {**NOTE, "fingerprint": "xyz"}
    raises(FingerprintError, "fingerprint was abc, is now xyz", start_job, folder, [texts], other, **OPTIONS)
    raises(DataError, "input was ", start_job, folder, [texts, texts], NOTE, **OPTIONS)
    os.utime(texts, ns=(0, 0))
    raises(DataError, "input was ", start_job, folder, [texts], NOTE, **OPTIONS)
    os.truncate(folder / "_job.json", 10)
    raises(DataError, r"_job\.json: damaged .*--force starts over", start_job, folder, [texts], NOTE, **OPTIONS)
    start_job(folder, [texts], NOTE, resume=False, force=True)
    assert not any(part.path.exists() for part in found)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "--engine", "ray", "--output", "parts"], "--engine ray needs a file or a folder to read and --output"),
        ([".", "--engine", "ray", "--output", "parts"], "parts: lies in the input .; name a folder of its own"),
        (["-", "--workers", "2"], "--workers is for --engine ray"),
        (["a.txt", "--id", "n", "--engine", "ray", "--output", "parts"], "--id is for the local engine, not"),
    ],
)
def test_what_engines_refuse(run: Runner, arguments: list[object], message: str) -> None:
    assert_refused(run("encode", *arguments), message)


def test_without_ray_the_extra_is_named(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "xsent_apps.ray")
    message = "ray is not installed; pip install 'xsent[ray]'"
    assert_refused(run("encode", "a.txt", "--engine", "ray", "--output", "parts"), message)
