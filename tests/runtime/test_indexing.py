"""Indexes made, added to, stopped, killed and resumed."""

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from commands import file_names
from indexes import LINES, Stop, contents, encoder, made, path, until

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.search.index import SearchIndex
from xsent.search.write import build_index, extend_index

__all__ = ["encoder", "made", "path"]


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.search.write.SAVE_EVERY", 4)


def test_an_index_is_replaced_only_by_force_and_nothing_else_ever(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    with pytest.raises(FileExistsError, match="--force replaces it, --add adds to it"):
        build_index(made, ["Boris"], encoder)
    with pytest.raises(Stop):
        build_index(made, until(LINES, 2), encoder, force=True)
    assert contents(made) == before
    with mock.patch.object(Path, "rename", side_effect=Stop), pytest.raises(Stop):
        build_index(made, ["Boris"], encoder, force=True)
    assert contents(made) == before
    build_index(made, ["Boris"], encoder, force=True)
    assert file_names(made.parent) == {made.name}
    assert len(SearchIndex(made)) == 1
    mine, file = made.with_name("mine"), made.with_name("file")
    mine.mkdir()
    for letter in (mine / "letter.txt", made / "letter.txt", file):
        letter.write_text("dear")
    with pytest.raises(DataError, match="not an index, so it is not replaced"):
        build_index(mine, ["Boris"], encoder, force=True)
    with pytest.raises(DataError, match=r"holds letter\.txt, which is of no index"):
        build_index(made, ["Boris"], encoder, force=True)
    for work in (build_index, extend_index):
        with pytest.raises(DataError, match="not an index"):
            work(file, ["Boris"], encoder)
    partial = mine.rename(made.with_name(".new.partial"))
    for force in (False, True):
        with pytest.raises(DataError, match=r"\.new\.partial: holds letter\.txt"):
            build_index(made.with_name("new"), LINES, encoder, force=force)
    assert file_names(partial) == {"letter.txt"}
    assert len(SearchIndex(made)) == 1


@pytest.mark.usefixtures("often")
def test_empty_lines_that_were_added_block_nothing(made: Path, encoder: SentenceEncoder) -> None:
    before = contents(made)
    with pytest.raises(DataError, match="of 9 lines none has text"):
        extend_index(made, [""] * 9, encoder)
    with pytest.raises(Stop):
        extend_index(made, until([""] * 50, 40), encoder)
    with pytest.raises(DataError, match="of 40 lines none has text"):
        extend_index(made, [""] * 40, encoder, resume=True)
    assert contents(made) == before


@pytest.mark.usefixtures("often")
def test_a_stopped_addition_is_resumed_or_forgotten_while_the_index_serves(
    made: Path, encoder: SentenceEncoder
) -> None:
    opened = SearchIndex(made)
    found = opened.search(encoder, ["Anna"], k=100)
    with pytest.raises(Stop):
        extend_index(made, until(LINES, 40), encoder)
    assert opened.search(encoder, ["Anna"], k=100) == SearchIndex(made).search(encoder, ["Anna"], k=100) == found
    with pytest.raises(FileExistsError, match="holds 32 lines of a job that was stopped; --add --resume goes on"):
        extend_index(made, LINES, encoder)
    extend_index(made, LINES, encoder, resume=True)
    assert opened.search(encoder, ["Anna"], k=100) == found
    whole = made.with_name("whole")
    build_index(whole, LINES + LINES, encoder)
    assert contents(made)["passages"] == contents(whole)["passages"]
    with pytest.raises(Stop):
        extend_index(made, until(LINES, 40), encoder)
    extend_index(made, ["Clara"], encoder, force=True)
    assert len(SearchIndex(made)) == 87
    SearchIndex(made).verify()


@pytest.mark.usefixtures("often")
def test_a_stopped_job_is_resumed_where_it_was(path: Path, encoder: SentenceEncoder) -> None:
    with pytest.raises(Stop):
        build_index(path, until(LINES, 40), encoder)
    partial = path.with_name(".notes.index.partial")
    assert file_names(path.parent) == {partial.name}
    with pytest.raises(FileExistsError, match="holds 32 lines"):
        build_index(path, LINES, encoder)
    with pytest.raises(DataError, match="an unfinished index; xsent index --resume goes on with it"):
        SearchIndex(partial)
    with (partial / "vectors.f16").open("ab") as file:
        file.write(b"of a kill")
    encoded: list[str] = []
    encode_items = encoder.encode_items
    note = lambda texts, **options: encode_items((encoded.append(text) or text for text in texts), **options)  # noqa: E731
    with mock.patch.object(encoder, "encode_items", note):
        build_index(path, LINES, encoder, resume=True)
    assert encoded == LINES[32:]
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
    (partial / "vectors.f16").write_bytes(b"short")
    with pytest.raises(DataError, match=r"vectors\.f16: 5 bytes, expected"):
        build_index(path, LINES, encoder, resume=True)
    build_index(path, ["Clara"], encoder, force=True)
    assert len(SearchIndex(path)) == 1


def test_two_writers_do_not_meet(made: Path, encoder: SentenceEncoder) -> None:
    pytest.importorskip("fcntl")

    def lines() -> Iterator[str]:
        yield "Boris"
        with pytest.raises(DataError, match="another process is writing it; wait until it is done"):
            extend_index(made, ["Clara"], encoder)
        with pytest.raises(DataError, match="another process is writing it"):
            build_index(made, ["Clara"], encoder, force=True)

    extend_index(made, lines(), encoder)
    assert len(SearchIndex(made)) == 44 and file_names(made.parent) == {made.name}


def test_nothing_to_index_leaves_nothing_and_a_resume_without_a_job_starts_one(
    path: Path, encoder: SentenceEncoder
) -> None:
    for lines in ([], ["", "  "]):
        with pytest.raises(DataError, match=f"of {len(lines)} lines none has text"):
            build_index(path, lines, encoder)
        assert not file_names(path.parent)
    build_index(path, LINES, encoder, resume=True)
    assert len(SearchIndex(path)) == 43
    path.rename(path.with_name(".notes.index.partial"))  # as a kill just before the end leaves it
    with pytest.raises(FileExistsError, match="holds 50 lines of a job that was stopped"):
        build_index(path, LINES, encoder)
    build_index(path, LINES, encoder, resume=True)
    assert file_names(path.parent) == {path.name} and len(SearchIndex(path)) == 43


def test_adding_gives_what_indexing_at_once_gives_and_keeps_sources(made: Path, encoder: SentenceEncoder) -> None:
    more = ["Clara sees Boris.", "", "David voit Elena."]
    state = extend_index(made, more, encoder)
    assert (state.lines, state.rows, state.start) == (53, 45, 50)
    whole = made.with_name("whole")
    build_index(whole, LINES + more, encoder)
    assert contents(made)["passages"] == contents(whole)["passages"]
    assert (made / "vectors.f16").read_bytes() == (whole / "vectors.f16").read_bytes()
    extend_index(made, ["Clara"], encoder, source="more.txt")
    for text, source, line in (("David voit Elena.", "", 53), ("Clara", "more.txt", 54)):
        ((hit,),) = SearchIndex(made).search(encoder, [text], k=1)
        assert (hit.source, hit.line, hit.text) == (source, line, text)
