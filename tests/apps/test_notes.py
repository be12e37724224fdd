"""`xsent notes`: a folder that is indexed and searched."""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from commands import Runner, assert_refused, file_names, hear_ctrl_c, raises, start, write_files
from texts import pdf

from xsent import SearchIndex, SentenceEncoder
from xsent.errors import DataError
from xsent.files.atomic import only_writer
from xsent_apps.notes.folder import INDEX, Notes
from xsent_apps.notes.read import READERS

FILES = {
    "trip.md": "# Trip\n\nWe leave on Friday morning.\n\nThe train is at nine. Bring the tickets.\n",
    "cat.txt": "The cat needs food twice a day.\n",
    "work/server.html": "<p>The password of the server is in the safe.</p>\n<p>Ask for key XK-42.</p>\n",
    "work/Müll.txt": "Die Mülltonnen kommen am Dienstag.\n",
}
TRIP = "We leave on Friday morning. The train is at nine. Bring the tickets."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    write_files(folder, FILES)
    return folder


@pytest.fixture(scope="module")
def encoder() -> SentenceEncoder:
    return SentenceEncoder(threads=1)


def test_a_question_in_any_language_finds_the_note(run: Runner, folder: Path) -> None:
    code, out, err = run("notes", folder, "À quelle heure part le train ?", "-n", 1)
    assert (code, out.split("\t")[1:]) == (0, ["trip.md:3", TRIP, "trip\n"])
    assert err == f"Indexed 4 files, 4 passages in {folder / INDEX}; new, changed or deleted: 4.\n"
    out, err = run("notes", folder, "XK-42", "--json", "-n", 1)[1:]
    assert err == "" and json.loads(out).items() >= {"file": "work/server.html", "line": 1}.items()
    code, out, err = run("notes", folder, "fiscal policy of Portugal", "-n", 1, "--json")
    assert err.startswith("No close match: best score ") and not json.loads(out)["close"]
    assert_refused(run("notes", folder, "XK-42", "--least", 9), "no passage has a score of 9.0 or more; use a lower")
    assert "-- TEXT" in run("notes", folder, "-5")[2]
    with mock.patch("sys.stdout.isatty", return_value=True):
        out = run("notes", folder, "when does the train leave?", "-n", 1, "--no-update")[1]
    assert "We leave on Friday morning. \x1b[1mThe train is at nine.\x1b[0m Bring the tickets.\n" in out
    (folder / "ferry.md").write_text("# Head\x9b31mred\n\nThe ferry leaves at six.\n")
    with mock.patch("sys.stdout.isatty", return_value=True):
        out = run("notes", folder, "when does the ferry leave?", "-n", 1)[1]
    assert "Head 31mred" in out


def test_only_what_changed_is_read_again(folder: Path, encoder: SentenceEncoder) -> None:
    notes = Notes(folder)
    assert notes.update(encoder) == 4
    assert notes.update(encoder) == 0
    (folder / "cat.txt").write_text("The dog needs food.\n")
    (folder / "trip.md").unlink()
    (folder / "work").rename(folder / "home")
    (folder / "new.markdown").write_text("A new note about bees.\n")
    os.utime(folder / "home" / "server.html", ns=(0, 0))
    read: list[str] = []
    encode_items = encoder.encode_items

    def note_down(items: Iterable[Any], *arguments: Any, **options: Any) -> Iterator[Any]:  # noqa: ANN401
        return encode_items((read.append(item[2]) or item for item in items), *arguments, **options)

    with mock.patch.object(encoder, "encode_items", note_down):
        assert notes.update(encoder) == 7
    texts = {text for text in read if text}
    assert "The dog needs food." in texts and "A new note about bees." in texts and len(texts) == 4
    assert {hit.source for hit in notes.search(encoder, "cat", k=99)} == {
        *("cat.txt", "new.markdown", "home/server.html", "home/Müll.txt")
    }
    assert not notes.search(encoder, "Friday", k=99, words=False)[0].text.startswith("We leave")
    SearchIndex(notes.index).verify()


def test_headings_and_names_are_found_and_shown(run: Runner, folder: Path) -> None:
    (folder / "wifi.md").write_text("---\ntags: [network]\n---\n# Home\n\n## Wi-Fi password\n\nblue-otter-4711\n")
    (folder / "Visa application 2024.md").write_text("Handed everything in at counter 6.\n")
    code, out, _ = run("notes", folder, "wifi password", "-n", 1)
    context = "wifi, network › Home › Wi-Fi password"
    assert (code, out.split("\t")[1:]) == (0, ["wifi.md:8", "blue-otter-4711", f"{context}\n"])
    assert json.loads(run("notes", folder, "network", "-n", 1, "--json")[1])["context"] == context
    assert "Handed" in run("notes", folder, "visa", "-n", 1)[1]


