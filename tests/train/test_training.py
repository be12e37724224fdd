"""Training as a whole: it resumes to the bit, stops cleanly, and refuses what does not fit."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import sentencepiece as spm
import torch
from commands import assert_refused, edit_json, flip_byte, raises
from safetensors.numpy import load_file, save_file
from toy import QUEUED, write_toy_recipe
from trainings import arguments, assert_same_weights, command, kill_in_the_middle, open_trainer, train, train_command

import xsent
from xsent.errors import DataError, XsentError
from xsent_export.export import export
from xsent_train.checkpoint import AXES, load_checkpoint, load_optimizer, open_encoder, save_checkpoint, stage_folders
from xsent_train.data.corpus import Corpus
from xsent_train.data.preparation import TrainingPairs, prepare
from xsent_train.derive import average_checkpoints, keep_layers, open_start
from xsent_train.model import Encoder, ModelConfig
from xsent_train.objectives import Objectives
from xsent_train.recipe import load_recipe
from xsent_train.requirements import require_fit
from xsent_train.stage_loop import Scores, StageLoop, Validation
from xsent_train.trainer import Trainer, weights_in_common

BUILTIN = Path(xsent.__file__).parent / "builtin"
TABLE, QKV, FEWER_STEPS = "encoder.table.weight", "encoder.layers.0.qkv.weight", ("steps = 150", "steps = 20")


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_toy_recipe(tmp_path_factory.mktemp("toy"))


@pytest.fixture(scope="module")
def trained(recipe: Path) -> Path:
    """An uninterrupted run."""
    return train(recipe, recipe.parent / "run")


def times(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_checkpoint_is_opened_as_an_encoder(trained: Path) -> None:
    encoder = open_encoder(trained)
    assert encoder.languages == ["en", "de", "fr"]
    assert not encoder.encode(["", "\u200b"]).any() and encoder.encode([]).shape == (0, 32)
    vectors = encoder.encode(["cat", "", "dog house"])
    assert not vectors[1].any() and np.allclose(vectors[[0, 2]], encoder.encode(["cat", "dog house"]), atol=1e-6)


def test_a_checkpoint_is_for_its_owner_only_because_it_holds_text(trained: Path) -> None:
    assert (trained / "validation.tsv").stat().st_size
    assert {f"{entry.stat().st_mode & 0o777:o}" for entry in (trained, *trained.iterdir())} == {"700", "600"}


def test_killed_in_both_stages_a_training_on_two_threads_resumes_to_the_bit(tmp_path: Path) -> None:
    trained = train(write_toy_recipe(tmp_path, FEWER_STEPS), tmp_path / "whole", threads=2)
    recipe, run = write_toy_recipe(tmp_path, FEWER_STEPS, minutes=0), tmp_path / "run"
    for stage, steps, write in (("table", 20, 150), ("layers", 12, 600)):
        kill_in_the_middle(arguments(recipe, run, threads=2), run, stage, steps, write=write)
    assert_same_weights(train(recipe, run, threads=2), trained)


def test_clusters_windows_and_queues_resume_wherever_they_stopped(tmp_path: Path, mini_bundle: Path) -> None:
    """At a window's last step, at the first of the next, and where the queue reaches into two earlier ones."""
    recipe, whole = write_toy_recipe(tmp_path, FEWER_STEPS, minutes=0), tmp_path / "whole"
    text = recipe.read_text()
    recipe.write_text(text[: text.rindex("[[stage]]")] + QUEUED)

    class Copying(Trainer):
        def _save(self, number: int, *state: Any) -> Path:  # noqa: ANN401  what the trainer has
            path = super()._save(number, *state)
            if number == 1 and path.name.endswith(("04", "05", "09")):
                shutil.copytree(whole, tmp_path / path.name)
            return path

    trained = Copying(load_recipe(recipe), tmp_path, whole, threads=1, teacher=mini_bundle).train()
    recipe.write_text(recipe.read_text().replace("checkpoint_minutes = 0", "checkpoint_minutes = 60"))
    copies = sorted(tmp_path.glob("queued-*"))
    assert [copy.name[-1] for copy in copies] == ["4", "5", "9"]
    for stopped in copies:
        assert_same_weights(train(recipe, stopped, teacher=mini_bundle), trained)


