"""`xsent index` and `xsent search`."""

import json
import sys
from pathlib import Path

import pytest
from commands import OFFLINE, Runner, assert_refused, interrupt

from xsent import SearchIndex, SentenceEncoder
from xsent.search.store import IndexDatabase

NOTES = "Anna sees Boris.\n\nClara, David and Elena.\nFrank\tvoit Greta\n"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    file = tmp_path / "notes.txt"
    file.write_text(NOTES)
    return file


@pytest.fixture
def made(run: Runner, notes: Path, mini_bundle: Path) -> Path:
    index = notes.with_name("notes.index")
    warning = "Warning: 1 of 4 lines have no words; they are never found\n"
    assert run("index", notes, index, "--model", mini_bundle) == (0, "", f"{warning}{index}: 3 texts\n")
    return index


def test_search_prints_score_line_and_text(run: Runner, made: Path, mini_bundle: Path) -> None:
    code, out, err = run("search", made, "Frank voit Greta", "--model", mini_bundle, "-n", 10**12)
    assert (code, err) == (0, "")
    scores, numbers, texts = zip(*(line.split("\t", 2) for line in out.splitlines()), strict=True)
    assert (scores[0], numbers[0], texts[0]) == ("1.5000", "4", "Frank voit Greta")
    found = dict(zip(numbers, texts, strict=True))
    assert found == {"1": "Anna sees Boris.", "3": "Clara, David and Elena.", "4": "Frank voit Greta"}
    assert list(scores) == sorted(scores, key=float, reverse=True)
    found = json.loads(run("search", made, "Anna sees Boris.", "--model", mini_bundle, "-n", 1, "--json")[1])
    place = {"line": 1, "id": None, "text": "Anna sees Boris.", "close": True}
    assert found == {"score": pytest.approx(1.5, abs=1e-4), **place}


def test_queries_from_a_file_come_with_their_numbers(run: Runner, made: Path, mini_bundle: Path) -> None:
    queries, search, one = made.with_name("queries.txt"), ("search", made, "--model", mini_bundle), ("-n", 1)
    queries.write_text("Frank voit Greta\n\nAnna sees Boris.\n")
    out = run(*search, "--queries", queries, *one)[1]
    assert out == "1\t1.5000\t4\tFrank voit Greta\n3\t1.5000\t1\tAnna sees Boris.\n"
    out = run(*search, "--queries", queries, *one, "--json")[1]
    assert [(row["query"], row["line"]) for row in map(json.loads, out.splitlines())] == [("1", 4), ("3", 1)]
    many = "Anna sees Boris.\n" * 300  # more than are asked at once
    for arguments in (["-"], ["--queries", "-"]):
        out = run(*search, *arguments, *one, stdin=many)[1]
        assert out.splitlines()[-1] == "300\t1.5000\t1\tAnna sees Boris."
    assert_refused(run(*search, "-"), "standard input: empty; expected one query per line")
    queries.write_text("id,q\n1,Anna\n,Boris\n")
    code, out, _ = run(*search, "--queries", queries, "--column", "q", "--id", "id", *one)
    assert code == 0 and out.splitlines()[-1].startswith("\t")
    for wrong in ([], ["Anna", "--queries", "-"], ["Anna", "-n", 0]):
        assert run(*search, *wrong)[0] == 2


@pytest.mark.parametrize(("count", "kept"), [(10, False), (1000, True)])
def test_interrupt_exits_130_and_says_what_is_kept(
    run: Runner, tmp_path: Path, mini_bundle: Path, count: int, kept: bool
) -> None:
    index = tmp_path / "x.index"
    lines = "".join(f"Anna sees Boris {number} times.\n" for number in range(count)).encode()
    begun = lambda: index.exists() and IndexDatabase(index).state().lines  # noqa: E731
    often = f"{OFFLINE}; from xsent.search import lines, writer; writer.SAVE_EVERY = lines._BLOCK_LINES = 100"
    once = begun if kept else index.exists
    ended = interrupt("index", "-", index, "--model", mini_bundle, lines=lines, once=once, before=often)
    message = "No line is indexed yet; run the same command again."
    if kept:
        message = f"Indexed lines are kept: {begun():,}; run the same command with --resume to continue."
    assert (ended, index.exists()) == ((130, f"{message}\nError: interrupted\n".encode()), kept)
    if kept:
        notice = f"{index}: incomplete, {begun():,} lines so far; xsent index --resume continues it\n"
        assert run("search", index, "Anna", "--model", mini_bundle)[::2] == (0, notice)


