"""The example that encodes a folder on a Ray cluster, here of two workers on this machine."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Runner, raises, write_lines
from lazy import Lazy, needs
from offline import offline

from xsent import DataError, FingerprintError

__all__ = ["offline"]
pytestmark = [needs("ray", "pyarrow"), pytest.mark.filterwarnings("ignore:.*deprecated")]  # by Ray, of its own
encode_folder = Lazy("xsent_apps.examples.ray_vectors:encode_folder")
pq, ray = Lazy("pyarrow.parquet"), Lazy("ray")

TEXTS = {"a.txt": ["Anna sees Boris.", "", 'David "voit" Éléna'], "b.txt": ["Clara.\r", "one\u2028line"], "c.txt": [""]}


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # A thread of Ray's reports a dead worker at any time after, on what is by then the output of another test.
        patch.setattr("ray._private.worker.print_to_stdstream", lambda *_, **__: None)
        ray.init("local", num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
        yield
        ray.shutdown()


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capfd)


@pytest.fixture
def mini_bundle() -> Path:
    return Path(os.environ["XSENT_MINI_BUNDLE"])


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "texts").mkdir()
    for name, lines in TEXTS.items():
        write_lines(tmp_path / "texts" / name, lines)
    return tmp_path / "texts"


def parts_in(folder: Path) -> set[str]:
    return {path.name for path in folder.glob("*.parquet")}


def test_parts_are_those_of_the_command_and_only_missing_ones_are_made(
    run: Runner, texts: Path, tmp_path: Path, mini_bundle: Path
) -> None:
    vectors = tmp_path / "vectors"
    assert encode_folder(texts, vectors, mini_bundle, 2) == 3
    assert parts_in(vectors) == {f"{name}.parquet" for name in TEXTS}
    for name in TEXTS:
        assert run("encode", texts / name, "--model", mini_bundle, "--output", tmp_path / f"{name}.parquet")[0] == 0
        assert pq.read_table(vectors / f"{name}.parquet").equals(pq.read_table(tmp_path / f"{name}.parquet"))

    assert encode_folder(texts, vectors, mini_bundle, 2) == 0
    before = {name: (vectors / f"{name}.parquet").stat().st_mtime_ns for name in TEXTS}
    (vectors / "b.txt.parquet").unlink()
    os.utime(texts / "c.txt", ns=(before["c.txt"] + 10**9,) * 2)  # newer texts
    assert encode_folder(texts, vectors, mini_bundle, 1) == 2
    after = {name: (vectors / f"{name}.parquet").stat().st_mtime_ns for name in TEXTS}
    assert {name for name in TEXTS if after[name] == before[name]} == {"a.txt"}
    raises(FingerprintError, "a.txt.parquet", encode_folder, texts, vectors)


def test_an_error_of_a_worker_keeps_the_other_parts(texts: Path, tmp_path: Path, mini_bundle: Path) -> None:
    (texts / "b.txt").write_bytes(b"caf\x81\n")
    raises(DataError, r"b\.txt:1: not UTF-8", encode_folder, texts, tmp_path / "vectors", mini_bundle, 1)
    assert "b.txt.parquet" not in parts_in(tmp_path / "vectors") and parts_in(tmp_path / "vectors")
    write_lines(texts / "b.txt", ["café"])
    encode_folder(texts, tmp_path / "vectors", mini_bundle, 1)
    assert parts_in(tmp_path / "vectors") == {f"{name}.parquet" for name in TEXTS}


def test_a_folder_without_texts_is_refused(tmp_path: Path) -> None:
    raises(DataError, "contains no files", encode_folder, tmp_path, tmp_path / "vectors")