def test_what_a_stage_takes_of_the_one_before(trained: Path, caplog: pytest.LogCaptureFixture) -> None:
    start = load_checkpoint(trained)
    deep = replace(start, about={**start.about, "model": {**start.about["model"], "num_layers": 3}})
    weights_in_common(deep, start.config, None)
    assert "has 3 layers, the stage 1: the upper ones are dropped" in caplog.text
    headed = replace(start, weights={**start.weights, "projection.weight": torch.ones(7, start.config.dim)})
    assert "projection.weight" in weights_in_common(headed, start.config, 7)  # to a teacher of as many dimensions
    assert "projection.weight" not in weights_in_common(headed, start.config, 8)
    raises(DataError, r"has 1 layers; keep_layers names 1, counted from 0", keep_layers, start, [1])


def test_kept_layers_have_no_readouts_of_others(deep_checkpoint: Path) -> None:
    upper = keep_layers(load_checkpoint(deep_checkpoint), [1])
    assert (upper.config.num_layers, upper.config.depths) == (1, ())
    assert upper.load_encoder()


def test_the_mean_of_checkpoints_by_hand(trained: Path) -> None:
    table, deep = load_checkpoint(trained.parent / "table-0000150"), load_checkpoint(trained)
    ones, fives, mean = (torch.full((2, 2), number) for number in (1.0, 5.0, 2.0))
    first = replace(table, weights={TABLE: ones, "projection.weight": torch.ones(3, 2)})
    second = replace(deep, weights={TABLE: fives, "encoder.positions": torch.ones(4)})
    found = average_checkpoints([second, first], [1, 3])
    assert found.config.num_layers == 0
    assert list(found.weights) == [TABLE] and torch.equal(found.weights[TABLE], mean)
    readout = "encoder.readouts.1.weight"  # into other axes it is left out
    first = replace(deep, weights={TABLE: ones, readout: ones, AXES: torch.eye(2)})
    second = replace(deep, weights={TABLE: fives, readout: torch.zeros(2, 2)})
    weights = average_checkpoints([second, first], [1, 3]).weights
    assert torch.equal(weights[TABLE], mean)
    assert torch.equal(weights[readout], ones) and torch.equal(weights[AXES], torch.eye(2))
    names = [TABLE, "encoder.layers.0.norm", "encoder.readouts.0.weight", readout]
    first, second = (replace(deep, weights=dict.fromkeys(names, value)) for value in (ones, fives))
    weights = average_checkpoints([first, second], [(1, 1), (0, 3)]).weights  # a readout counts as the layer it reads
    assert [float(weights[name].mean()) for name in names] == [1, 4, 1, 4]
    first = replace(first, weights={**first.weights, AXES: torch.eye(2)})  # of a readout, 0 of it counts as none
    weights = average_checkpoints([first, second], [(0, 1), (2, 0)]).weights
    assert [float(weights[name].mean()) for name in names] == [5, 1, 5, 1]
    more = replace(second, weights={**second.weights, "encoder.layers.1.norm": ones})  # a layer that the other lacks
    assert average_checkpoints([first, more], [(1, 1), 1]).weights.keys() == first.weights.keys()
    raises(DataError, "has 1 layers; starts_from gives it 3 shares", average_checkpoints, [first], [(1, 1, 1)])


def test_a_stage_starts_from_the_mean_of_earlier_ones_and_the_start(tmp_path: Path, trained: Path) -> None:
    recipe = write_toy_recipe(tmp_path, FEWER_STEPS)
    text, start = recipe.read_text(), trained.parent / "table-0000150"
    more = '[[stage]]\nname = "more"\nlike = "table"\n'
    last = '[[stage]]\nname = "last"\nlike = "table"\nsteps = 0\nstarts_from = { table = 1, more = 4, start = 3 }\n'
    recipe.write_text(text[: text.rindex("[[stage]]")] + more + last)
    with pytest.raises(DataError, match="stage last starts_from start, the checkpoint or bundle of --start; name one"):
        train(recipe, tmp_path / "none")
    end = load_checkpoint(train(recipe, tmp_path / "run", start=start))
    assert end.path.name == "last-0000000" and end.about["validation"]["p1"]
    earlier = (tmp_path / "run" / "checkpoints" / f"{name}-0000020" for name in ("table", "more"))
    tables = [load_checkpoint(folder).weights[TABLE] for folder in (*earlier, start)]
    assert not torch.equal(*tables[:2])
    torch.testing.assert_close(end.weights[TABLE], tables[0] / 8 + tables[1] / 2 + tables[2] * 3 / 8)