def test_what_is_there_is_added_to_but_not_replaced(run: Runner, made: Path, notes: Path, mini_bundle: Path) -> None:
    assert SearchIndex(made).state.fingerprint == SentenceEncoder(mini_bundle).fingerprint
    arguments = ["index", notes, made, "--model", mini_bundle]
    assert_refused(run(*arguments), f"{made}: exists; --force replaces it, --add adds to it")
    for options in (["--resume"], ["--add", "--resume"]):
        code, out, err = run(*arguments, *options)
        assert (code, out) == (0, "") and f"{made}: already complete; there is nothing to resume\n" in err
    assert run(*arguments, "--force")[0] == 0
    notes.write_text("Henry and Irina\n")
    assert run(*arguments, "--add")[0] == 0
    found = run("search", made, "Henry and Irina", "-n", 1, "--model", mini_bundle)
    assert (found[0], found[1].split("\t", 1)[1], found[2]) == (0, "5\tHenry and Irina\n", "")


def test_options_of_words_and_scores_and_a_query_with_a_dash(run: Runner, made: Path, mini_bundle: Path) -> None:
    search, exact = ["search", made, "--model", mini_bundle], "Anna sees Boris."
    assert run(*search, "Boris", "-n", 1)[1].split("\t")[1] == "1"
    assert run(*search, exact, "-n", 1, "--no-words")[1] == f"1.0000\t1\t{exact}\n"
    assert run(*search, exact, "--least", "0.99")[1].count("\n") == 1
    assert_refused(run(*search, exact, "--least", 9), "no line has a score of 9.0 or more; lower --least")
    assert_refused(run(*search, exact, "--least", 9, "--json"), "no line has a score of 9.0 or more")
    code, out, err = run(*search, "-Anna sees Boris.")
    assert (code, out) == (2, "") and "Put -- before a text that starts with a dash: -- TEXT" in err
    assert run(*search, "-n", 1, "--", "-Anna sees Boris.")[1].endswith("Anna sees Boris.\n")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are Unicode")
def test_a_file_may_have_a_name_in_another_encoding(run: Runner, notes: Path, mini_bundle: Path) -> None:
    file = notes.rename(notes.with_name("\udcdcber uns.txt"))
    assert run("index", file, notes.with_name("new.index"), "--model", mini_bundle)[0] == 0
    index = SearchIndex(notes.with_name("new.index"))
    assert {passage.source for passage, _ in index.passages()} == {f"{notes.parent}/\ufffdber uns.txt"}


def test_another_model_and_no_index_are_one_line(run: Runner, made: Path, mini_bundle: Path) -> None:
    model, folder = ("--model", mini_bundle), made.parent
    makes = f"{made} has vectors of {SentenceEncoder(mini_bundle).fingerprint}, the model is "
    assert_refused(run("search", made, "Anna"), makes)
    assert_refused(run("search", folder, "Anna", *model), f"{folder}: not an index; create one with xsent index")


def test_that_nothing_is_close_is_said_of_each_query(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "soup.txt").write_text("The soup needs salt.\n")
    run("index", tmp_path / "soup.txt", tmp_path / "index")
    code, out, err = run("search", tmp_path / "index", "quarterly tax return", "--json")
    assert (code, json.loads(out.splitlines()[0])["close"]) == (0, False)
    assert err.startswith("No close match: best score ")
    err = run("search", tmp_path / "index", "-", stdin="salt in soup\nquarterly tax return\n\n")[2]
    assert err.startswith("Query 2: No close match") and err.endswith("\nQuery 3: nothing found\n")
    assert err.count("\n") == 2
