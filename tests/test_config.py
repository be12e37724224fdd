"""Recipes: every mistake is named, with the nearest valid setting."""

from pathlib import Path

import pytest

import xsent.train
from xsent.errors import DataError
from xsent.train.config import load_recipe

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


def load(tmp_path: Path, text: str) -> str:
    path = tmp_path / "r.toml"
    path.write_text(text)
    return load_recipe(path).stages[0].name


def test_minimal_recipe(tmp_path: Path) -> None:
    assert load(tmp_path, MINIMAL) == "table"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("steps = 10", "stepps = 10", "unknown setting 'stepps' in .stage.; did you mean 'steps'"),
        ("steps = 10", "", "'steps' is missing"),
        ("steps = 10", 'steps = "ten"', "stage.steps = 'ten' must be of type int"),
        ("steps = 10", "steps = true", "must be of type int"),
        ("{ align = 1 }", "{}", "no objective; known are mlm, tlm, .*co"),
        ("{ align = 1 }", "{ algin = 1 }", "unknown setting 'algin' in .stage.objectives.; did you mean 'align'"),
        ("{ align = 1 }", "{ align = 0 }", "weight = 0.* must be above 0; leave the objective out"),
        ("{ align = 1 }", "{ align = { temprature = 1 } }", "'temprature' in .*align.; did you mean 'temperature'"),
        ("{ align = 1 }", "{ align = { margin = 0.1, temperature = 0 } }", "margin = 0.1 needs a temperature"),
        ("{ align = 1 }", "{ align = 'yes' }", "stage.objectives.align. must be a table"),
        ("{ align = 1 }", "{ mlm = { share = 1.5 } }", "share = 1.5 must lie between 0 and 1"),
        ("{ align = 1 }", "{ co = { queue = 0 } }", "queue = 0 must be above 0"),
        ("{ align = 1 }", "{ mlm = 1 }\nlearning_rate = 0", "leaves the head untrained"),
        ("{ align = 1 }", "{ align = 1 }\nlayer_prefixes = [0, 1]", "layer_prefixes = .0, 1. must lie between"),
        ("{ align = 1 }", "{ ugt = 1 }\nprefixes = [512]", "prefixes needs an objective that compares vectors: align"),
        ("{ align = 1 }", "{ mlm = 1 }\nlayer_prefixes = [0]", "layer_prefixes needs an objective that compares"),
        ("objectives = { align = 1 }", "", "'objectives' is missing"),
        ('name = "x"', 'name = "x"\nseed = -1', "seed = -1 must lie between 0 and"),
        ('name = "x"', 'name = "x"\ncheckpoint_minutes = nan', "checkpoint_minutes = nan must be a number"),
        ('name = "x"', 'name = "x"\nactivation = "relu"', "activation = 'relu' must be gelu or silu"),
        (
            '[[stage]]\nname = "table"\nnum_layers = 0',
            'teacher_layers = [0, 2]\n[[stage]]\nname = "table"\nnum_layers = 3',
            "stage 'table' has more layers than teacher_layers, 2",
        ),
        ("{ align = 1 }", "{ rows = 1, distil = 1 }", "rows looks at the teacher's input.*not in one stage"),
        ("{ align = 1 }", "{ rows = { contrast = -1 } }", "contrast = -1.* must not be negative"),
        ("steps = 10", 'steps = 10\norder = "sorted"', "must be one of random, length, cluster"),
        ("steps = 10", "steps = 10\nprefixes = [600]", "prefixes"),
        ("steps = 10", "steps = 10\nprefixes = [128]", "end with dim = 512"),
        ("steps = 10", "steps = 10\nbatch_size = 1", "batch_size = 1 must be at least 2"),
        ("steps = 10", "steps = 10\nvalidate_every = 0", "validate_every = 0 must be at least 1"),
        ("steps = 10", "steps = 10\nclusters = 70000", "at most 65536"),
        ("steps = 10", "steps = 10\ndropout = 1.5", "dropout = 1.5 must be below 1"),
        ("steps = 10", "steps = 10\nlearning_rate = nan", "learning_rate = nan must be a number"),
        ("num_layers = 0", "num_layers = 9", "num_layers = 9 must lie between 0 and 6"),
        ("table_learning_rate = 0.01", "", "nothing to train"),
        ('name = "table"', 'name = "a/b"', "must be of letters"),
        ('name = "x"', 'name = "x"\nnum_heads = 7', "num_heads = 7 must divide dim = 512"),
        ("[[stage]]", "[stage]", "start with ..stage"),
        ('files = ["a.tsv"]', 'files = ["a.tsv"], weights = { talk = -1 }', "weight of 'talk', -1"),
        ("steps = 10", "steps = 10\nweights = { talk = -1 }", "weight of 'talk', -1, must be a number from 0 up"),
        (
            "steps = 10",
            "steps = 10\nstarts_from = { table = 1 }",
            "starts_from table, which is no stage before",
        ),
        ("steps = 10", "steps = 10\nstarts_from = { a = 0 }", "weight of 'a', 0, must be a number above 0"),
        ('name = "x"', "", "'name' is missing"),
        ('["de"]', '"de"', "languages = 'de' must be of type tuple"),
        ("[[stage]]", "[[stages]]", "unknown|no ..stage"),
        ('files = ["a.tsv"]', "files = []", "files is empty"),
        ('name = "x"', "name = ", "cannot be read as a TOML recipe"),
        ('name = "x"', 'name = "x"\nvocabulary = { size = 70000 }', "65536"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in MINIMAL
    with pytest.raises(DataError, match=message) as raised:
        load(tmp_path, MINIMAL.replace(old, new, 1))
    assert "r.toml" in str(raised.value)


def test_missing_recipe(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.toml"):
        load_recipe(tmp_path / "none.toml")


@pytest.mark.parametrize("recipe", sorted((Path(xsent.train.__file__).parent / "recipes").glob("*.toml")))
def test_recipes_of_the_repository_are_valid(recipe: Path) -> None:
    assert load_recipe(recipe).stages