def test_rules_may_change_and_clocks_jump(folder: Path, encoder: SentenceEncoder) -> None:
    notes, cat = Notes(folder), folder / "cat.txt"
    with mock.patch("xsent_apps.notes.folder.READING", "1"):
        assert notes.update(encoder) == 4
    assert (notes.update(encoder), notes.update(encoder)) == (4, 0)
    for animal, seconds in (("dog", 7e9), ("cow", -7e7), ("pig", 1e9)):  # of the same length
        cat.write_text(f"The {animal} needs food twice a day.\n")
        os.utime(cat, (seconds, seconds))
        assert (notes.update(encoder), notes.update(encoder)) == (1, 0)
        assert animal in notes.search(encoder, f"What does the {animal} need?", k=1)[0].text


def test_a_folder_that_cannot_be_listed_keeps_its_index(
    folder: Path, encoder: SentenceEncoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = Notes(folder, tmp_path / "elsewhere")
    notes.update(encoder)
    size = notes.size()
    for owner, name in ((os, "scandir"), (Path, "lstat")):  # not listed, and listed but not entered
        real = getattr(owner, name)

        def refuse(path: Any, real: Callable[[Any], Any] = real) -> Any:  # noqa: ANN401
            if folder in (Path(path), Path(path).parent):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path)

        with monkeypatch.context() as patch:
            patch.setattr(owner, name, refuse)
            raises(DataError, "cannot be read \\(Permission denied\\)", notes.update, encoder)
        assert notes.size() == size


def test_bad_files_are_named_and_everything_else_goes_on(run: Runner, folder: Path) -> None:
    (folder / "binary.txt").write_bytes(b"\0\1\2")
    (folder / "large.txt").write_text("x" * 5000)
    os.mkfifo(folder / "pipe.txt")
    (folder / "link.txt").symlink_to(folder / "cat.txt")
    (folder / ".hidden.txt").write_text("secret")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    (folder / "👩\u200d👧 می\u200cخواهم.txt").write_text("The family has a picnic.\n")
    with open(os.fsencode(folder) + b"/odd\xff.txt", "w") as file:
        file.write("odd")
    code, out, err = run("notes", folder, "Katze", "--max-bytes", 4000, "-n", 99)
    assert code == 0 and "cat.txt:1" in out and "secret" not in out and "link" not in out
    lines = [line for line in err.splitlines() if not line.startswith("Warning: 1 of 5")]  # of the Persian name
    assert len(lines) == 5 and lines[3].endswith("new, changed or deleted: 5.")
    assert lines[4] == "Ignored, not notes: 1 .png."
    assert lines[:3] == [
        f"Skipped: '{folder}/odd\\udcff.txt': its name has control characters or is not Unicode; rename it",
        f"Skipped: {folder}/binary.txt: contains binary data, not text",
        f"Skipped: {folder}/large.txt: 5,000 bytes, more than --max-bytes 4,000",
    ]
    err = run("notes", folder, "Katze", "--max-bytes", 4000)[2]  # counted, where something is asked
    assert err == "Skipped: 3 .txt; run xsent notes without a query to list them.\n"
    lines = run("notes", folder, "--max-bytes", 4000)[2].splitlines()
    assert len(lines) == 5 and lines[4].startswith("Ignored")  # named again
    assert lines[3].startswith("Indexed 5 files, ") and lines[3].endswith("new, changed or deleted: 0.")
    (folder / "two.txt").write_bytes(b"\0")
    lines = run("notes", folder, "Katze", "--max-bytes", 4000)[2].splitlines()
    assert lines == [
        f"Skipped: {folder}/two.txt: contains binary data, not text",  # the new one
        "Skipped: 3 .txt; run xsent notes without a query to list all.",
    ]
    (folder / "binary.txt").write_text("The bees fly.")
    assert "binary.txt:1" in run("notes", folder, "Where do bees fly?", "-n", 1)[1]


