"""A whole training on a teacher's layers, English alone among its text."""

import dataclasses
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import assert_refused, edit_json
from tiny_bert import STEPS, write_tiny_bert
from toy import toy_pairs
from trainings import train, train_command

from xsent_export.export import export
from xsent_export.options import ExportOptions
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.recipe import load_recipe
from xsent_train.teacher.bert import read_teacher
from xsent_train.teacher.teacher import open_teacher
from xsent_train.trainer import Trainer


@pytest.fixture(scope="module")
def trained(student: Path, bert: Path) -> Path:
    """An uninterrupted run; the stages before the last stay beside it."""
    return train(student, student.parent / "whole", teacher=bert)


def test_it_comes_near_its_teacher_in_all_languages(trained: Path, bert: Path) -> None:
    unseen = toy_pairs(100, seed=99)
    teacher = open_teacher(bert).encode([pair[2] for pair in unseen])

    def cosine(stage: str, column: int) -> float:
        encoder = CheckpointEncoder(load_checkpoint(trained.parent / f"{stage}-{STEPS:07d}"))
        return float((encoder.encode([pair[column] for pair in unseen]) * teacher).sum(axis=1).mean())

    for column in (2, 3):
        assert cosine("everything", column) > cosine("frozen", column) > 0.4
    assert load_checkpoint(trained).about["space"] == "tiny-bert"


def test_frozen_layers_are_the_teachers(trained: Path, bert: Path) -> None:
    teacher = read_teacher(bert).layers([0, 2], max_length=24)
    frozen = load_checkpoint(trained.parent / f"frozen-{STEPS:07d}")
    assert frozen.config.activation == "gelu" and frozen.config.norm_eps == 1e-7
    for name, weight in teacher.items():
        assert torch.equal(frozen.weights[f"encoder.{name}"], weight), name
    moved = load_checkpoint(trained).weights
    assert not any(torch.equal(moved[f"encoder.{name}"], weight) for name, weight in teacher.items())


def test_a_deeper_stage_takes_the_layers_that_the_one_before_has_not(
    student: Path, trained: Path, bert: Path, tmp_path: Path
) -> None:
    whole, files = load_checkpoint(trained), [student.parent / name for name in ("pairs.tsv", "english.tsv")]
    weights = {name: weight for name, weight in whole.weights.items() if "layers.1." not in name}
    about = {**whole.about, "model": {**whole.about["model"], "num_layers": 1, "first": 7}}
    prepared = trained.parent.parent
    trainer = Trainer(load_recipe(student), files, tmp_path, threads=1, prepared=prepared, teacher=bert)
    shallow = dataclasses.replace(whole, about=about, weights=weights)
    encoder = trainer.prepare_stage(2, shallow, None)[0].encoder
    assert encoder.config.num_layers == 2 and encoder.config.first == 7
    state, teacher = encoder.state_dict(), read_teacher(bert).layers([0, 2], max_length=24)
    for name, weight in state.items():
        expected = teacher[name] if name.startswith("layers.1.") else whole.weights[f"encoder.{name}"]
        assert torch.equal(weight, expected), name


def test_a_shallower_stage_keeps_the_layers_that_it_names(student: Path, bert: Path, tmp_path: Path) -> None:
    recipe = student.with_name("small.toml")
    frozen = student.read_text().split("[[stage]]")[2].replace('"frozen"', '"small"').replace("num_layers = 2", "KEPT")
    more = frozen.replace("KEPT", "num_layers = 1\nkeep_layers = [1]")
    recipe.write_text((student.read_text() + "[[stage]]" + more).replace(f"steps = {STEPS}", "steps = 2"))
    small = load_checkpoint(train(recipe, tmp_path / "run", teacher=bert))
    before = load_checkpoint(small.path.with_name("everything-0000002")).weights
    layer = [name for name in small.weights if "layers." in name]
    assert len(layer) == len([name for name in before if "layers.1." in name]) > 0
    assert all(torch.equal(small.weights[n], before[n.replace("layers.0.", "layers.1.")]) for n in layer)
    recipe.write_text(recipe.read_text().replace("keep_layers = [1]", "keep_layers = [2]"))
    outcome = train_command(recipe, tmp_path / "other", "--teacher", bert)
    assert_refused(outcome, "stage 'small' keeps layer 2 of 2, counted from 0")


def test_a_teacher_that_changed_stops_a_resume(student: Path, trained: Path, bert: Path, tmp_path: Path) -> None:
    other = write_tiny_bert(tmp_path / "other", layer_norm_eps=1e-6)
    outcome = train_command(student, trained.parent.parent, "--teacher", other)
    assert_refused(outcome, "norm_eps: 1e-07 became 1e-06")
    assert "teacher_layers: '" in outcome[2]


def test_english_alone_is_drawn_with_a_teacher_alone(student: Path, bert: Path, tmp_path: Path) -> None:
    text = student.read_text().replace("align = 1, distil = 1, similarity_distil = 10", "align = 1")
    shutil.copytree(student.parent, tmp_path / "data", ignore=shutil.ignore_patterns("whole", "*.toml"))
    config = tmp_path / "data" / "other.toml"
    config.write_text(text)
    files = [tmp_path / "data" / name for name in ("pairs.tsv", "english.tsv")]
    trainer = Trainer(load_recipe(config), files, tmp_path / "run", threads=1, teacher=bert)
    store = trainer.data.store
    alone = store.lengths(np.arange(len(store)), 1) == 0
    assert 150 < alone.sum() < 200  # but for what is held out
    for number, stage in enumerate(trainer.recipe.stages):
        batches = trainer.data.draw(number, stage)
        assert bool(alone[batches.drawn()].any()) is (stage.name != "everything")
        assert all(len(batch.group) == stage.batch_size for batch in batches.since(0))


def test_the_8_bit_form_teaches_in_the_teachers_place(student: Path, bert: Path, tmp_path: Path) -> None:
    fast = tmp_path / "fast"
    export(bert, fast, ExportOptions("teacher", "float32"))
    short = student.with_name("short.toml")
    short.write_text(student.read_text().replace(f"steps = {STEPS}", "steps = 2"))
    code, _, err = train_command(short, tmp_path / "run", "--teacher", bert, "--fast-teacher", fast)
    assert code == 0, err
    other = write_tiny_bert(tmp_path / "other", hidden_act="silu")
    for wrong in (fast, bert):
        outcome = train_command(short, tmp_path / "no", "--teacher", other, "--fast-teacher", wrong)
        assert_refused(outcome, f"Error: {wrong}: is not the 8-bit form of {other}; xsent-export")


def test_a_start_of_another_form_or_kind(student: Path, trained: Path, bert: Path, tmp_path: Path) -> None:
    start = Path(shutil.copytree(trained, tmp_path / "start"))
    model = json.loads((start / "checkpoint.json").read_text())["model"]
    for changes, message in (
        ({"model": {**model, "activation": "silu"}}, "has activation = silu, the recipe gelu"),
        ({"model": {**model, "norm_eps": 1e-5}}, "has norm_eps = 1e-05, the recipe 1e-07"),
        ({"format_version": 2}, "checkpoint of version 2; this xsent reads version 3; take another checkpoint"),
    ):
        edit_json(start / "checkpoint.json", sha256={}, **changes)  # a checkpoint from before there were checksums
        assert_refused(train_command(student, tmp_path / "run", "--teacher", bert, "--start", start), message)
