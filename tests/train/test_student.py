"""A whole training on a teacher's layers, English alone among its text; and teachers that it cannot take over."""

import dataclasses
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from commands import assert_refused, edit_json
from tiny_bert import STEPS, STUDENT, write_tiny_bert
from toy import toy_pairs
from trainings import open_trainer, train, train_command

from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.teacher.bert import read_teacher
from xsent_train.teacher.open import open_teacher


def test_it_comes_near_its_teacher_whose_frozen_layers_stay(learnt: Path, bert: Path) -> None:
    unseen = toy_pairs(100, seed=99)
    teacher = open_teacher(bert).encode([pair[2] for pair in unseen])

    def cosine(stage: str, column: int) -> float:
        encoder = CheckpointEncoder(load_checkpoint(learnt.parent / f"{stage}-{STEPS:07d}"))
        return float((encoder.encode([pair[column] for pair in unseen]) * teacher).sum(axis=1).mean())

    for column in (2, 3):
        assert cosine("everything", column) > cosine("frozen", column) > 0.4
    last = load_checkpoint(learnt)
    assert last.about["space"] == "tiny-bert"
    layers = read_teacher(bert).layers([0, 2], max_length=24)
    frozen = load_checkpoint(learnt.parent / f"frozen-{STEPS:07d}")
    assert frozen.config.activation == "gelu" and frozen.config.norm_eps == 1e-7
    for name, weight in layers.items():
        assert torch.equal(frozen.weights[f"encoder.{name}"], weight), name
        assert not torch.equal(last.weights[f"encoder.{name}"], weight), name


def test_a_deeper_stage_takes_the_missing_layers(student: Path, learnt: Path, bert: Path, tmp_path: Path) -> None:
    whole = load_checkpoint(learnt)
    weights = {name: weight for name, weight in whole.weights.items() if "layers.1." not in name}
    about = {**whole.about, "model": {**whole.about["model"], "num_layers": 1, "first": 7}}
    trainer = open_trainer(student, tmp_path, prepared=learnt.parent.parent, teacher=bert)
    shallow = dataclasses.replace(whole, about=about, weights=weights)
    encoder = trainer.prepare_stage(2, shallow, None)[0].encoder
    assert encoder.config.num_layers == 2 and encoder.config.first == 7
    state, teacher = encoder.state_dict(), read_teacher(bert).layers([0, 2], max_length=24)
    for name, weight in state.items():
        expected = teacher[name] if name.startswith("layers.1.") else whole.weights[f"encoder.{name}"]
        assert torch.equal(weight, expected), name


def test_a_shallower_stage_keeps_the_layers_that_it_names(student: Path, bert: Path, tmp_path: Path) -> None:
    recipe = student.with_name("small.toml")
    more = '[[stage]]\nname = "small"\nlike = "frozen"\nnum_layers = 1\nkeep_layers = [1]\n'
    recipe.write_text((student.read_text() + more).replace(f"steps = {STEPS}", "steps = 2"))
    small = load_checkpoint(train(recipe, tmp_path / "run", teacher=bert))
    before = load_checkpoint(small.path.with_name("everything-0000002")).weights
    layer = [name for name in small.weights if "layers." in name]
    assert len(layer) == len([name for name in before if "layers.1." in name]) > 0
    assert all(torch.equal(small.weights[n], before[n.replace("layers.0.", "layers.1.")]) for n in layer)
    recipe.write_text(recipe.read_text().replace("keep_layers = [1]", "keep_layers = [2]"))
    outcome = train_command(recipe, tmp_path / "other", "--teacher", bert)
    assert_refused(outcome, "stage 'small' keeps layer 2 of 2, counted from 0")


def test_a_teacher_that_changed_stops_a_resume(student: Path, learnt: Path, tmp_path: Path) -> None:
    other = write_tiny_bert(tmp_path / "other", layer_norm_eps=1e-6)
    outcome = train_command(student, learnt.parent.parent, "--teacher", other)
    assert_refused(outcome, "norm_eps: 1e-07 became 1e-06.* teacher_layers: '")


def test_english_alone_is_drawn_with_a_teacher_alone(student: Path, bert: Path, tmp_path: Path) -> None:
    text = student.read_text().replace("align = 1, distil = 1, similarity_distil = 10", "align = 1")
    student.with_name("other.toml").write_text(text)
    trainer = open_trainer(student.with_name("other.toml"), tmp_path / "run", teacher=bert)
    store = trainer.data.store
    alone = store.lengths(np.arange(len(store)), 1) == 0
    assert 150 < alone.sum() < 200  # but for what is held out
    for number, stage in enumerate(trainer.recipe.stages):
        batches = trainer.data.draw(number, stage)
        assert bool(alone[batches.drawn()].any()) is (stage.name != "everything")
        assert all(len(batch.group) == stage.batch_size for batch in batches.since(0))


WEIGHTS, POOLING = "model.safetensors", "1_Pooling/config.json"


def test_what_is_no_bert_to_take_layers_from(student: Path, bert: Path, tmp_path: Path) -> None:
    damages: list[tuple[Callable[[Path], object] | dict[str, object], str]] = [
        ({"model_type": "distilbert"}, "is of type 'distilbert'; only the layers of a 'bert' can be taken over"),
        ({"hidden_act": "relu"}, "its activation is 'relu'; supported are gelu, silu"),
        ({"intermediate_size": 50}, r"does not fit config.json: .*ffn_in.weight is \[48, 32\]"),
        ({"num_hidden_layers": 4}, "encoder.layer.3.*of a BERT"),
        ({"hidden_size": "wide"}, "of a BERT"),
        (lambda path: (path / WEIGHTS).rename(path / "pytorch_model.bin"), "pickled weights can run code"),
        (lambda folder: (folder / WEIGHTS).unlink(), "safetensors: missing; expected .* model.safetensors"),
        (lambda folder: (folder / "config.json").write_text("[1]"), "damaged .*whose layers can be taken over"),
        (lambda folder: os.truncate(folder / WEIGHTS, 1000), "damaged .*whose layers can be taken over"),
        (lambda path: (path / POOLING).write_text('{"pooling_mode": "cls"}'), "does not take the mean"),
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
        (
            "teacher_layers = [0, 2]",
            "dim = 32\nnum_heads = 2",
            "embedding_match .*; set teacher_layers",
        ),
    ):
        assert old in STUDENT
        wrong.write_text(STUDENT.replace(old, new))
        assert_refused(train_command(wrong, tmp_path / "run", "--teacher", bert), message)
        assert not (tmp_path / "run").exists()


def test_a_vocabulary_that_meets_no_english_word(student: Path, tmp_path: Path) -> None:
    greek = write_tiny_bert(tmp_path / "bert", words=["α", "β"])
    alone = student.with_name("alone.toml")  # sentence-transformers would refuse the teacher before
    alone.write_text(STUDENT[: STUDENT.index("[[stage]]", STUDENT.index("rows"))])
    refusal = "knows none of the 360 pieces as an English word; train the vocabulary"
    assert_refused(train_command(alone, tmp_path / "run", "--teacher", greek), refusal)
    assert not (tmp_path / "run" / "checkpoints").exists()
    outcome = train_command(student, tmp_path / "none")
    assert_refused(outcome, "teacher_layers takes over layers of a teacher; name its folder with --teacher")
