"""The first training, as its page has it, and what a run says of itself."""

import json
import logging
import shlex
from pathlib import Path

import pytest
from commands import Runner
from pages import ROOT, blocks
from toy import write_toy_recipe
from trainings import command, export_command

from xsent.errors import DataError
from xsent_train.checkpoint import ABOUT, FORMAT_VERSION, last_finished, load_checkpoint
from xsent_train.data.preparation import prepare
from xsent_train.recipe import load_recipe

FACTS = {"format_version": FORMAT_VERSION, "name": "toy", "languages": ["en"], "licence": "CC0-1.0", "model": {}}


@pytest.mark.slow
def test_the_page_of_the_first_training_can_be_followed(
    tmp_path: Path, run: Runner, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.chdir(tmp_path)
    Path("train").symlink_to(ROOT / "train")
    [text] = (block.text for block in blocks("docs/guides/train.md", "sh") if "tiny.toml" in block.text)
    _, train, export, similarity = text.splitlines()
    assert command(*shlex.split(train)[1:], "--threads", 1)[:2] == (0, "runs/tiny/checkpoints/final-0000060\n")
    assert caplog.text.count("held out: fr 200, de 200\n") == 1
    assert "read as plain English" not in caplog.text
    scores = load_checkpoint(Path("runs/tiny/checkpoints/final-0000060")).about["validation"]["p1"]
    assert min(scores.values()) > 98
    assert export_command(*shlex.split(export)[1:])[0] == 0
    assert "exporting runs/tiny/checkpoints/final-0000060\n" in caplog.text
    _, *words, translation = shlex.split(similarity)
    near, far = (float(run(*words, text)[1]) for text in (translation, "Der Bäcker kauft Brot."))
    assert near > 0.6 and far < 0.3


def test_lines_of_two_fields_are_counted_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    recipe = load_recipe(write_toy_recipe(tmp_path))
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(pairs.read_text() + "".join(f"wiki\tThe cat sees {i} birds.\n" for i in range(1200)))
    for _ in range(2):  # the second finds everything there
        prepare(recipe, [pairs], tmp_path / "run", threads=1)
    assert caplog.text.count("1,200 lines have two fields, or en and no translation: read as plain English") == 1


def write_checkpoint(run: Path, name: str, step: int, *steps: int) -> None:
    """A checkpoint's facts alone; the steps are those of the recipe's stages until its own."""
    (run / "checkpoints" / name).mkdir(parents=True)
    facts = {**FACTS, "step": step, "recipe": {"stages": [{"steps": number} for number in steps]}}
    (run / "checkpoints" / name / ABOUT).write_text(json.dumps(facts))


def test_the_checkpoint_that_is_exported_of_a_run(tmp_path: Path) -> None:
    write_checkpoint(tmp_path, "a-0000100", 100, 200)
    with pytest.raises(
        DataError, match=r"no stage is finished; continue the training, or name a folder in .*checkpoints"
    ):
        last_finished(tmp_path)
    code, out, err = export_command(tmp_path, tmp_path / "bundle")
    assert (code, out) == (1, "") and "no stage is finished" in err and not (tmp_path / "bundle").exists()
    write_checkpoint(tmp_path, "z-0000200", 200, 200)  # a later name of an earlier stage
    write_checkpoint(tmp_path, "layers-0000050", 50, 200, 50)
    write_checkpoint(tmp_path, "last-0000010", 10, 200, 50, 60)
    write_checkpoint(tmp_path, ".last-0000060.1234.part", 60, 200, 50, 60)
    assert last_finished(tmp_path).name == "layers-0000050"
    write_checkpoint(tmp_path, "last-0000000", 0, 200, 50, 0)
    assert last_finished(tmp_path).name == "last-0000000"
