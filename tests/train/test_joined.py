"""Several teachers as one: what they say together by hand, text that some cannot read, a whole training."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import assert_refused
from numpy.typing import NDArray
from tiny_bert import STAGE, STEPS, WIDTH, write_tiny_bert
from toy import toy_pairs
from trainings import (
    Says,
    arguments,
    assert_same_weights,
    kill_in_the_middle,
    look,
    open_trainer,
    train,
    train_command,
)

from xsent.errors import DataError
from xsent.similarity import unit_rows
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.data.corpus import Pair
from xsent_train.recipe import TeacherConfig
from xsent_train.teacher.joined import JoinedTeacher, Member
from xsent_train.teacher.open import Teacher, open_teacher

DIM = 6
PAIRS = [Pair(*pair) for pair in toy_pairs(200)]


def member(name: str, encoder: Says, **settings: object) -> Member:
    return Member(name, Teacher(Path(name), encoder, f"{name:0<16}"), TeacherConfig.model_validate(settings))


def joined(folder: Path, *members: Member, dim: int = 4) -> JoinedTeacher:
    teacher = JoinedTeacher(members, dim)
    teacher.prepare(folder, "key", lambda: PAIRS)
    return teacher


def test_targets_are_the_weighted_centred_means_of_both_sides_on_their_principal_axes(tmp_path: Path) -> None:
    both, english = Says(), Says(lambda text: look(text[::-1]))
    teacher = joined(tmp_path, member("a", both, weight=2, prompt="q: "), member("b", english, languages=["en"]))
    assert all(text.startswith("q: ") for text in both.asked[1:]) and PAIRS[0].english in english.asked
    assert not any(pair.translation in english.asked for pair in PAIRS)

    def half(text: str) -> NDArray[np.float32]:  # how vectors are kept
        return unit_rows(look(text).astype(np.float16))[0]

    first = {text: half(f"q: {text}") for pair in PAIRS for text in (pair.english, pair.translation)}
    second = {pair.english: half(pair.english[::-1]) for pair in PAIRS}
    means = [
        np.mean([first[text] for pair in PAIRS for text in (pair.english, pair.translation)], axis=0),
        np.mean([second[pair.english] for pair in PAIRS], axis=0),
    ]
    rows = []
    for pair in PAIRS:
        sides = unit_rows([first[pair.english] - means[0], first[pair.translation] - means[0]])
        parts = [unit_rows(sides.sum(axis=0))[0] * 2**0.5, unit_rows(second[pair.english] - means[1])[0]]
        rows.append(np.concatenate(parts))
    whole = unit_rows(rows)
    values, axes = np.linalg.eigh(whole.T @ whole)
    expected = np.abs(whole @ axes[:, ::-1][:, :4])
    assert np.allclose(np.abs(teacher.targets(PAIRS)), expected, atol=1e-3)
    assert values[-1] / len(PAIRS) > 0.1


def test_what_a_teacher_cannot_read_is_read_off_the_others(tmp_path: Path) -> None:
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(DIM, DIM)))[0].astype(np.float32)
    teacher = joined(tmp_path, member("a", Says()), member("b", Says(lambda t: look(t) @ turn), languages=["en"]))
    pairs = PAIRS[:50]
    english = teacher.targets([Pair("s", "en", pair.english, "") for pair in pairs])
    as_if_foreign = teacher.targets([Pair("s", "fr", pair.english, "") for pair in pairs])
    # The second teacher says what the first says, turned: the regression finds it, up to its ridge and the means.
    cosines = (unit_rows(english) * unit_rows(as_if_foreign)).sum(axis=1)
    assert cosines.mean() > 0.99 and cosines.min() > 0.9


def test_each_sentence_is_asked_once_and_kept(tmp_path: Path) -> None:
    says = Says()
    joined(tmp_path, member("a", says)).targets(PAIRS)
    assert len(says.asked) == len(set(says.asked))  # the first is the probe of its dimensions
    again = Says()
    expected = joined(tmp_path, member("a", again)).targets(PAIRS)
    assert len(again.asked) == 1
    other = JoinedTeacher([member("a", again)], 4)
    other.prepare(tmp_path, "another store", lambda: PAIRS)
    assert other.identity != joined(tmp_path, member("a", again)).identity
    assert np.array_equal(other.targets(PAIRS), expected)


def test_what_cannot_be_joined_is_said(tmp_path: Path) -> None:
    english = member("b", Says(), languages=["en"])
    with pytest.raises(DataError, match="dim = 7: the teachers' vectors have 6 numbers together"):
        JoinedTeacher([english], 7)
    with pytest.raises(DataError, match="0 pairs that all teachers know; the axes need 8 or more"):
        JoinedTeacher([english], 4).prepare(tmp_path, "key", lambda: [Pair("s", "fr", "Bonjour.", "")])
    with pytest.raises(DataError, match=r"no teacher knows 'fr', the language of 'Bonjour\.'"):
        joined(tmp_path, english).targets([Pair("s", "fr", "Bonjour.", "")])


TAUGHT = f"""
name = "taught"
languages = ["de", "fr"]
dim = {WIDTH}
num_heads = 4
ffn_dim = 48
activation = "gelu"
norm_eps = 1e-7
max_length = 24
readouts = true
[teachers.one]
space = "one"
languages = ["en"]
[teachers.two]
prompt = "a "
weight = 2
[corpus]
files = ["pairs.tsv", "english.tsv", "alone.tsv"]
validation_share = 0.1
validation_pairs = 20
most = {{ others = 150 }}
[[stage]]
name = "readouts"
num_layers = 2
steps = 0
table_learning_rate = 1e-3
layer_prefixes = [0, 1, 2]
objectives = {{ distil = 1 }}
{STAGE}
name = "taught"
like = "readouts"
learning_rate = 1e-4
exit_weight = 0.5
objectives = {{ align = 0.1, distil = 3, similarity_distil = 10 }}
"""


@pytest.fixture(scope="module")
def recipe(student: Path) -> Path:
    """A recipe with two teachers beside text without translation."""
    texts = [pair[3] for pair in toy_pairs(100, seed=8) if pair[1] == "fr"]
    (student.parent / "alone.tsv").write_text("".join(f"alone\tfr\t{text}\n" for text in texts))
    student.with_name("taught.toml").write_text(TAUGHT)
    return student.with_name("taught.toml")


@pytest.fixture(scope="module")
def given(bert: Path, learnt: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Its teachers and its start."""
    other = write_tiny_bert(tmp_path_factory.mktemp("two") / "bert", hidden_act="silu")
    return {"teacher": {"one": bert, "two": other}, "start": learnt}


