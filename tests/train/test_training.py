"""Training as a whole: it learns, resumes to the bit, stops cleanly, and refuses what does not fit."""

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import edit_json, flip_byte
from safetensors.numpy import load_file, save_file
from toy import QUEUED, toy_pairs, write_toy_recipe
from trainings import COMMAND, arguments, assert_same_weights, kill_in_the_middle, train

import xsent
from xsent.errors import DataError, XsentError
from xsent_export.export import export
from xsent_train.checkpoint import (
    AXES,
    average_checkpoints,
    keep_layers,
    load_checkpoint,
    load_optimizer,
    open_encoder,
    save_checkpoint,
    stage_folders,
)
from xsent_train.data.corpus import Corpus
from xsent_train.data.preparation import TrainingPairs, prepare
from xsent_train.recipe import Objectives, load_recipe
from xsent_train.trainer import Trainer, open_start, require_fit, weights_in_common

BUILTIN = Path(xsent.__file__).parent / "builtin"
TABLE, QKV, FEWER_STEPS = "encoder.table.weight", "encoder.layers.0.qkv.weight", ("steps = 150", "steps = 20")
NO_TORCH = "import sys; sys.modules['torch'] = None; "


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_recipe(tmp_path_factory.mktemp("toy"), minutes=0)


@pytest.fixture(scope="module")
def trained(recipe: Path) -> Path:
    """An uninterrupted run."""
    return train(recipe, recipe.parent / "run")


def copied(trained: Path, folder: Path, *, without: str = "") -> Path:
    """A copy of the run, maybe without its last checkpoint."""
    return Path(shutil.copytree(trained.parent.parent, folder / "run", ignore=lambda *_: [without]))


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_training_learns_to_translate(trained: Path) -> None:
    unseen = toy_pairs(100, seed=99)
    for checkpoint, least in ((trained.parent / "table-0000150", 0.9), (trained, 0.6)):  # a new layer, twelve steps
        encoder = open_encoder(checkpoint)
        assert encoder is not None
        english, other = (encoder.encode([pair[i] for pair in unseen]) for i in (2, 3))
        assert ((english @ other.T).argmax(axis=1) == np.arange(100)).mean() > least
    about = json.loads((trained / "checkpoint.json").read_text())
    assert about["languages"] == ["en", "de", "fr"]
    assert set(about["validation"]["p1"]) == set(about["validation"]["loss"]) == {"de", "fr"}
    assert not encoder.encode(["", "\u200b"]).any() and encoder.encode([]).shape == (0, 32)
    vectors = encoder.encode(["cat", "", "dog house"])
    assert not vectors[1].any() and np.allclose(vectors[[0, 2]], encoder.encode(["cat", "dog house"]), atol=1e-6)


def test_killed_in_both_stages_a_training_on_two_threads_resumes_to_the_bit(recipe: Path, tmp_path: Path) -> None:
    trained, run = train(recipe, tmp_path / "whole", threads=2), tmp_path / "run"
    for stage, steps in (("table", 150), ("layers", 12)):
        kill_in_the_middle(arguments(recipe, run, threads=2), run, stage, steps)
    assert_same_weights(train(recipe, run, threads=2), trained)


def test_clusters_windows_queues_and_chunks_resume_wherever_they_stopped(tmp_path: Path, mini_bundle: Path) -> None:
    """Killed; at a window's last step, at the first of the next, and where the queue reaches into two earlier ones."""
    recipe = write_toy_recipe(tmp_path, FEWER_STEPS, minutes=0, more=QUEUED)
    whole, run = tmp_path / "whole", tmp_path / "run"

    class Copying(Trainer):
        def _save(self, number: int, *state: Any) -> Path:  # noqa: ANN401  what the trainer has
            path = super()._save(number, *state)
            if number == 2 and path.name.endswith(("03", "04", "05", "09")):
                shutil.copytree(whole, tmp_path / path.name)
            return path

    trained = Copying(load_recipe(recipe), [tmp_path / "pairs.tsv"], whole, threads=1, teacher=mini_bundle).train()
    kill_in_the_middle([*arguments(recipe, run), "--teacher", str(mini_bundle)], run, "queued", steps=14)
    copies = sorted(tmp_path.glob("queued-*"))
    assert [copy.name[-1] for copy in copies] == ["3", "4", "5", "9"]
    for stopped in (run, *copies):
        assert_same_weights(train(recipe, stopped, teacher=mini_bundle), trained)