def test_an_interrupted_preparation_leaves_no_other_pairs_beside_an_old_store(tmp_path: Path) -> None:
    config, pairs, run = load_recipe(write_toy_recipe(tmp_path)), tmp_path / "pairs.tsv", tmp_path / "run"
    more = config.model_copy(update={"corpus": config.corpus.model_copy(update={"validation_share": 0.5})})
    prepare(config, [pairs], run, threads=1)
    with mock.patch("xsent_train.data.preparation.train_vocabulary", side_effect=KeyboardInterrupt):
        raises(KeyboardInterrupt, "^$", prepare, more, [pairs], run, threads=1)
    again = prepare(config, [pairs], run, threads=1)
    assert not {*Corpus([again.validation])} & {*again.pairs}


def test_a_corpus_of_invisible_characters_is_refused(tmp_path: Path) -> None:
    config, pairs = load_recipe(write_toy_recipe(tmp_path)), tmp_path / "pairs.tsv"
    corpus = TrainingPairs(Corpus([pairs]), config.corpus.validation_share)
    lines = (pair if corpus.held_out(pair) else pair._replace(translation="\u200b") for pair in list(corpus.corpus))
    pairs.write_text("".join("\t".join(pair) + "\n" for pair in lines))
    with pytest.raises(DataError, match="no pair in 'de'; the text has no usable pair"):
        prepare(config, [pairs], tmp_path / "run", threads=1, vocabulary=BUILTIN / "sentencepiece.model")


def test_command_line_failures_are_one_line(recipe: Path) -> None:
    assert command("fliter")[0] == 2 and "no recipe 'fliter'; did you mean 'filter'?" in command("fliter")[2]
    assert_refused(command("no.toml"), "no.toml: cannot be read (No such file or directory); expected a recipe")
    program = "import sys; sys.modules['torch'] = None; from xsent_train import main; main()"
    result = subprocess.run([sys.executable, "-c", program, str(recipe)], capture_output=True, text=True)
    missing = 'torch is not installed; run pip install "xsent[train]"'
    assert_refused((result.returncode, result.stdout, result.stderr), missing)


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    recipe = write_toy_recipe(tmp_path, FEWER_STEPS, ("validate_every = 50", "validate_every = 5"))
    measure = Validation.measure
    with mock.patch.object(Validation, "measure", autospec=True) as interrupted:
        interrupted.side_effect = lambda *given: signal.raise_signal(signal.SIGINT) or measure(*given)
        code, out, _ = train_command(recipe, tmp_path / "run")
    assert (code, out) == (130, "") and "the same command resumes from there" in caplog.text
    (saved,) = (tmp_path / "run").glob("checkpoints/*")
    assert load_checkpoint(saved).step == 1  # the first step after a measurement of the start


def test_a_stage_that_makes_it_worse_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    recipe, measure, calls = write_toy_recipe(tmp_path, ("steps = 150", "steps = 2")), Validation.measure, count()

    def falling(*given: Any) -> Scores:  # noqa: ANN401  what it takes
        scores = measure(*given)
        return {**scores, "p1": dict.fromkeys(scores["p1"], 90.0 - next(calls))}

    with mock.patch.object(Validation, "measure", falling):
        train(recipe, tmp_path / "run")
    said = [record.message for record in caplog.records if "made it worse" in record.message]
    assert [text.partition(";")[0] for text in said] == [
        "stage table made it worse: P@1 was 90.00 at its start, now 89.00",
        "stage layers made it worse: P@1 was 88.00 at its start, now 87.00",
    ]
    caplog.clear()
    train(recipe, tmp_path / "other")
    assert "made it worse" not in caplog.text


def test_a_disk_without_room_is_told_before_the_first_step(recipe: Path, tmp_path: Path) -> None:
    message = r"its disk has 0 MB free, and two checkpoints take \d+; make room, or name a folder on another disk"
    full, started = mock.patch("shutil.disk_usage", return_value=mock.Mock(free=0)), mock.patch.object(StageLoop, "run")
    with full, started as run:
        raises(DataError, message, train, recipe, tmp_path / "run")
    assert not run.called


def test_another_recipe_in_a_run_is_refused_in_a_line(trained: Path, tmp_path: Path) -> None:
    rate = "table_learning_rate = 0.02", "table_learning_rate = 0.03"
    other = write_toy_recipe(tmp_path, rate, ("ffn_dim = 48", "ffn_dim = 64"))
    with pytest.raises(DataError, match=r"\(ffn_dim: 48 became 64, table.table_learning_rate: 0.02 became 0.03\)"):
        train(other, trained.parents[1])


def test_the_card_names_the_sources_of_the_text(trained: Path) -> None:
    assert load_checkpoint(trained).about["attribution"] == ["manual", "talk"]


def test_bfloat16_trains(tmp_path: Path) -> None:
    short = write_toy_recipe(tmp_path, ("steps = 150", "steps = 2"), ("dim = 32", 'dim = 32\nprecision = "bf16-mixed"'))
    assert load_checkpoint(train(short, tmp_path / "run")).step == 12


