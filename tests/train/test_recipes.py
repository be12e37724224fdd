"""The recipes of the repository train, cut down to a toy corpus and two steps."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from pages import PAGES, ROOT
from tiny_bert import write_tiny_bert
from toy import write_toy_corpus

import xsent_train
from xsent_train.checkpoint import load_checkpoint
from xsent_train.recipe import START, Recipe, VocabularyConfig, load_recipe
from xsent_train.trainer import Trainer

FOLDER = Path(xsent_train.__file__).parent / "recipes"
RECIPES = sorted(path for path in FOLDER.glob("*.toml") if not path.stem.endswith("_translation"))
# Hashes of what the recipes mean, without groups and `like`: another way to write one changes none of them.
MEANING = {
    "builtin": "38c3396eeb02",
    "gong2021": "bc96be45faf9",
    "mao2021": "9553d1ae2004",
    "static": "cec94d1a8032",
    "tan2022": "7e9087176483",
    "teachers": "27492ed41de5",
    "tiny": "9de73949f665",
    "wei2020": "efc0e95048ae",
}
SMALL = {"batch_size": 8, "window": 2, "clusters": 3}


def test_the_recipes_mean_what_they_meant() -> None:
    found = {path.stem: load_recipe(path).model_dump(mode="json") for path in RECIPES}
    digests = {name: sha256(json.dumps(recipe, sort_keys=True).encode()) for name, recipe in found.items()}
    assert {name: digest.hexdigest()[:12] for name, digest in digests.items()} == MEANING


def test_pages_and_help_name_checkpoints_of_the_built_in_recipe() -> None:
    stages = load_recipe(RECIPES[0].with_stem("builtin")).stages
    text = "".join((ROOT / file).read_text(encoding="utf-8") for file in (*PAGES, "export/xsent_export/cli.py"))
    named = set(re.findall(r"runs/builtin/checkpoints/([\w-]+)", text))
    assert named and named <= {f"{stage.name}-{stage.steps:07d}" for stage in stages}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_the_recipe_trains(path: Path, tmp_path: Path, mini_bundle: Path) -> None:
    recipe = load_recipe(path)
    cut = [{"steps": min(stage.steps, 2), "prefixes": (16, 32) if stage.prefixes else ()} for stage in recipe.stages]
    stages = tuple(stage.model_copy(update=SMALL | less) for stage, less in zip(recipe.stages, cut, strict=True))
    small = {"dim": 32, "num_heads": 2, "ffn_dim": 48, "vocabulary": VocabularyConfig(size=360), "stages": stages}
    less = {"validation_share": 0.1, "validation_pairs": 20, "weights": {}, "most": {}}
    corpus = recipe.corpus.model_copy(update=less)
    pairs = write_toy_corpus(tmp_path / "pairs.tsv")
    recipe = Recipe(**{**dict(recipe), "languages": ("fr",), "corpus": corpus, **small})
    teacher: Path | dict[str, Path] | None = None
    if any(stage.objectives.distils for stage in stages):
        teacher = mini_bundle
    if recipe.teachers:
        teacher = dict.fromkeys(recipe.teachers, write_tiny_bert(tmp_path / "teacher"))
    if recipe.teacher_layers:
        teacher = write_tiny_bert(tmp_path / "bert", layers=6, max_position_embeddings=256)
    start = None
    if any(START in stage.starts_from for stage in stages):
        alone = recipe.model_copy(update={"stages": (stages[0].model_copy(update={"swapped": 0.0}),)})
        start = Trainer(alone, [pairs], tmp_path / "start", threads=1, teacher=teacher).train()
    last = Trainer(recipe, [pairs], tmp_path / "run", threads=1, teacher=teacher, start=start).train()
    checkpoint = load_checkpoint(last)
    assert checkpoint.step == stages[-1].steps
    assert checkpoint.config.activation == ("gelu" if recipe.teacher_layers else recipe.activation)
    assert checkpoint.config.num_layers == stages[-1].num_layers