def test_what_a_start_has_in_common(trained: Path, caplog: pytest.LogCaptureFixture) -> None:
    start = load_checkpoint(trained)
    deep = replace(start, about={**start.about, "model": {**start.about["model"], "num_layers": 3}})
    weights_in_common(deep, start.config, None)
    assert "has 3 layers, the stage 1: the upper ones are not taken" in caplog.text
    start = replace(start, weights={**start.weights, "projection.weight": torch.ones(7, start.config.dim)})
    assert "projection.weight" in weights_in_common(start, start.config, 7)  # to a teacher of as many dimensions
    assert "projection.weight" not in weights_in_common(start, start.config, 8)


def test_the_layers_that_a_stage_keeps(trained: Path) -> None:
    whole = load_checkpoint(trained)
    layer = {name: weight for name, weight in whole.weights.items() if "layers.0." in name}
    more = {name.replace("layers.0.", f"layers.{i}."): weight + i for name, weight in layer.items() for i in (1, 2)}
    about = {**whole.about, "model": {**whole.about["model"], "num_layers": 3}}
    kept = keep_layers(replace(whole, about=about, weights={**whole.weights, **more}), [0, 2])
    assert kept.config.num_layers == 2
    for name, weight in layer.items():
        assert torch.equal(kept.weights[name], weight)
        assert torch.equal(kept.weights[name.replace("layers.0.", "layers.1.")], weight + 2)
    assert not any("layers.2." in name for name in kept.weights)
    with pytest.raises(DataError, match=r"has 1 layers; keep_layers names 1, counted from 0"):
        keep_layers(whole, [1])


def test_the_mean_of_checkpoints_by_hand(trained: Path) -> None:
    table, deep = load_checkpoint(trained.parent / "table-0000150"), load_checkpoint(trained)
    ones = replace(table, weights={TABLE: torch.ones(2, 2), "projection.weight": torch.ones(3, 2)})
    fives = replace(deep, weights={TABLE: torch.full((2, 2), 5.0), "encoder.positions": torch.ones(4)})
    found = average_checkpoints([fives, ones], [1, 3])
    assert found.config.num_layers == 0
    assert list(found.weights) == [TABLE] and torch.equal(found.weights[TABLE], torch.full((2, 2), 2.0))


def test_readouts_into_other_axes_are_left_out_of_a_mean(trained: Path) -> None:
    readout, checkpoint = "encoder.readouts.1.weight", load_checkpoint(trained)
    ones = replace(checkpoint, weights={TABLE: torch.ones(2, 2), readout: torch.ones(2, 2), AXES: torch.eye(2)})
    fives = replace(checkpoint, weights={TABLE: torch.full((2, 2), 5.0), readout: torch.zeros(2, 2)})
    found = average_checkpoints([fives, ones], [1, 3]).weights
    assert torch.equal(found[TABLE], torch.full((2, 2), 2.0))
    assert torch.equal(found[readout], torch.ones(2, 2)) and torch.equal(found[AXES], torch.eye(2))


def test_a_mean_with_the_start(tmp_path: Path, trained: Path) -> None:
    recipe = write_toy_recipe(tmp_path)
    text = recipe.read_text()
    last = '[[stage]]\nname = "last"\nlike = "table"\nsteps = 0\nstarts_from = { table = 1, start = 3 }\n'
    recipe.write_text(text[: text.rindex("[[stage]]")].replace(*FEWER_STEPS) + last)
    with pytest.raises(DataError, match="stage last starts_from start, the checkpoint or bundle of --start; name one"):
        train(recipe, tmp_path / "none")
    end = load_checkpoint(train(recipe, tmp_path / "run", start=trained.parent / "table-0000150"))
    tables = [
        load_checkpoint(folder).weights[TABLE]
        for folder in (tmp_path / "run" / "checkpoints" / "table-0000020", trained.parent / "table-0000150")
    ]
    torch.testing.assert_close(end.weights[TABLE], tables[0] / 4 + tables[1] * 3 / 4)


