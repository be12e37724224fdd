"""Lines that are too long to be encoded at once are found by the nearest of their windows."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from commands import Runner
from indexes import Stop, contents, until

from xsent import DataError, SearchIndex, SentenceEncoder, build_index, extend_index
from xsent.search.windows import windows_of

FACT = "The safe stands behind the painting in the study."
LONG = "The first part is about the garden and the trees. " * 20 + FACT + " Later we speak about the fence." * 20
LINES = ["The cat needs food.", "", "The boiler is old.", LONG, "The roof leaks.", "---", "We paint the kitchen."]


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    """The built-in model."""
    return SentenceEncoder(threads=1)


def check(path: Path, encoder: SentenceEncoder) -> None:
    """Every line with text is one hit, and the long one is found by what it says at any place."""
    index = SearchIndex(path)
    index.verify()
    assert (index.state.lines, len(index)) == (7, 5) and index.state.rows > 15
    for query in ("Where is the safe?", "Wo steht der Tresor?", "Où est le coffre-fort ?", "garden and trees", "fence"):
        for words in (True, False):
            hits = index.search(encoder, [query], k=9, words=words)[0]
            assert hits[0].text == LONG and sorted(hit.line for hit in hits) == [1, 3, 4, 5, 7]
    of_all = ["garden, fence, safe and painting"]  # words of several windows
    by_words, by_meaning = (index.search(encoder, of_all, k=1, words=words)[0][0].score for words in (True, False))
    assert by_words - by_meaning > 0.4
    assert index.search(encoder, ["Das Dach ist undicht."], k=1)[0][0].line == 5


def test_a_fact_in_a_long_line_is_found(tmp_path: Path, encoder: SentenceEncoder, run: Runner) -> None:
    path = tmp_path / "x.index"
    build_index(path, LINES, encoder)
    check(path, encoder)
    file = tmp_path / "x.txt"
    file.write_text("\n".join(LINES))
    code, _, err = run("index", file, path, "--force")
    assert code == 0 and "x.index: 5 texts" in err and "2 of 7 lines" in err
    check(path, encoder)


def test_windows_survive_additions_and_interruptions(
    tmp_path: Path, encoder: SentenceEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, parts, stopped = (tmp_path / name for name in ("whole", "parts", "stopped"))
    build_index(whole, LINES, encoder)
    build_index(parts, LINES[:3], encoder)
    extend_index(parts, LINES[3:], encoder)
    check(parts, encoder)
    assert np.array_equal(*(np.fromfile(path / "vectors.f16", np.uint16) for path in (whole, parts)))
    monkeypatch.setattr("xsent.search.writer.SAVE_EVERY", 7)
    monkeypatch.setattr("xsent.search.lines._BLOCK_LINES", 2)
    with pytest.raises(Stop):
        build_index(stopped, until(LINES, 5), encoder)
    build_index(stopped, LINES, encoder, resume=True)
    check(stopped, encoder)
    assert contents(stopped)["passages"] == contents(whole)["passages"]


def test_a_long_line_of_markup_has_no_windows(tmp_path: Path, encoder: SentenceEncoder) -> None:
    comment = f"<!-- {LONG} -->"
    assert windows_of(comment, encoder) == [comment]
    for lines in ([comment, "The cat sleeps."], ["The cat sleeps.", comment]):
        build_index(tmp_path / "x.index", lines, encoder, force=True)
        with SearchIndex(tmp_path / "x.index") as index:
            index.verify()
            assert index.state.rows == len(index) == 1


def test_windows_are_sentences(encoder: SentenceEncoder) -> None:
    windows = windows_of(LONG, encoder)
    assert " ".join(windows) == LONG.strip() and FACT in windows[10] and max(map(len, windows)) <= 100
    assert windows_of("Short. Text.", encoder) == ["Short. Text."]
    endless = windows_of("word " * 400, encoder)
    assert max(map(len, endless)) <= 300 and " ".join(endless) == ("word " * 400).strip()
    assert "".join(windows_of("長い文章" * 200, encoder)) == "長い文章" * 200
    story = ["私たちはしばらく天気と収穫について話しました。", "祖父は一生鉄道で働きました。"] * 20
    # Chinese and Japanese characters say more.
    assert [window.split() for window in windows_of("".join(story), encoder)] == [story[:2]] * 20
    page = "<p>" + LONG.replace(" " + FACT, f"</p><P class='x'>{FACT}<br/>")
    assert f"{FACT} Later we speak about the fence." in windows_of(page, encoder)  # without the tags of paragraphs
    assert windows_of("-. " * 400, encoder) == ["-. " * 400]
    assert windows_of(f"@anna {LONG} Best regards, Ann", SentenceEncoder(threads=1, clean=True)) == windows


def test_an_index_does_not_begin_within_a_line(tmp_path: Path, encoder: SentenceEncoder) -> None:
    path = tmp_path / "x.index"
    build_index(path, ["The cat sleeps."], encoder)
    with sqlite3.connect(next(path.glob("*.db"))) as connection:
        connection.execute("UPDATE passages SET text = ''")
    with pytest.raises(DataError, match=r"damaged .it begins with a second window"):
        SearchIndex(path)
