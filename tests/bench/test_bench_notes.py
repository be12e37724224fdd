"""Questions to a folder of notes are counted."""

from pathlib import Path

import pytest
import typer
from commands import Runner, assert_refused, write_files, write_lines
from typer.testing import CliRunner

import notes


def invoke(*arguments: object) -> tuple[int, str, str]:
    app = typer.Typer()
    app.command()(notes.notes)
    result = CliRunner().invoke(app, list(map(str, arguments)))
    return result.exit_code, result.stdout, result.stderr


def test_questions_to_a_folder_are_counted(mini_bundle: Path, tmp_path: Path, run: Runner) -> None:
    pytest.importorskip("sentencex")
    write_files(tmp_path, {"notes/Boris.md": "# Seen\n\nAnna sees\u00ad  Boris.\n", "notes/b.md": "Clara\n"})
    index, model = tmp_path / "index", ("--model", mini_bundle)
    assert run("notes", tmp_path / "notes", "--index", index, *model)[0] == 0
    asked = ["kind\tlanguage\tquestion\tfile\tanswer", "plain\ten\tAnna sees Boris\tBoris.md\tAnna sees Boris"]
    questions = write_lines(tmp_path / "questions.tsv", [*asked, "other\tfr\tClara\tb.md\tnowhere"])
    code, out, err = invoke(index, questions, *model)
    assert code == 0, err
    rows = [line.split() for line in out.splitlines()]
    assert rows[1] == ["all", "2", *["50.0"] * 6]
    assert [row[0] for row in rows[1:]] == ["all", "plain", "other", "en", "fr"]
    for lines, message in ((["a", "b"], "questions.tsv:1: 1 fields, expected 5"), (asked[:1], "no questions")):
        write_lines(questions, lines)
        assert_refused(invoke(index, questions, *model), message)