def test_a_stage_starts_from_the_mean_of_earlier_ones(tmp_path: Path) -> None:
    recipe = write_toy_recipe(tmp_path)
    text = recipe.read_text()
    table = text[text.index("[[stage]]") : text.rindex("[[stage]]")]
    more = table.replace('"table"', '"more"').replace(*FEWER_STEPS)
    last = '[[stage]]\nname = "last"\nlike = "table"\nsteps = 0\nstarts_from = { table = 1, more = 3 }\n'
    recipe.write_text(text[: text.index("[[stage]]")] + table + more + last)
    end = load_checkpoint(train(recipe, tmp_path / "run"))
    assert end.path.name == "last-0000000" and end.about["validation"]["p1"]
    names = "table-0000150", "more-0000020"
    tables = [load_checkpoint(tmp_path / "run" / "checkpoints" / name).weights[TABLE] for name in names]
    assert not torch.equal(*tables)
    torch.testing.assert_close(end.weights[TABLE], tables[0] / 4 + tables[1] * 3 / 4)


def test_a_start_without_layers_fits_any_heads(recipe: Path, trained: Path) -> None:
    other = load_recipe(recipe).model_copy(update={"num_heads": 4, "ffn_dim": 64})
    assert open_start(other, trained.parent / "table-0000150").step == 150
    with pytest.raises(DataError, match="num_heads = 2, the recipe 4; to start from it"):
        open_start(other, trained)


def test_a_corpus_of_invisible_characters_is_refused(tmp_path: Path) -> None:
    config, pairs = load_recipe(write_toy_recipe(tmp_path)), tmp_path / "pairs.tsv"
    corpus = TrainingPairs(Corpus([pairs]), config.corpus.validation_share)
    lines = (pair if corpus.held_out(pair) else pair._replace(translation="\u200b") for pair in list(corpus.corpus))
    pairs.write_text("".join("\t".join(pair) + "\n" for pair in lines))
    with pytest.raises(DataError, match="no pair to train on"):
        prepare(config, [pairs], tmp_path / "run", threads=1, vocabulary=BUILTIN / "sentencepiece.model")


@pytest.mark.parametrize(
    ("before", "argument", "code", "message"),
    [
        ("", "fliter", 2, "no command and no recipe 'fliter'; did you mean 'filter'?"),
        ("", "no.toml", 1, "Error: no.toml: cannot be read (No such file or directory); expected a recipe"),
        (NO_TORCH, "toy.toml", 1, "torch is not installed; pip install 'xsent[train]'"),
    ],
)
def test_command_line_failures_are_one_line(
    before: str, argument: str, code: int, message: str, recipe: Path, tmp_path: Path
) -> None:
    command = [*COMMAND[:2], before + COMMAND[2], argument]
    result = subprocess.run(command, capture_output=True, text=True, cwd=recipe.parent)
    assert result.returncode == code and message in result.stderr
    assert code == 2 or result.stderr.count("\n") == 1


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    slow = write_toy_recipe(tmp_path, ("steps = 150", "steps = 100000"))
    run = tmp_path / "run"
    process = subprocess.Popen(arguments(slow, run), stderr=subprocess.PIPE, text=True)
    while not (run / "log.jsonl").exists():
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes from there" in messages and "Traceback" not in messages
    (saved,) = run.glob("checkpoints/*")
    assert load_checkpoint(saved).step > 0


def test_bfloat16_trains(tmp_path: Path) -> None:
    short = write_toy_recipe(tmp_path, FEWER_STEPS, ("dim = 32", 'dim = 32\nprecision = "bf16-mixed"'))
    assert load_checkpoint(train(short, tmp_path / "run")).step == 12


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(trained: Path, tmp_path: Path) -> None:
    wild = write_toy_recipe(tmp_path, ("learning_rate = 2e-4", "learning_rate = 1e30"), minutes=0)
    run = copied(trained, tmp_path, without=trained.name)
    message = r"stage layers, step \d+: the loss of align and .* no longer a number|gradients are no longer"
    with pytest.raises(XsentError, match=message):
        train(wild, run)
    assert load_checkpoint(run / "checkpoints" / "table-0000150").step == 150


