"""Indexes made, added to, stopped, killed and resumed."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from indexes import LINES, Stop, contents, note, until

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.search import building as indexing
from xsent.search.building import build_index, extend_index
from xsent.search.index import SearchIndex
from xsent.search.manifest import IndexManifest


@pytest.fixture(scope="module")
def encoder(mini_bundle: Path) -> SentenceEncoder:
    return SentenceEncoder(mini_bundle, threads=1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "notes.index"


@pytest.fixture
def made(path: Path, encoder: SentenceEncoder) -> Path:
    build_index(path, LINES, encoder)
    return path


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "_SAVE_EVERY", 4)


@pytest.mark.parametrize("lines", [[], ["", "  "]])
def test_nothing_to_index_leaves_nothing(path: Path, encoder: SentenceEncoder, lines: list[str]) -> None:
    with pytest.raises(DataError, match=f"of {len(lines)} lines none has text"):
        build_index(path, lines, encoder)
    assert not list(path.parent.iterdir())


def test_an_index_is_replaced_only_by_force_and_nothing_else_ever(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    with pytest.raises(FileExistsError, match="--force replaces it, --add adds to it"):
        build_index(made, ["Boris"], encoder)
    with pytest.raises(Stop):
        build_index(made, until(LINES, 2), encoder, force=True)
    assert contents(made) == before
    build_index(made, ["Boris"], encoder, force=True)
    assert [entry.name for entry in made.parent.iterdir()] == [made.name]
    assert len(SearchIndex(made)) == 1
    mine = made.with_name("mine")
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match="not an index, so it is not replaced"):
        build_index(mine, ["Boris"], encoder, force=True)
    assert (mine / "letter.txt").read_text() == "dear"
    (made / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match=r"holds letter\.txt, which is of no index"):
        build_index(made, ["Boris"], encoder, force=True)
    assert len(SearchIndex(made)) == 1
    file = made.with_name("file")
    file.write_text("dear")
    for work in (build_index, extend_index):
        with pytest.raises(DataError, match="not an index"):
            work(file, ["Boris"], encoder)


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_the_user_is_left_alone(path: Path, encoder: SentenceEncoder, force: bool) -> None:
    mine = path.with_name(".notes.index.partial")
    mine.mkdir()
    (mine / "letter.txt").write_text("dear")
    with pytest.raises(DataError, match=r"\.notes\.index\.partial: holds letter\.txt"):
        build_index(path, LINES, encoder, force=force)
    assert contents(mine) == {"letter.txt": b"dear"}


def test_the_old_index_goes_last(made: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = contents(made)
    rename = Path.rename

    def fail_for_the_new_one(self: Path, target: Path) -> Path:
        if self.suffix == ".partial":
            raise Stop
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail_for_the_new_one)
        with pytest.raises(Stop):
            build_index(made, ["Boris"], encoder, force=True)
    assert contents(made) == before
    build_index(made, ["Boris"], encoder, force=True)
    assert [entry.name for entry in made.parent.iterdir()] == [made.name]


@pytest.mark.usefixtures("often")
def test_empty_lines_that_were_added_block_nothing(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    with pytest.raises(DataError, match="of 9 lines none has text"):
        extend_index(made, [""] * 9, encoder)
    assert contents(made) == before
    with pytest.raises(Stop):
        extend_index(made, until([""] * 50, 40), encoder)
    with pytest.raises(DataError, match="of 40 lines none has text"):
        extend_index(made, [""] * 40, encoder, resume=True)
    assert contents(made) == before


def test_adding_gives_what_indexing_at_once_gives(made: Path, encoder: SentenceEncoder) -> None:
    more = ["Clara sees Boris.", "", "David voit Elena."]
    manifest = extend_index(made, more, encoder)
    assert (manifest.lines, manifest.rows, manifest.start) == (53, 45, 50)
    whole = made.with_name("whole")
    build_index(whole, LINES + more, encoder)
    del (one := contents(made))["index.json"], (two := contents(whole))["index.json"]
    assert one == two
    ((hit,),) = SearchIndex(made).search(encoder, ["David voit Elena."], k=1)
    assert (hit.line, hit.text) == (53, "David voit Elena.")


def test_an_addition_that_fails_leaves_the_index_as_it_was(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    with pytest.raises(Stop):
        extend_index(made, until(LINES, 3), encoder)
    assert contents(made) == before
    with pytest.raises(DataError, match="none has text"):
        extend_index(made, [""], encoder)
    assert contents(made) == before


def test_an_addition_that_was_killed_leaves_the_index_usable(made: Path, encoder: SentenceEncoder) -> None:
    found = SearchIndex(made).search(encoder, ["Anna"], k=100)
    for name in ("vectors.f16", "rows.u64", "texts.txt"):
        with (made / name).open("ab") as file:
            file.write(b"half a li")
    assert SearchIndex(made).search(encoder, ["Anna"], k=100) == found
    SearchIndex(made).verify()
    extend_index(made, ["Clara"], encoder)
    ((hit,),) = SearchIndex(made).search(encoder, ["Clara"], k=1)
    assert (hit.line, hit.text) == (51, "Clara")


@pytest.mark.usefixtures("often")
def test_a_stopped_addition_is_resumed_while_the_old_index_serves(made: Path, encoder: SentenceEncoder) -> None:
    found = SearchIndex(made).search(encoder, ["Anna"], k=100)
    with pytest.raises(Stop):
        extend_index(made, until(LINES, 40), encoder)
    assert SearchIndex(made).search(encoder, ["Anna"], k=100) == found
    with pytest.raises(FileExistsError, match="holds 32 lines of a job that was stopped; --resume goes on with it"):
        extend_index(made, LINES, encoder)
    extend_index(made, LINES, encoder, resume=True)
    whole = made.with_name("whole")
    build_index(whole, LINES + LINES, encoder)
    del (one := contents(made))["index.json"], (two := contents(whole))["index.json"]
    assert one == two


@pytest.mark.usefixtures("often")
def test_a_stopped_addition_can_be_forgotten(made: Path, encoder: SentenceEncoder) -> None:
    with pytest.raises(Stop):
        extend_index(made, until(LINES, 40), encoder)
    extend_index(made, ["Clara"], encoder, force=True)
    assert len(SearchIndex(made)) == 44
    SearchIndex(made).verify()


@pytest.mark.usefixtures("often")
def test_a_stopped_job_is_resumed_where_it_was(
    path: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Stop):
        build_index(path, until(LINES, 40), encoder)
    assert not path.exists()
    partial = path.with_name(".notes.index.partial")
    with pytest.raises(FileExistsError, match="holds 32 lines"):
        build_index(path, LINES, encoder)
    with (partial / "texts.txt").open("ab") as file:
        file.write(b"of a kill")
    encoded: list[str] = []
    encode_iter = encoder.encode_iter
    with monkeypatch.context() as patch:
        patch.setattr(encoder, "encode_iter", lambda texts, **options: encode_iter(note(texts, encoded), **options))
        build_index(path, LINES, encoder, resume=True)
    assert encoded == LINES[32:]
    assert not partial.exists()
    whole = path.with_name("whole")
    build_index(whole, LINES, encoder)
    assert contents(path) == contents(whole)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("lines", [["Boris", *LINES[1:]], LINES[:31], []], ids=["changed", "shorter", "empty"])
def test_a_resume_refuses_other_input(path: Path, encoder: SentenceEncoder, lines: list[str]) -> None:
    with pytest.raises(Stop):
        build_index(path, until(LINES, 40), encoder)
    partial = path.with_name(".notes.index.partial")
    before = contents(partial)
    with pytest.raises(DataError, match="does not begin with the 32 lines that were read before"):
        build_index(path, lines, encoder, resume=True)
    assert contents(partial) == before
    build_index(path, ["Clara"], encoder, force=True)
    assert len(SearchIndex(path)) == 1


def test_a_resume_without_a_stopped_job_starts_one(path: Path, encoder: SentenceEncoder) -> None:
    build_index(path, LINES, encoder, resume=True)
    assert len(SearchIndex(path)) == 43


def test_a_job_that_stops_early_leaves_nothing(path: Path, encoder: SentenceEncoder) -> None:
    with pytest.raises(Stop):
        build_index(path, until(LINES, 3), encoder)
    assert not list(path.parent.iterdir())


def test_a_kill_just_before_the_end_is_resumed(made: Path, encoder: SentenceEncoder) -> None:
    manifest = IndexManifest.read(made / "index.json")
    partial = made.with_name(".notes.index.partial")
    made.rename(partial)
    manifest.write(partial / "unfinished.json")
    build_index(made, LINES, encoder, resume=True)
    assert [entry.name for entry in made.parent.iterdir()] == [made.name]
    # And after the end: what a complete addition could not remove is no stopped one.
    replace(manifest, start=3).write(made / "unfinished.json")
    extend_index(made, ["Clara"], encoder)
    assert not (made / "unfinished.json").exists()


def test_two_writers_do_not_meet(made: Path, encoder: SentenceEncoder) -> None:
    pytest.importorskip("fcntl")

    def lines() -> Iterator[str]:
        yield "Boris"
        with pytest.raises(DataError, match="another process is writing to it"):
            extend_index(made, ["Clara"], encoder)

    extend_index(made, lines(), encoder)
    assert len(SearchIndex(made)) == 44
