"""What damaged texts, corpora, notes and jobs do to whoever reads them; see `test_fuzz_readers`."""

import gzip
import lzma
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutation import survive
from texts import pdf

from xsent.classification.topics import read_examples
from xsent.files.text import read_fields, read_lines
from xsent_apps.notes.read import read_passages
from xsent_train.data.corpus import Corpus

PAIRS = "talk\tde\tThe cat sleeps.\tDie Katze schläft.\n".encode() * 5
TEXTS = {"a.tsv": PAIRS, "a.tsv.gz": gzip.compress(PAIRS, mtime=0), "a.tsv.xz": lzma.compress(PAIRS)}
PAGE = "<!doctype html><title>x</title><p>one<script>a<b</script><!-- c --><ul><li>two &amp; <![CDATA[x]]><a href='x'>y"
NOTES = {
    "a.html": PAGE.encode(),
    "a.md": b"# Trip\n\n- milk\n- bread\n\nWe leave on Friday. The train is at nine.\n",
    "a.pdf": pdf("The cat sleeps.", "The dog barks."),
    "a.txt": "été".encode("utf-16"),
}
READERS: tuple[Callable[[Path], Iterable[object]], ...] = (
    read_lines,
    lambda file: read_fields(file, 4, "a layout"),
    lambda file: read_examples(file).texts,
    lambda file: Corpus([file]),
)


def written(folder: Path, name: str, content: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    return folder / name


@pytest.fixture(scope="module", params=TEXTS)
def text(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("text"), request.param, TEXTS[request.param])


@given(data=st.data(), reader=st.sampled_from(READERS))
def test_lines(data: st.DataObject, reader: Callable[[Path], Iterable[object]], text: Path) -> None:
    survive(data, text.parent, lambda _: list(reader(text)))


@pytest.fixture(scope="module", params=NOTES)
def note(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "a.pdf":
        pytest.importorskip("pypdf")
    return written(tmp_path_factory.mktemp("note"), request.param, NOTES[request.param])


@given(data=st.data())
def test_notes(data: st.DataObject, note: Path) -> None:
    survive(data, note.parent, lambda _: read_passages(note))


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    arrow = pytest.importorskip("pyarrow.parquet")
    file = written(tmp_path_factory.mktemp("parquet"), "a.parquet", b"")
    arrow.write_table(pytest.importorskip("pyarrow").table({"text": ["one", None, "two"], "number": [1, 2, 3]}), file)
    return file


@given(data=st.data())
def test_parquet(data: st.DataObject, parquet: Path) -> None:
    from xsent_apps.ray import find_partitions

    survive(data, parquet.parent, lambda _: [list(part.sentences()) for part in find_partitions(parquet, "text")])


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Callable[[Path], object]]:
    """The folder of an unfinished job, and what resumes it."""
    pytest.importorskip("pyarrow")
    from xsent_apps.ray import find_partitions, start_job

    folder, note = tmp_path_factory.mktemp("job"), {"fingerprint": "abc"}
    partitions = find_partitions(written(folder, "a.txt", b"a\nb\nc\nd\n"), "")
    start_job(folder / "out", partitions, note, resume=False, force=False)
    (folder / "out" / partitions[0].part).touch()
    return folder / "out", lambda out: start_job(out, partitions, note, resume=True, force=False)


@given(data=st.data())
def test_jobs(data: st.DataObject, job: tuple[Path, Callable[[Path], object]]) -> None:
    survive(data, *job)