def test_a_finished_run_is_not_trained_again_and_not_under_other_settings(
    recipe: Path, trained: Path, tmp_path: Path
) -> None:
    before = times(trained)
    assert train(recipe, trained.parent.parent) == trained and times(trained) == before
    changed = write_toy_recipe(tmp_path, ("ugt = 0.1", "ugt = 0.2"), minutes=0)
    with pytest.raises(DataError, match=r"stages\[1\]\.objectives\.ugt\.weight: 0\.1 became 0\.2.*--out"):
        train(changed, trained.parent.parent)


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.parametrize("bundle", [False, True], ids=["checkpoint", "bundle"])
def test_a_training_starts_from_a_model_and_its_vocabulary(
    bundle: bool, recipe: Path, trained: Path, tmp_path: Path
) -> None:
    text, again, table = recipe.read_text(), tmp_path / "again.toml", trained.parent / "table-0000150"
    start, other = table, trained
    if bundle:
        start, other = (export(load_checkpoint(c), tmp_path / c.name).path for c in (table, trained))
    again.write_text(text[: text.index("[[stage]]")] + text[text.rindex("[[stage]]") :])
    os.link(recipe.parent / "pairs.tsv", tmp_path / "pairs.tsv")
    path = train(again, tmp_path / "run", start=start)
    assert train(again, tmp_path / "run", start=start) == path
    assert (path / "sentencepiece.model").read_bytes() == (table / "sentencepiece.model").read_bytes()
    assert load_checkpoint(path).about["started_from"] == load_checkpoint(trained).name
    # The same table, another seed of the stage: near what the whole training came to.
    rows = [load_file(folder / "model.safetensors")[TABLE] for folder in (path, trained)]
    assert np.abs(rows[0] - rows[1]).max() < 0.01
    with pytest.raises(DataError, match=r"start: '\w+' became '\w+'.*--out"):
        train(again, tmp_path / "run", start=other)


def test_a_start_of_another_vocabulary_is_refused(
    recipe: Path, trained: Path, mini_checkpoint: Path, tmp_path: Path
) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    shutil.copy(mini_checkpoint / "sentencepiece.model", other)
    edit_json(other / "checkpoint.json", sha256={})
    with pytest.raises(DataError, match=r"sentencepiece.model: damaged \(it has \d+ pieces, the table 360 rows\)"):
        train(recipe, tmp_path / "run", start=other)


@pytest.mark.parametrize(
    ("change", "more", "teacher", "message"),
    [
        (FEWER_STEPS, QUEUED, None, "stage queued distils and has no teacher; name its folder with --teacher"),
        (FEWER_STEPS, QUEUED, Path("nowhere"), "teacher nowhere: no such folder"),
        (("[corpus]", "[corpus]\nweights = { tolk = 2 }"), "", None, "no pair has: tolk; there are manual, talk"),
        (('["de", "fr"]', '["de", "fr", "xx"]'), "", None, "0 held-out pairs in 'xx'"),
    ],
)
def test_what_a_recipe_needs_is_said(
    change: tuple[str, str], more: str, teacher: Path | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=message):
        train(write_toy_recipe(tmp_path, change, more=more), tmp_path / "run", teacher=teacher)


def test_only_what_copies_a_teacher_of_another_dimension_needs_a_projection(recipe: Path) -> None:
    config = load_recipe(recipe)

    def require(**objectives: int) -> None:
        changes = {"objectives": Objectives(**objectives), "learning_rate": 0.0, "table_learning_rate": 1e-3}
        stage = config.stages[0].model_copy(update=changes)
        require_fit(config.model_copy(update={"stages": (stage,)}), 1, config.dim + 1)

    require(align=1, similarity_distil=1)
    with pytest.raises(DataError, match="needs learning_rate above 0"):  # it would stay random
        require(distil=1)


