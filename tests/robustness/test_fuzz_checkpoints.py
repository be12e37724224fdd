"""What damaged checkpoints and recipes do to whoever reads them; see `test_fuzz_readers`."""

from pathlib import Path

import pytest
from commands import edit_json
from hypothesis import given
from hypothesis import strategies as st
from mutation import survive
from toy import write_toy_recipe

from xsent.errors import DataError
from xsent_export.check import held_out_pairs
from xsent_export.options import DEFAULTS
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint, load_optimizer, save_checkpoint
from xsent_train.from_bundle import identify
from xsent_train.recipe import load_recipe


@pytest.fixture(scope="module")
def checkpoint(mini_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One without checksums, which would find all damage; with an optimiser."""
    whole, folder = load_checkpoint(mini_checkpoint), tmp_path_factory.mktemp("fuzz") / "checkpoint"
    about = {**whole.about, "recipe": {"stages": [{"prefixes": [16, 32], "layer_prefixes": [1, 2]}]}}
    save_checkpoint(folder, about, whole.weights, dict(whole.weights), [whole.tokenizer, whole.validation])
    edit_json(folder / "checkpoint.json", sha256={})
    return folder


def read_checkpoint(folder: Path) -> None:
    """All that an export asks of it before it writes, and what a training goes on with."""
    identify(folder)
    checkpoint = load_checkpoint(folder)
    DEFAULTS.spec(DEFAULTS.named(checkpoint))
    pairs = held_out_pairs(checkpoint, None)
    CheckpointEncoder(checkpoint).encode(["Anna", *next(iter(pairs.values()))[0]])
    load_optimizer(folder)


@given(data=st.data())
def test_checkpoints(data: st.DataObject, checkpoint: Path) -> None:
    survive(data, checkpoint, read_checkpoint)


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = write_toy_recipe(tmp_path_factory.mktemp("recipe"))
    (written.parent / "pairs.tsv").unlink()
    return written


@given(data=st.data())
def test_recipes(data: st.DataObject, recipe: Path) -> None:
    survive(data, recipe.parent, lambda _: load_recipe(recipe))


def test_a_recipe_that_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text(f"name = {'[' * 100_000}")
    with pytest.raises(DataError, match=r"deep\.toml: cannot be read as a TOML recipe"):
        load_recipe(deep)