def test_a_loss_that_is_no_number_stops_and_keeps_the_checkpoint(trained: Path, tmp_path: Path) -> None:
    wild = write_toy_recipe(tmp_path, ("learning_rate = 2e-4", "learning_rate = 1e30"))
    run = Path(shutil.copytree(trained.parent.parent, tmp_path / "run", ignore=lambda *_: [trained.name]))
    message = r"stage layers, step \d+: the loss of align and .* no longer finite|gradients are no longer"
    raises(XsentError, message, train, wild, run)
    assert load_checkpoint(run / "checkpoints" / "table-0000150").step == 150


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.parametrize("bundle", [False, True], ids=["checkpoint", "bundle"])
def test_a_training_starts_from_a_model(bundle: bool, recipe: Path, trained: Path, tmp_path: Path) -> None:
    text, again, table = recipe.read_text(), tmp_path / "again.toml", trained.parent / "table-0000150"
    start, other = table, trained
    if bundle:
        start, other = (export(load_checkpoint(c), tmp_path / c.name).path for c in (table, trained))
    again.write_text(text[: text.index("[[stage]]")] + text[text.rindex("[[stage]]") :])
    os.link(recipe.parent / "pairs.tsv", tmp_path / "pairs.tsv")
    path = train(again, tmp_path / "run", start=start)
    before = times(path)
    assert train(again, tmp_path / "run", start=start) == path and times(path) == before  # not trained again
    assert (path / "sentencepiece.model").read_bytes() == (table / "sentencepiece.model").read_bytes()
    assert load_checkpoint(path).about["started_from"] == load_checkpoint(trained).name
    # The same table, another seed of the stage: near what the whole training came to.
    rows = [load_file(folder / "model.safetensors")[TABLE] for folder in (path, trained)]
    assert np.abs(rows[0] - rows[1]).max() < 0.01
    raises(DataError, r"start: '\w+' became '\w+'.*name another folder", train, again, tmp_path / "run", start=other)


def test_a_start_that_does_not_fit(recipe: Path, trained: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(trained, tmp_path / "other"))
    shutil.copy(mini_checkpoint / "sentencepiece.model", other)
    edit_json(other / "checkpoint.json", sha256={})
    with pytest.raises(DataError, match=r"sentencepiece.model: damaged \(it has \d+ pieces, the table 360 rows\)"):
        train(recipe, tmp_path / "run", start=other)
    wider = load_recipe(recipe).model_copy(update={"num_heads": 4, "ffn_dim": 64})
    assert open_start(wider, trained.parent / "table-0000150").step == 150  # without layers it fits any heads
    raises(DataError, "num_heads = 2, the recipe 4; to start from it", open_start, wider, trained)


@pytest.mark.parametrize(
    ("change", "more", "given", "message"),
    [
        (FEWER_STEPS, QUEUED, {}, "stage queued distils but has no teacher; name its folder with --teacher"),
        (FEWER_STEPS, QUEUED, {"teacher": Path("nowhere")}, "teacher nowhere: no such folder"),
        (FEWER_STEPS, QUEUED, {"teacher": {"x": Path("nowhere")}}, r"the recipe has no table \[teachers\.x\]"),
        (("[corpus]", "[corpus]\nweights = { tolk = 2 }"), "", {}, "no pair has: tolk; there are manual, talk"),
        (('["de", "fr"]', '["de", "fr", "xx"]'), "", {}, "no pair in 'xx'; the text has (de|fr) "),
    ],
)
def test_recipe_needs(change: tuple[str, str], more: str, given: dict[str, Any], message: str, tmp_path: Path) -> None:
    raises(DataError, message, train, write_toy_recipe(tmp_path, change, more=more), tmp_path / "run", **given)


def test_what_a_training_cannot_follow(recipe: Path) -> None:
    def require(ranks: int = 1, teacher_dim: int | None = None, started: bool = False, **changes: object) -> None:
        stage = config.stages[0].model_copy(update=changes)
        require_fit(config.model_copy(update={"stages": (stage,)}), ranks, teacher_dim, started=started)

    config = load_recipe(recipe)
    for change, ranks, started, message in (
        ({"swapped": 0.2}, 1, False, "stage table: swapped needs a trained encoder .*--start"),
        ({"swapped": 0.2}, 2, True, "one device only, not on 2"),
        ({"keep_layers": (0,)}, 1, False, "keep_layers needs a trained encoder .*--start"),
        ({"batch_size": 31}, 2, False, "batch_size = 31 cannot be divided by 2 processes"),
    ):
        require(started=True, **change)
        raises(DataError, message, require, ranks, None, started, **change)
    # Only what copies a teacher of another dimension needs a projection, which would stay random.
    frozen = {"learning_rate": 0.0, "table_learning_rate": 1e-3}
    require(1, config.dim + 1, objectives=Objectives(align=1, similarity_distil=1), **frozen)
    with pytest.raises(DataError, match="needs learning_rate above 0"):
        require(1, config.dim + 1, objectives=Objectives(distil=1), **frozen)