@pytest.mark.parametrize(
    ("change", "ranks", "started", "message"),
    [
        ({"swapped": 0.2}, 1, False, "stage table: swapped needs a trained encoder .*--start"),
        ({"swapped": 0.2}, 2, True, "one device alone, not for 2"),
        ({"keep_layers": (0,)}, 1, False, "keep_layers needs a trained encoder .*--start"),
        ({"batch_size": 31}, 2, False, "batch_size = 31 cannot be divided by 2 processes"),
    ],
)
def test_what_a_training_cannot_follow_is_said(
    change: dict[str, object], ranks: int, started: bool, message: str, recipe: Path
) -> None:
    config = load_recipe(recipe)
    config = config.model_copy(update={"stages": (config.stages[0].model_copy(update=change),)})
    require_fit(config, 1, None, started=True)
    with pytest.raises(DataError, match=message):
        require_fit(config, ranks, None, started=started)


def test_another_corpus_is_refused_before_anything_is_overwritten(trained: Path, tmp_path: Path) -> None:
    run = copied(trained, tmp_path)
    before = times(run)
    with pytest.raises(DataError, match=r"another corpus or vocabulary.*--out"):
        train(write_toy_recipe(tmp_path, minutes=0, pairs=700), run)
    assert times(run) == before


def test_a_shared_store_is_used_and_never_made_anew_for_other_data(recipe: Path, trained: Path, tmp_path: Path) -> None:
    prepared = trained.parent.parent
    before = times(prepared / "store")
    Trainer(load_recipe(recipe), [recipe.parent / "pairs.tsv"], tmp_path / "run", threads=1, prepared=prepared)
    assert not (tmp_path / "run" / "store").exists()
    other = load_recipe(write_toy_recipe(tmp_path, pairs=700))
    with pytest.raises(DataError, match="was prepared for another corpus"):
        Trainer(other, [tmp_path / "pairs.tsv"], tmp_path / "run", threads=1, prepared=prepared)
    assert times(prepared / "store") == before


def test_stages_whose_names_begin_alike_keep_apart(tmp_path: Path) -> None:
    for name in ("table", "table-2"):
        (tmp_path / "checkpoints" / f"{name}-0000005").mkdir(parents=True)
    for name in ("table", "table-2"):
        assert [path.name for path in stage_folders(tmp_path, name)] == [f"{name}-0000005"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.safetensors", b"123", r"model.safetensors: damaged \(.*train it again"),
        ("checkpoint.json", b"{", "checkpoint.json: damaged"),
        ("checkpoint.json", b"{}", "version None"),
        ("checkpoint.json", b'{"format_version": 9}', "version 9"),
        ("model.safetensors", None, "model.safetensors: missing; take another checkpoint"),
        ("checkpoint.json", None, "no checkpoint.json in it; expected a checkpoint"),
    ],
)
def test_damaged_checkpoints_are_one_clear_line(
    name: str, content: bytes | None, message: str, trained: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "copy"))
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=message) as raised:
        load_checkpoint(folder)
    assert str(folder) in str(raised.value) and "\n" not in str(raised.value)


def test_a_changed_checkpoint_is_refused_where_it_knows_its_checksums(trained: Path, tmp_path: Path) -> None:
    def scale(file: Path) -> None:
        weights = load_file(file)
        save_file({**weights, QKV: 50 * weights[QKV]}, file)

    def reshape(file: Path) -> None:
        edit_json(file, model={**json.loads(file.read_bytes())["model"], "num_heads": 4})

    changes = {"model.safetensors": scale, "checkpoint.json": reshape}
    for name in (*changes, "sentencepiece.model", "validation.tsv"):
        folder = Path(shutil.copytree(trained, tmp_path / name))
        changes.get(name, flip_byte)(folder / name)
        with pytest.raises(DataError, match=rf"{name}: damaged \(its SHA-256 .*; take another checkpoint"):
            load_checkpoint(folder)
        if name != "sentencepiece.model":  # which does not open any more
            edit_json(folder / "checkpoint.json", sha256={})
            load_checkpoint(folder)
    whole = load_checkpoint(trained)
    save_checkpoint(tmp_path / "open", whole.about, whole.weights, dict(whole.weights), [whole.tokenizer])
    assert load_optimizer(tmp_path / "open").keys() == whole.weights.keys()
    flip_byte(tmp_path / "open" / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer.safetensors: damaged \(its SHA-256 .*; delete the checkpoint"):
        load_optimizer(tmp_path / "open")