@pytest.fixture(scope="module")
def taught(recipe: Path, given: dict[str, Any]) -> Path:
    return train(recipe, recipe.parent / "taught", **given)


def options(given: dict[str, Any]) -> list[str]:
    named = [text for name, path in given["teacher"].items() for text in ("--teacher", f"{name}={path}")]
    return [*named, "--start", str(given["start"])]


@pytest.mark.slow
def test_every_depth_comes_near_them(recipe: Path, given: dict[str, Any], taught: Path) -> None:
    whole = load_checkpoint(taught)
    assert whole.config.depths == (0, 1, 2) and whole.about["recipe"]["teachers"]["two"]["weight"] == 2
    fitted = load_checkpoint(taught.parent / "readouts-0000000")
    layers = [name for name in fitted.weights if ".layers." in name]
    before = load_checkpoint(given["start"]).weights
    assert layers and all(torch.equal(fitted.weights[name], before[name]) for name in layers)
    assert whole.weights["teachers.axes"].shape == (2 * WIDTH, WIDTH)
    assert whole.weights["teachers.means"].shape == (2 * WIDTH,)

    unseen = toy_pairs(100, seed=99)
    joined = open_trainer(recipe, taught.parent.parent, **given).teachers.joined
    targets = unit_rows(joined.targets([Pair(*pair) for pair in unseen]))
    for depth in (0, 1, 2):
        for column in (2, 3):
            near = []
            for checkpoint in (fitted, whole):
                vectors = CheckpointEncoder(checkpoint, depth=depth).encode([pair[column] for pair in unseen])
                near.append(float((vectors * targets).sum(axis=1).mean()))
            assert near[1] > near[0] > 0.1, (depth, column, near)
    theirs = open_teacher(given["teacher"]["one"]).encode([pair[2] for pair in toy_pairs(200)])
    for column, least in ((2, 0.6), (3, 0.8)):  # the space of a teacher is read off the student's
        ours = CheckpointEncoder(whole).encode([pair[column] for pair in toy_pairs(200)])
        mapped = unit_rows(ours @ whole.weights["spaces.one"].numpy())
        assert (mapped * theirs).sum(axis=1).mean() > least


