"""Recipes: mistakes are named, with the nearest valid setting; those of the repository train on a toy corpus."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from commands import raises
from pages import PAGES, ROOT
from tiny_bert import write_tiny_bert
from toy import write_toy_corpus, write_toy_passages, write_toy_scored

import xsent_train
from xsent.errors import DataError
from xsent_train.checkpoint import load_checkpoint
from xsent_train.objectives import Align, Objectives
from xsent_train.recipe import START, Recipe, VocabularyConfig, load_recipe
from xsent_train.requirements import differences
from xsent_train.trainer import Trainer

MINIMAL = """
name = "x"
languages = ["de"]
corpus = { files = ["a.tsv"] }
[[stage]]
name = "table"
num_layers = 0
steps = 10
table_learning_rate = 0.01
objectives = { align = 1 }
"""


def load(tmp_path: Path, text: str) -> Recipe:
    path = tmp_path / "r.toml"
    path.write_text(text)
    return load_recipe(path)


AT = {"+stage": "steps = 10\n", "+recipe": 'name = "x"\n', "objectives": "{ align = 1 }"}  # added to, or changed


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps = 10", "stepps = 10", r"stages\[0\]: unknown setting 'stepps'; did you mean 'steps'\?$"),
        ("steps = 10", "", r"setting 'stages\[0\].steps' is missing$"),
        ("steps = 10", "steps = true", r"stages\[0\].steps = True must be a valid integer$"),
        ("objectives", "{}", "no objective; known are mlm, tlm, .*embedding_match"),
        ("objectives", "{ align = 0 }", "objectives.align.weight: 0.0 must be above 0; omit the objective"),
        ("objectives", "{ align = { margn = 1 } }", "objectives.align: unknown .*'margn'; did you mean 'margin'"),
        ("objectives", "{ align = { margin = 0.1, temperature = 0 } }", "margin = 0.1 needs a temperature"),
        ("objectives", "{ mlm = 1 }\nlearning_rate = 0", "leaves the head that predicts pieces untrained"),
        ("objectives", "{ align = 1 }\nlayer_prefixes = [0, 1]", "layer_prefixes = .0, 1. must be between"),
        ("+stage", "attention = { 2 = { half = 0.1 } }", "attention names the depth 2; layer_prefixes are "),
        ("objectives", "{ ugt = 1 }\nprefixes = [512]", "prefixes needs an objective that compares vectors: align"),
        ("+recipe", "checkpoint_minutes = nan", ": checkpoint_minutes = nan must be a finite number"),
        (
            '[[stage]]\nname = "table"\nnum_layers = 0',
            'teacher_layers = [0, 2]\n[[stage]]\nname = "table"\nnum_layers = 3',
            "stage 'table' has more layers than teacher_layers, 2",
        ),
        (
            "objectives",
            "{ embedding_match = 1, distil = 1 }",
            "embedding_match needs the teacher's input.*use two stages",
        ),
        ("+stage", "swapped = 0.2", "swapped needs layers, and align or sentence_ctl"),
        ("+stage", 'order = "sorted"', "order = 'sorted' must be 'random', 'length' or 'cluster'"),
        ("+stage", "prefixes = [128]", "end with dim = 512"),
        ("table_learning_rate = 0.01", "", "nothing to train"),
        ('name = "table"', 'name = "a/b"', r"stages\[0\].name = 'a/b' must match pattern '.*A-Z"),
        ("+recipe", "num_heads = 7", "num_heads = 7 must divide dim = 512"),
        ("[[stage]]", "[stage]", r"one or more stages, tables that start with \[\[stage"),
        ('["a.tsv"]', '["a.tsv"], weights = { talk = -1 }', ": corpus.weights.talk = -1 must be greater than 0"),
        ("+stage", "like = 'table'", r"stages\[0\].like = 'table' is not an earlier stage$"),
        ("num_layers = 0", "num_layers = 2\nkeep_layers = [2, 0]", r"\[2, 0\] must be num_layers = 2 different"),
        ("+stage", "starts_from = { table = 1 }", "starts_from table, which is not an earlier stage"),
        ("+stage", "starts_from = { table = -1 }", "starts_from.table: -1 must be a number above 0, or a list"),
        (
            "num_layers = 0",
            "num_layers = 1\nstarts_from = { start = [1], a = [1, 1] }",
            "starts_from needs equally long lists",
        ),
        (
            "num_layers = 0",
            "num_layers = 1\nstarts_from = { start = [0, 1] }",
            "leaves a layer without weights: the shares are 0 in start",
        ),
        ('name = "table"', 'name = "start"', "'start' is reserved for what the run starts from"),
        ('["de"]', '"de"', ": languages = 'de' must be a list$"),
        ('name = "x"', "name = ", "cannot be read as a TOML recipe"),
        ("+stage", "zzz = 1", "unknown setting 'zzz'; known are name, num_layers, steps"),
        (
            "objectives",
            '{ align = 1 }\n[[stage]]\nname = "b"\nlike = "table"\nobjectives = 3',
            r"stages\[1\].objectives = 3 must be a table of settings",
        ),
        ("objectives", "{ align = true }", "objectives.align = True must be a table of settings"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    new = AT[old] + new + "\n" if old.startswith("+") else new
    old = AT.get(old, old)
    assert old in MINIMAL
    with pytest.raises(DataError, match=message) as raised:
        load(tmp_path, MINIMAL.replace(old, new, 1))
    assert str(raised.value).startswith(f"{tmp_path / 'r.toml'}: ") and "\n" not in str(raised.value)
    raises(DataError, r"none\.toml", load_recipe, tmp_path / "none.toml")


def test_what_toml_writes_otherwise(tmp_path: Path) -> None:
    objectives = "{ align = 2, distil = { english = false } }\nclip = 2\nprefixes = [64, 512]"
    short = MINIMAL.replace("{ align = 1 }", objectives)
    recipe = load(tmp_path, short.replace('["a.tsv"]', '["a.tsv"], weights = { a = 2, b = 2.0 }'))
    stage, dumped = recipe.stages[0], recipe.model_dump()
    assert stage.objectives.align == Align(weight=2.0) and stage.objectives.weights == {"align": 2.0, "distil": 1.0}
    assert repr(stage.clip) == "2.0" and stage.prefixes == (64, 512)
    assert repr(dumped["corpus"]["weights"]) == "{'a': 2, 'b': 2.0}"  # what prepared data is known by


def test_a_stage_is_like_an_earlier_one_but_for_what_it_says(tmp_path: Path) -> None:
    given = "{ align = { weight = 2, margin = 0.1 }, sim = 1 }\nweights = { talk = 2, manual = 0 }"
    again = '[[stage]]\nname = "again"\nlike = "table"\nsteps = 0\nstarts_from = { table = 1 }\n'
    third = '[[stage]]\nname = "third"\nlike = "again"\nweights = { talk = 3 }\nobjectives = { align = 5, sim = 0 }\n'
    stages = load(tmp_path, MINIMAL.replace("{ align = 1 }", given) + again + third).stages
    assert stages[1] == stages[0].model_copy(update={"name": "again", "steps": 0, "starts_from": {"table": 1}})
    assert stages[2].steps == 0 and stages[2].starts_from == {} and stages[2].weights == {"talk": 3, "manual": 0}
    assert stages[2].objectives == Objectives(align=Align(weight=5.0, margin=0.1))


def test_settings_of_a_checkpoint_are_compared_with_a_recipe(tmp_path: Path) -> None:
    stage = load(tmp_path, MINIMAL).stages[0]
    saved = stage.model_dump()
    del saved["window"]  # a setting that came later had its default
    saved["neighbours"] = 3  # one that is gone
    assert differences(saved, stage) == ""
    saved["objectives"]["align"]["weight"] = 5.0
    assert differences(saved, stage) == "objectives.align.weight: 5.0 became 1.0"


def test_another_recipe_is_told_in_a_line(tmp_path: Path) -> None:
    recipe = load(tmp_path, MINIMAL)
    saved = recipe.model_dump(mode="json")
    first = saved["stages"][0]
    saved["stages"] = [{**first, "name": "before"}, first]
    told = differences(saved, recipe)
    assert told == f"stages: before, {first['name']} became {first['name']}"
    saved["stages"] = [{**first, "steps": 7, "weights": {"talk": 2}, "warmup": 1, "clip": 3, "window": 9}]
    told = differences({**saved, "languages": ["xx"] * 99}, recipe)
    assert "languages: " in told and told.endswith(" more") and len(told) < 300


FOLDER = Path(xsent_train.__file__).parent / "recipes"
RECIPES = sorted(FOLDER.glob("*.toml"))
# Hashes of what the recipes mean, without `like`: another way to write one changes none of them.
MEANING = {
    "across": "e411b52c244e",
    "builtin": "a5a9f11d3ff0",
    "gong2021": "a7e1fd1bcba1",
    "mao2021": "28aed2f74c0f",
    "questions": "74d7475d521d",
    "static": "3708645ac8b7",
    "tan2022": "aa991f073d55",
    "teachers": "5e97b09498d9",
    "tiny": "5e13703e5483",
    "wei2020": "ba95ecdea185",
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
    less = {"files": ("pairs.tsv",), "validation_share": 0.1, "validation_pairs": 20, "weights": {}, "most": {}}
    corpus = recipe.corpus.model_copy(update=less)
    write_toy_corpus(tmp_path / "pairs.tsv")
    recipe = Recipe(**{**dict(recipe), "languages": ("fr",), "corpus": corpus, **small})
    if recipe.scored is not None and recipe.passages is not None:
        write_toy_scored(tmp_path / "scored.tsv")
        write_toy_passages(tmp_path / "passages.tsv", 120)
        small["scored"] = recipe.scored.model_copy(update={"files": ("scored.tsv",)})
        small["passages"] = recipe.passages.model_copy(update={"files": ("passages.tsv",), "weights": {}, "kinds": {}})
        recipe = recipe.model_copy(update=small)
    teacher: Path | dict[str, Path] | None = None
    if any(stage.objectives.distils for stage in stages):
        teacher = mini_bundle
    if recipe.teachers:
        teacher = dict.fromkeys(recipe.teachers, write_tiny_bert(tmp_path / "teacher"))
    if recipe.teacher_layers:
        teacher = write_tiny_bert(tmp_path / "bert", layers=6, max_position_embeddings=256)
    start = None
    if stages[0].swapped or any(START in stage.starts_from for stage in stages):
        plain = {"swapped": 0.0, "objectives": Objectives(align=1)}
        alone = recipe.model_copy(update={"stages": (stages[0].model_copy(update=plain),)})
        start = Trainer(alone, tmp_path, tmp_path / "start", threads=1, teacher=teacher).train()
    last = Trainer(recipe, tmp_path, tmp_path / "run", threads=1, teacher=teacher, start=start).train()
    checkpoint = load_checkpoint(last)
    assert checkpoint.step == stages[-1].steps
    assert checkpoint.config.activation == ("gelu" if recipe.teacher_layers else recipe.activation)
    assert checkpoint.config.num_layers == stages[-1].num_layers