def test_a_file_that_breaks_its_reader_is_named_and_the_rest_is_indexed(
    run: Runner, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(READERS, ".org", lambda _: (_ for _ in ()).throw(MemoryError()))
    (folder / "a.org").write_text("* Trip")
    code, out, err = run("notes", folder, "Katze", "-n", 1)
    assert code == 0 and "cat.txt:1" in out
    assert err.startswith(f"Skipped: {folder}/a.org: not enough memory to read it; save the text in parts\nIndexed 4 ")


def test_a_missing_splitter_is_named_once(run: Runner, folder: Path) -> None:
    for number in range(3):
        (folder / f"long{number}.txt").write_text("The train is at nine. " * 40)
    with mock.patch.dict(sys.modules, {"sentencex": None}):
        assert_refused(run("notes", folder), r"sentencex is not installed; run pip install .xsent\[apps\].")
    assert not (folder / INDEX).exists()
    assert run("notes", folder)[0] == 0


def test_pages_without_text_are_named_once(run: Runner, folder: Path) -> None:
    pytest.importorskip("pypdfium2")
    (folder / "scan.pdf").write_bytes(pdf(""))
    for number in range(9):
        (folder / f"{number}.md").write_bytes(b"\0")
    lines = run("notes", folder, "cat")[2].splitlines()
    assert len(lines) == 10 and lines[8] == "Skipped: 1 .md, 1 .pdf; run xsent notes without a query to list all."
    lines = run("notes", folder)[2].splitlines()
    assert len(lines) == 10 and "scan" not in "".join(lines)
    (folder / "scan.pdf").write_bytes(pdf("", ""))
    assert f"Skipped: {folder}/scan.pdf: its pages have no text" in run("notes", folder)[2]


def test_old_texts_are_read_as_they_were_written(run: Runner, folder: Path) -> None:
    (folder / "old.txt").write_bytes("Das Café öffnet – spät – um neun.\n".encode("cp1252"))
    (folder / "russian.txt").write_bytes("Поезд уходит в девять.\n".encode("cp1251"))
    (folder / "greek.txt").write_bytes("Πού είναι ο σταθμός;\n".encode("cp1253"))
    code, out, err = run("notes", folder, "When does the café open?", "-n", 1)
    assert (code, out.split("\t")[2]) == (0, "Das Café öffnet – spät – um neun.")
    assert f"Read as cp1252, because they are not UTF-8: {folder}/old.txt.\n" in err
    assert f"Read as cp1251, because they are not UTF-8: {folder}/russian.txt.\n" in err
    unknown = "not UTF-8 (byte 0xd0 at 1), and its encoding cannot be told; convert it to UTF-8"
    assert f"Skipped: {folder}/greek.txt: {unknown}\n" in err
    assert "cp1252" not in run("notes", folder)[2]  # said once


def test_notes_may_be_clean_and_their_index_elsewhere(run: Runner, folder: Path, tmp_path: Path) -> None:
    call = ["notes", folder, "cat", "--index", tmp_path / "elsewhere"]
    assert run(*call, "--clean")[0] == run(*call)[0] == 0
    assert file_names(folder) == {"trip.md", "cat.txt", "work"}
    (folder / "new.txt").write_text("Anna sees Boris.")
    assert_refused(run(*call), "has vectors of cleaned texts: add --clean, or build the index again")
    assert run(*call, "--clean")[0] == 0


def test_wrong_calls_are_one_line(run: Runner, folder: Path, mini_bundle: Path, tmp_path: Path) -> None:
    assert_refused(run("notes", tmp_path / "none", "cat"), "none: not a folder; expected one with notes, then a query")
    assert_refused(run("notes", folder, " "), "the query is empty; ask for something")
    assert_refused(run("notes", folder, "cat", "--no-update"), f"{INDEX}: no index yet; run again without --no-update")
    assert run("notes", folder, "cat", "--watch")[0] == 2
    assert run("notes", folder)[0] == 0
    refused = run("notes", folder, "cat", "--model", mini_bundle)
    assert_refused(refused, "use the model of the index, or build the index again; --force rebuilds it")
    assert run("notes", folder, "cat", "--model", mini_bundle, "--force")[0] == 0
    (folder / "letter").mkdir()
    assert_refused(
        run("notes", folder / "letter", "cat"),
        "letter: contains no notes with text; expected files that end in .txt, .text, .md",
    )
    refused = run("notes", folder / "letter", "cat", "--no-update")  # such as while another process makes the index
    assert_refused(refused, f"{INDEX}: empty so far; run again without --no-update")
    for options in ([], ["--force"], ["cat"]):
        refused = run("notes", folder, "--index", folder / "cat.txt", *options)
        assert_refused(refused, "cat.txt: not an index, so it is not replaced; choose another name\n")
    assert_refused(run("notes", folder, "--index", folder / "work"), "work: not an index")
    assert run("index", folder / "cat.txt", tmp_path / "lines")[0] == 0
    refused = run("notes", folder, "--index", tmp_path / "lines")
    assert_refused(refused, "an index of lines, from xsent index; choose another --index")


def test_what_is_there_is_searched_while_another_process_updates(run: Runner, folder: Path) -> None:
    pytest.importorskip("fcntl")
    assert run("notes", folder)[0] == 0
    (folder / "new.txt").write_text("new")
    with only_writer(folder / INDEX):
        code, out, err = run("notes", folder, "cat", "-n", 1)
        assert (code, out.count("\n")) == (0, 1) and "Warning: not updated: " in err and "another process" in err
        assert_refused(run("notes", folder), "another process is writing it")


def until(true: Callable[[], bool]) -> bool:
    return any(true() or time.sleep(0.05) for _ in range(600))  # type: ignore[func-returns-value]


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as a signal")
def test_watching_follows_the_folder_until_it_is_interrupted(folder: Path, mini_bundle: Path) -> None:
    pytest.importorskip("watchfiles")
    process = start("notes", folder, "--watch", "--model", mini_bundle, preexec_fn=hear_ctrl_c)
    index = folder / INDEX

    def known() -> set[str]:
        return set(SearchIndex(index).documents()) if index.is_dir() and any(index.glob("vectors*")) else set()

    assert process.stderr
    assert process.stderr.readline().endswith(b"new, changed or deleted: 4.\n")
    assert process.stderr.readline() == b"Watching 4 files; Ctrl-C stops.\n" and known() == set(FILES)
    (folder / "new.txt").write_text("Anna sees Boris.")  # the watch may begin a little later
    assert until(lambda: "new.txt" in known())
    (folder / "cat.txt").unlink()
    assert until(lambda: "cat.txt" not in known())
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.splitlines()[-1] == b"Error: interrupted"