def test_a_stage_weighs_the_tokens_of_the_depths_that_it_names(
    recipe: Path, given: dict[str, Any], taught: Path, tmp_path: Path
) -> None:
    weighing = recipe.with_name("weighing.toml")
    stage = '[[stage]]\nname = "weighing"\nlike = "taught"\nsteps = 0\n'
    weights = "attention = { 1 = { half = 0.01 }, 2 = { half = 0.05, first = 3 } }\n"
    weighing.write_text(recipe.read_text() + stage + weights)
    trainer = open_trainer(weighing, tmp_path, prepared=taught.parent.parent, **given)
    before = load_checkpoint(taught)
    model, _ = trainer.prepare_stage(2, before, None)
    state = model.encoder.state_dict()
    changed = {name for name, weight in state.items() if not torch.equal(weight, before.weights[f"encoder.{name}"])}
    assert changed == {"readouts.1.query", "readouts.2.query"}


def test_readouts_are_kept_on_their_axes_and_fitted_anew_on_others(
    recipe: Path, given: dict[str, Any], taught: Path, tmp_path: Path
) -> None:
    trainer = open_trainer(recipe, tmp_path, prepared=taught.parent.parent, **given)
    whole = load_checkpoint(taught)
    others = {**whole.weights, "teachers.axes": whole.weights["teachers.axes"].flip(1)}
    unknown = {name: weight for name, weight in whole.weights.items() if not name.startswith("teachers.")}
    for weights, kept in ((whole.weights, True), (others, False), (unknown, False)):
        before = dataclasses.replace(whole, weights=weights)
        model, _ = trainer.prepare_stage(1, before, None)
        for depth in (0, 1, 2):
            name = f"readouts.{depth}.weight"
            same = torch.equal(model.encoder.state_dict()[name], whole.weights[f"encoder.{name}"])
            assert same is kept, (depth, kept)


@pytest.mark.slow
def test_killed_it_resumes_to_the_bit(recipe: Path, given: dict[str, Any], taught: Path, tmp_path: Path) -> None:
    often, run = recipe.with_name("often.toml"), tmp_path / "run"
    often.write_text(f"checkpoint_minutes = 0\n{TAUGHT}")
    kill_in_the_middle([*arguments(often, run), *options(given)], run, "taught", STEPS, write=400)
    assert_same_weights(train(recipe, run, **given), taught)


def test_teachers_that_are_missing_or_other_are_named(
    recipe: Path, given: dict[str, Any], taught: Path, tmp_path: Path
) -> None:
    run, bert = taught.parent.parent, given["teacher"]["one"]
    _, one, _, two, *start = options(given)
    other = write_tiny_bert(tmp_path / "other", layer_norm_eps=1e-6)
    for teachers, message in (
        ([one], "the recipe's teachers need paths: add --teacher two=PATH"),
        ([one, two, f"x={bert}"], "the recipe has no such teacher"),
        ([bert], "the recipe's teachers need paths: add --teacher one=PATH"),
        ([one, two, bert], "--teacher PATH: the recipe has no such teacher; its teachers are one, two"),
        ([one, one], "was already given"),
        ([one, f"two={tmp_path / 'none'}"], "none: no such folder"),
        ([one, f"two={other}"], "teacher: '"),
    ):
        words = [word for teacher in teachers for word in ("--teacher", teacher)]
        assert_refused(train_command(recipe, run, *words, *start), message)
    shutil.copytree(run, tmp_path / "damaged")
    for file in (tmp_path / "damaged" / "teachers").glob("joined-*.safetensors"):
        file.write_bytes(file.read_bytes()[:100])
    assert_refused(train_command(recipe, tmp_path / "damaged", *options(given)), "delete the folder")
