"""Indexes of documents that come, change and go."""

import contextlib
import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import numpy as np
import pytest
from commands import file_names, raises
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from indexes import Replay, Stop, encoder, made, path

from xsent import (
    DataError,
    Document,
    FingerprintError,
    SearchIndex,
    SentenceEncoder,
    build_index,
    extend_index,
    update_index,
)
from xsent.encoder import UnknownTextWarning
from xsent.files.atomic import only_writer
from xsent.search.store import IndexDatabase, passage_keys

__all__ = ["encoder", "made", "path"]

RANDOM = np.random.default_rng(0).normal(size=(100, 8))
REPLAY: Any = Replay(RANDOM)


def document(name: str, *texts: str, stamp: str = "1") -> Document:
    """Its texts on lines 1, 3, 5."""
    return Document(name, stamp, [(1 + 2 * number, text) for number, text in enumerate(texts)])


def texts(path: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for passage, _ in SearchIndex(path).passages():
        found.setdefault(passage.source, []).append(passage.text)
    return found


def test_documents_come_change_and_go(path: Path, encoder: SentenceEncoder) -> None:
    update_index(path, [document("a", "Anna sees Boris.", "", "Clara"), document("b", "David voit Elena.")], encoder)
    ((hit,),) = SearchIndex(path).search(encoder, ["Clara"], k=1)
    assert (hit.source, hit.line, hit.text) == ("a", 5, "Clara")
    assert SearchIndex(path).documents() == {"a": "1", "b": "1"}
    update_index(path, [document("a", "Frank", stamp="2"), document("c")], encoder, remove=["b", "unknown"])
    assert SearchIndex(path).documents() == {"a": "2", "c": "1"}
    assert texts(path) == {"a": ["Frank"]} and len(SearchIndex(path)) == 1
    for words in (False, True):
        (hits,) = SearchIndex(path).search(encoder, ["David voit Elena."], k=9, words=words)
        assert [hit.text for hit in hits] == ["Frank"]
    SearchIndex(path).verify()
    update_index(path, [], encoder, remove=["a"])
    assert SearchIndex(path).search(encoder, ["Frank"], words=True) == [[]]
    update_index(path, [document("a", "1", "2"), document("b", "3")], REPLAY, force=True)
    opened = SearchIndex(path)
    update_index(path, [document("b", "3", "4", stamp="2")], REPLAY, remove=["a"])
    (hits,) = opened.search(REPLAY, ["1"])
    assert sorted(hit.text for hit in hits) == ["3", "4"]


def test_a_passage_is_found_by_its_context_too(path: Path, encoder: SentenceEncoder) -> None:
    named = [(3, "Anna sees Boris.", "Home › Wi-Fi"), (5, "", "Frank"), (7, "David\x1fElena", "a\x1fb")]
    update_index(path, [Document("a", "1", [(1, "blue-otter"), *named])], encoder)
    index = SearchIndex(path)
    (found,) = index.search(encoder, ["wi fi"], k=9, words=True)
    assert found[0].line == 3
    expected = {(1, "blue-otter", ""), named[0], named[2]}
    assert {(hit.line, hit.text, hit.context) for hit in found} == expected
    update_index(path, [document("b", "Home › Wi-Fi: Anna sees Boris.")], encoder)  # the same vector, by its rule
    (found,) = SearchIndex(path).search(encoder, ["Home › Wi-Fi: Anna sees Boris."], k=2, words=False)
    assert {hit.source for hit in found} == {"a", "b"} and found[0].score == found[1].score
    SearchIndex(path).verify()


def test_the_folders_of_a_document_count_as_words_only(path: Path, encoder: SentenceEncoder) -> None:
    names = ("Recipes/Soups/onion.md", "Work/onion.md", "/home/recipes/onion.md")
    update_index(path, [Document(name, "1", [(1, "blue-otter")]) for name in names], encoder)
    index = SearchIndex(path)
    (found,) = index.search(encoder, ["recipes otter"])
    assert [hit.source for hit in found] == [*names] and found[0].score > found[1].score == found[2].score
    assert found[0].context == ""
    (found,) = index.search(encoder, ["recipes otter"], words=False)
    assert len({hit.score for hit in found}) == 1
    update_index(path, [], encoder, remove=names[:1])
    SearchIndex(path).verify()


NAMES = st.sampled_from("abcd")
PASSAGES = st.lists(st.integers(0, 99).map(str) | st.just(""), max_size=4)


class Index(RuleBasedStateMachine):
    """An index beside a dictionary of what should be in it."""

    def __init__(self) -> None:
        super().__init__()
        memory = "/dev/shm"  # where there is one: a disk is waited for at each of many writes
        self._folder = TemporaryDirectory(dir=memory if Path(memory).is_dir() else None)
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr("xsent.search.documents._WORTH_COMPACTING", 5)
        self._patch.setattr("xsent.search.writer.SAVE_EVERY", 3)
        self.path = Path(self._folder.name) / "x"
        self.expected: dict[str, list[str]] = {}
        update_index(self.path, [], REPLAY)

    @rule(name=NAMES, passages=PASSAGES)
    def add_or_change(self, name: str, passages: list[str]) -> None:
        update_index(self.path, [document(name, *passages)], REPLAY)
        self._expect({name: passages})

    @rule(name=NAMES)
    def remove(self, name: str) -> None:
        update_index(self.path, [], REPLAY, remove=[name])
        self.expected.pop(name, None)

    @rule(passages=PASSAGES)
    def rebuild(self, passages: list[str]) -> None:
        update_index(self.path, [document("a", *passages)], REPLAY, force=True)
        self.expected = {"a": passages}

    @rule(passages=st.lists(PASSAGES, min_size=4, max_size=4), limit=st.integers(0, 4))
    def interrupt(self, passages: list[list[str]], limit: int) -> None:
        """What was interrupted is complete or incomplete, and the same update does the rest."""

        def documents() -> Iterator[Document]:
            for name, own in zip("abcd"[:limit], passages, strict=False):
                yield document(name, *own, stamp="2")
            raise Stop

        raises(Stop, "^$", update_index, self.path, documents(), REPLAY)
        complete = {name for name, stamp in SearchIndex(self.path).documents().items() if stamp == "2"}
        assert complete <= set("abcd"[:limit])
        rest = [document(name, *own) for name, own in zip("abcd", passages, strict=True)]
        update_index(self.path, rest, REPLAY)
        self._expect(dict(zip("abcd", passages, strict=True)))

    def _expect(self, written: dict[str, list[str]]) -> None:
        """What is written comes last: of equal scores the earlier row is first."""
        self.expected = {name: own for name, own in self.expected.items() if name not in written} | written

    @invariant()
    def finds_what_a_fresh_index_finds(self) -> None:
        index = SearchIndex(self.path)
        index.verify()
        kept = {name: list(filter(None, passages)) for name, passages in self.expected.items()}
        assert texts(self.path) == {name: passages for name, passages in kept.items() if passages}
        assert index.documents() == dict.fromkeys(self.expected, "1")
        fresh = self.path.with_name("fresh")
        update_index(fresh, [document(name, *own) for name, own in self.expected.items()], REPLAY, force=True)
        assert index.search(REPLAY, ["3", "50"], k=9) == SearchIndex(fresh).search(REPLAY, ["3", "50"], k=9)

    def teardown(self) -> None:
        self._patch.undo()
        self._folder.cleanup()


TestIndex = Index.TestCase
TestIndex.settings = settings(max_examples=15, stateful_step_count=8, deadline=None)


def test_removed_rows_are_given_free(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.search.documents._WORTH_COMPACTING", 20)
    monkeypatch.setattr("xsent.search.writer.SAVE_EVERY", 4)
    sizes = []
    for number in range(12):
        update_index(path, [document("a", *map(str, range(10)), stamp=str(number)), document("b", "99")], REPLAY)
        sizes.append((path / "vectors.f16").stat().st_size // 16)
    assert max(sizes) <= 40 and SearchIndex(path).documents() == {"a": "11", "b": "1"}
    assert file_names(path.parent) == {path.name}
    SearchIndex(path).verify()


@pytest.mark.parametrize(
    ("error", "force", "note"),
    [
        (Stop, False, ""),
        (KeyboardInterrupt, False, "\nIndexed files are kept: [1-5]; run the same command again to continue\\."),
        (KeyboardInterrupt, True, "\nIndexed .*: [1-5]; run the same command again, without --force, to continue\\."),
    ],
)
def test_what_is_cut_short_comes_again(
    path: Path, error: type[BaseException], force: bool, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xsent.search.writer.SAVE_EVERY", 4)

    def documents(limit: int) -> Iterator[Document]:
        for number in range(10):
            if number == limit:
                raise error
            yield document(f"d{number}", *(str(10 * number + place) for place in range(3)))

    raises(error, f"^{note}$", update_index, path, documents(5), REPLAY, force=force)
    SearchIndex(path).verify()
    complete = {name for name, stamp in SearchIndex(path).documents().items() if stamp}
    assert complete and complete <= {f"d{number}" for number in range(5)}
    update_index(path, (each for each in documents(99) if each.name not in complete), REPLAY)
    assert texts(path) == {f"d{number}": [str(10 * number + place) for place in range(3)] for number in range(10)}
    SearchIndex(path).verify()


def test_an_interrupted_save_comes_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent.search.writer.SAVE_EVERY", 4)
    with monkeypatch.context() as patch:
        keys = mock.Mock(wraps=passage_keys, side_effect=[KeyboardInterrupt, *[mock.DEFAULT] * 9])
        patch.setattr("xsent.search.store.passage_keys", keys)
        note = "\nIndexed files are kept: 1; run the same command again to continue\\."
        raises(KeyboardInterrupt, f"^{note}$", update_index, path, map(document, "abc", "123", "456", "789"), REPLAY)
    SearchIndex(path).verify()
    assert texts(path) == {"a": ["1", "4", "7"]}


def test_lines_and_documents_keep_apart(path: Path, made: Path, encoder: SentenceEncoder) -> None:
    with pytest.raises(DataError, match="an index of lines, from xsent index; choose another name for documents"):
        update_index(made, [document("a", "Clara sees Zoe.")], encoder)
    assert len(SearchIndex(made).search(encoder, ["Anna"], k=99, words=True)[0]) == 43
    update_index(made, [document("a", "Clara sees Zoe.")], encoder, force=True)
    with pytest.raises(DataError, match="an index of documents, from xsent notes; choose another name for lines"):
        extend_index(made, ["Anna"], encoder)
    assert texts(made) == {"a": ["Clara sees Zoe."]}
    empty = path.with_name("empty.index")
    update_index(empty, [Document("a.md", "1", [])], encoder)  # no rows
    for resume in (False, True):
        with pytest.raises(DataError, match="an index of documents, from xsent notes; choose another name for lines"):
            build_index(empty, ["Anna"], encoder, resume=resume)
    # Said where a stream of vectors ends; one that is dropped half-way swallows Ctrl-C as well.
    with pytest.warns(UnknownTextWarning, match="1 of 1"):
        update_index(path, [document("a", "ሰላም ለዓለም")], encoder)


def test_what_is_refused(path: Path, encoder: SentenceEncoder) -> None:
    update_index(path, [document("a", "1")], REPLAY)
    raises(FingerprintError, REPLAY.fingerprint, update_index, path, [document("a", "1")], encoder)
    latin = Document("caf\udce9.md", "1", [(1, "a")])  # a file name in another encoding
    raises(ValueError, "its name has a lone surrogate", update_index, path, [latin], REPLAY)

    def documents(name: str, force: bool) -> Iterator[Document]:
        raises(DataError, "another process is writing it", update_index, path, [], REPLAY, force=force)
        yield document(name, "2")

    for name, force in (("b", False), ("c", True)):
        update_index(path, documents(name, force), REPLAY)
    assert texts(path) == {"a": ["1"], "b": ["2"], "c": ["2"]}
    letters = path.with_name("letters")
    letters.mkdir()
    (letters / "a.txt").write_text("dear")
    raises(DataError, r"letters: contains a\.txt", update_index, letters, [], REPLAY)
    twice, early = [document("a", "1"), document("a", "2")], [Document("a", "1", [(0, "1")])]
    raises(ValueError, "document 'a' is given twice", update_index, path, twice, REPLAY)
    raises(ValueError, "document 'a': line = 0 must be at least 1", update_index, path, early, REPLAY)
    update_index(path, [document("a", "5")], REPLAY)
    assert texts(path)["a"] == ["5"]


def test_a_document_that_cannot_be_stored_is_refused_and_the_index_stays(path: Path) -> None:
    kept: Any = Document("a", "1", [(np.int64(3), "1")])  # a number of a table
    update_index(path, [kept], REPLAY)
    for name, stamp, passages, message in [
        ("b", "1", [("2", "text")], "document 'b': line = '2' must be a whole number"),
        ("b", "1", [(2, None)], "document 'b', line 2: expected str, got NoneType, a missing value"),
        ("b", "1", [(2, "text", 5)], "document 'b', line 2: expected str, got int"),
        ("b", "1", ["text"], r"document 'b': got 'text'; expected passages \(line, text\)"),
        ("b", "1", "text", "document 'b': got 't'; expected passages"),
        ("b", 1.5, [(2, "text")], "document 'b': its stamp is 1.5; convert it with str"),
        (Path("b"), "1", [(2, "text")], r"its name is PosixPath\('b'\); convert it with str"),
        ("b", "", [(2, "text")], "document 'b': its stamp is empty, which means incomplete"),
    ]:
        wrong: Any = Document(name, stamp, passages)  # type: ignore[arg-type]
        raises((TypeError, ValueError), message, update_index, path, [wrong], REPLAY)
    raises(TypeError, "got \\('b', '1'\\); expected documents", update_index, path, [("b", "1")], REPLAY)
    raises(TypeError, "got one str; put it in a list", update_index, path, [], REPLAY, remove="a")
    with SearchIndex(path) as index:
        index.verify()
        assert [(hit.line, hit.text) for hit in index.document("a")] == [(3, "1")]
        assert index.documents() == {"a": "1"}
    raises(ValueError, "the index is closed; open it again", index.documents)


def test_an_update_closes_what_it_opens(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # If Python closes it, a Ctrl-C that arrives then is lost: `xsent notes --watch` did not stop.
    opened: list[IndexDatabase] = []
    begin = IndexDatabase.__init__
    noted = lambda self, *arguments, **options: opened.append(self) or begin(self, *arguments, **options)  # noqa: E731
    monkeypatch.setattr(IndexDatabase, "__init__", noted)
    for stamp in ("1", "2"):
        update_index(path, [document("a", "1", stamp=stamp)], REPLAY)
    assert len(opened) >= 4 and not any(database.close.alive for database in opened)


def test_writers_and_readers_at_once_get_an_index_or_say_who_writes(path: Path) -> None:
    said = list[str]()

    def write(force: bool) -> None:
        for number in range(12):
            try:
                update_index(path, [document(str(number), "1", "2")], REPLAY, force=force)
            except DataError as error:
                said.append(str(error))

    def read() -> None:
        while not done.is_set():
            assert {hit.text for hit in SearchIndex(path).search(REPLAY, ["1"], k=99)[0]} in ({"1", "2"}, set())

    update_index(path, [document("0", "1", "2")], REPLAY)
    done = threading.Event()
    with ThreadPoolExecutor() as pool:
        reader = pool.submit(read)
        writers = [pool.submit(write, force) for force in (True, True, False)]
        try:
            for writer in writers:
                writer.result()
        finally:
            done.set()
        reader.result()
    assert all("another process is writing it" in message for message in said), said
    SearchIndex(path).verify()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_an_index_that_appears_beside_a_new_one_is_not_replaced(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def appear(folder: Path) -> contextlib.AbstractContextManager[bool]:
        monkeypatch.undo()  # once
        with only_writer(folder) as is_there:
            update_index(folder, [document("first", "1")], REPLAY)
        return contextlib.nullcontext(is_there)

    monkeypatch.setattr("xsent.search.writer.only_writer", appear)
    raises(DataError, "another process is writing it", update_index, path, [document("second", "1")], REPLAY)
    assert list(SearchIndex(path).documents()) == ["first"]


def test_writers_that_make_the_same_new_index_at_once(path: Path) -> None:
    def write(number: int) -> str:
        try:
            update_index(path, [document(str(number), "1")], REPLAY, force=True)
        except DataError as error:
            return str(error)
        return ""

    for _ in range(8):
        with ThreadPoolExecutor() as pool:
            said = [*pool.map(write, range(4))]
        assert all(not message or "another process is writing it" in message for message in said), said
        SearchIndex(path).verify()
        shutil.rmtree(path)
        assert not [*path.parent.iterdir()]