def test_a_store_of_another_corpus_is_refused_and_stays(recipe: Path, trained: Path, tmp_path: Path) -> None:
    prepared, other = trained.parent.parent, write_toy_recipe(tmp_path, pairs=700)
    before = times(prepared)
    raises(DataError, r"another corpus or vocabulary.*name another folder", train, other, prepared)
    open_trainer(recipe, tmp_path / "run", prepared=prepared)
    assert not (tmp_path / "run" / "store").exists()
    raises(DataError, "was prepared for another corpus", open_trainer, other, tmp_path / "run", prepared=prepared)
    assert times(prepared) == before


def test_stages_whose_names_begin_alike_keep_apart(tmp_path: Path) -> None:
    for name in ("table", "table-2"):
        (tmp_path / "checkpoints" / f"{name}-0000005").mkdir(parents=True)
    for name in ("table", "table-2"):
        assert [path.name for path in stage_folders(tmp_path, name)] == [f"{name}-0000005"]


def test_damaged_checkpoints_are_one_clear_line(trained: Path, tmp_path: Path) -> None:
    for name, content, message in (
        ("model.safetensors", b"123", r"model.safetensors: damaged \(.*train it again"),
        ("model.safetensors", None, "model.safetensors: missing; use another checkpoint"),
        ("checkpoint.json", b"{", "checkpoint.json: damaged"),
        ("checkpoint.json", b"{}", "version None"),
        ("checkpoint.json", b'{"format_version": 9}', "version 9"),
        ("checkpoint.json", None, "no checkpoint.json in this folder; expected a checkpoint"),
    ):
        folder = Path(shutil.copytree(trained, tmp_path / "copy", dirs_exist_ok=True))
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
        with pytest.raises(DataError, match=message) as raised:
            load_checkpoint(folder)
        assert str(folder) in str(raised.value) and "\n" not in str(raised.value)
    with pytest.raises(DataError, match="nowhere: no such folder; expected a checkpoint"):
        load_checkpoint(tmp_path / "nowhere")


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
        raises(DataError, rf"{name}: damaged \(its SHA-256 .*; use another checkpoint", load_checkpoint, folder)
        if name != "sentencepiece.model":  # which does not open any more
            edit_json(folder / "checkpoint.json", sha256={})
            load_checkpoint(folder)
    whole = load_checkpoint(trained)
    save_checkpoint(tmp_path / "open", whole.about, whole.weights, dict(whole.weights), [whole.tokenizer])
    assert load_optimizer(tmp_path / "open").keys() == whole.weights.keys()
    flip_byte(tmp_path / "open" / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer.safetensors: damaged \(its SHA-256 .*; delete the checkpoint"):
        load_optimizer(tmp_path / "open")


def test_p1_and_loss_over_the_english_sentences_of_all_languages(toy_tokenizer: Path, tmp_path: Path) -> None:
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    cat, dog, fish = (processor.piece_to_id(f"▁{word}") for word in ("cat", "dog", "fish"))
    pairs = [("de", "cat", "dog"), ("de", "dog", "fish"), ("fr", "cat", "cat"), ("fr", "fish", "fish")]
    path = tmp_path / "validation.tsv"
    path.write_text("".join(f"talk\t{language}\t{en}\t{other}\n" for language, en, other in pairs))
    encoder = Encoder(ModelConfig(vocab_size=processor.vocab_size(), dim=8, num_layers=0))
    with torch.no_grad():  # three sentences at right angles
        for axis, piece in enumerate((cat, dog, fish)):
            encoder.table.weight[piece] = 3.0 * torch.eye(8)[axis]

    measured = Validation(path, toy_tokenizer).measure(encoder)

    assert measured["p1"] == {"de": 0.0, "fr": 100.0}  # "cat" stands in two pairs and is one candidate
    wrong, right = math.log(math.exp(20) + 2), math.log(1 + 2 * math.exp(-20))
    assert measured["loss"]["de"] == pytest.approx(wrong, rel=1e-5)
    assert measured["loss"]["fr"] == pytest.approx(right, abs=1e-6)
