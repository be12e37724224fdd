"""Teachers whose layers cannot be taken over, and recipes that do not fit one: one line, and nothing is written."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from commands import assert_refused, edit_json
from tiny_bert import STUDENT, write_tiny_bert
from trainings import train_command

WEIGHTS, POOLING = "model.safetensors", "1_Pooling/config.json"


def test_what_is_no_bert_to_take_layers_from(student: Path, bert: Path, tmp_path: Path) -> None:
    damages: list[tuple[Callable[[Path], object] | dict[str, object], str]] = [
        ({"model_type": "distilbert"}, "is of type 'distilbert'; only the layers of a 'bert' can be taken over"),
        ({"hidden_act": "relu"}, "its activation is 'relu'; known are gelu, silu"),
        ({"intermediate_size": 50}, r"does not fit config.json: .*ffn_in.weight is \[48, 32\]"),
        ({"num_hidden_layers": 4}, "encoder.layer.3.*must make a BERT"),
        ({"hidden_size": "wide"}, "must make a BERT"),
        (lambda path: (path / WEIGHTS).rename(path / "pytorch_model.bin"), "pickled weights, which can run code"),
        (lambda folder: (folder / WEIGHTS).unlink(), "safetensors: missing; expected .* model.safetensors"),
        (lambda folder: (folder / "config.json").write_text("[1]"), "damaged .*whose layers can be taken over"),
        (lambda folder: os.truncate(folder / WEIGHTS, 1000), "damaged .*whose layers can be taken over"),
        (lambda path: (path / POOLING).write_text('{"pooling_mode": "cls"}'), "does not pool by the mean"),
    ]
    for number, (damage, message) in enumerate(damages):
        folder = Path(shutil.copytree(bert, tmp_path / f"bert{number}"))
        damage(folder) if callable(damage) else edit_json(folder / "config.json", **damage)
        outcome = train_command(student, tmp_path / "run", "--teacher", folder)
        assert_refused(outcome, message)
        assert str(folder) in outcome[2] and not (tmp_path / "run").exists()


def test_a_recipe_that_does_not_fit_the_teacher(student: Path, bert: Path, tmp_path: Path) -> None:
    wrong = student.with_name("wrong.toml")
    for old, new, message in (
        ("teacher_layers = [0, 2]", "teacher_layers = [0, 3]", "has layers 0 to 2; teacher_layers names 3"),
        ("[16, 32]", "[16, 48]", "prefixes of stage 'frozen' must be above 0 and end with dim = 32"),
        ("max_length = 24", "max_length = 39", "reads 38 tokens; max_length = 39 must be at most that"),
        ("teacher_layers = [0, 2]", "dim = 32\nnum_heads = 2", "stage rows: embedding_match brings the table"),
    ):
        assert old in STUDENT
        wrong.write_text(STUDENT.replace(old, new))
        assert_refused(train_command(wrong, tmp_path / "run", "--teacher", bert), message)
        assert not (tmp_path / "run").exists()


def test_a_vocabulary_that_meets_no_english_word(student: Path, tmp_path: Path) -> None:
    greek = write_tiny_bert(tmp_path / "bert", words=["α", "β"])
    alone = student.with_name("alone.toml")  # sentence-transformers would refuse the teacher before
    alone.write_text(STUDENT[: STUDENT.index("[[stage]]", STUDENT.index("rows"))])
    refusal = "none of 360 pieces is an English word that it knows; the vocabulary needs"
    assert_refused(train_command(alone, tmp_path / "run", "--teacher", greek), refusal)
    assert not (tmp_path / "run" / "checkpoints").exists()
    outcome = train_command(student, tmp_path / "none")
    assert_refused(outcome, "teacher_layers takes over the layers of a teacher; name its")
    outcome = train_command(student, tmp_path / "none", "--fast-teacher", greek)
    assert_refused(outcome, "name its folder with --teacher")
