"""A toy corpus: two made-up languages that translate English word by word, so that training can really learn it."""

import random
from pathlib import Path

ENGLISH = (
    "cat dog house tree river stone bread water fire wind red blue old new small big sleeps runs sees eats finds "
    "under over near with before after today often never always one two three many child woman man king bird fish"
).split()
GREEK = str.maketrans("abcdefghiklmnoprstuwxyzvjq", "αβξδεφγηικλμνοπρστυωχψζβιπ")  # letters that no old piece has


def translate(sentence: str, language: str) -> str:
    """A word-by-word translation: German-like words end in -en, French-like ones in -eau."""
    ending = {"de": "en", "fr": "eau"}[language]
    return " ".join(word[::-1] + ending for word in sentence.split())


def toy_pairs(count: int, seed: int = 0) -> list[tuple[str, str, str, str]]:
    """Pairs as the columns of a corpus: source, language, English, translation."""
    rng = random.Random(seed)
    pairs = []
    for i in range(count):
        english = " ".join(rng.choices(ENGLISH, k=rng.randint(3, 8))) + rng.choice([".", "!", ""])
        language = ("de", "fr")[i % 2]
        pairs.append((("talk", "manual")[i % 3 == 0], language, english, translate(english, language)))
    return pairs


def write_toy_corpus(path: Path, count: int = 600) -> Path:
    path.write_text("".join("\t".join(pair) + "\n" for pair in toy_pairs(count)), encoding="utf-8")
    return path


def write_toy_scored(path: Path, count: int = 30, seed: int = 1) -> Path:
    """Scored pairs in three languages: the score is the share of the words that both sentences have."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            words, shared = rng.sample(ENGLISH, 6), rng.randint(0, 5)
            first, second = " ".join(words), " ".join([*words[:shared], *rng.sample(ENGLISH, 6 - shared)])
            for language in ("en", "de", "fr"):
                own = (t if language == "en" else translate(t, language) for t in (first, second))
                file.write("\t".join(["people", language, str(number), *own, str(float(shared))]) + "\n")
    return path


def write_toy_passages(path: Path, count: int = 60, seed: int = 2) -> Path:
    """Queries with passages: `guide` in three languages, `manual` in English alone; a query has words of its answer."""
    rng = random.Random(seed)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            source, languages = (("guide", ("en", "de", "fr")), ("manual", ("en",)))[number % 3 == 0]
            passage = rng.choices(ENGLISH, k=20)
            query, kind = " ".join(passage[3:7]), ("question", "heading")[number % 2]
            for language in languages:
                own = (t if language == "en" else translate(t, language) for t in (query, " ".join(passage)))
                file.write("\t".join([source, f"{source}:{number}", kind, language, *own]) + "\n")
    return path


KINDS = """
[scored]
files = ["scored.tsv"]
[passages]
files = ["passages.tsv"]
kinds = { question = 3 }
weights = { manual = 0.5 }
"""

EVERY_KIND = """
[[stage]]
name = "kinds"
num_layers = 2
steps = 9
batch_size = 16
window = 4
order = "cluster"
clusters = 5
layer_prefixes = [0, 2]
prefixes = [16, 32]
swapped = 0.25
warmup = 3
learning_rate = 1e-3
max_tokens = 12
[stage.objectives]
align = 1
distil = 1
similarity = { weight = 2, pairs = 8 }
retrieve = { weight = 1, queries = 12, block = 6, tokens = 15 }
"""

RECIPE = """
name = "toy"
languages = ["de", "fr"]
licence = "CC0-1.0"
dim = 32
num_heads = 2
ffn_dim = 48
max_length = 24
checkpoint_minutes = MINUTES
[corpus]
files = ["pairs.tsv"]
validation_share = 0.1
validation_pairs = 20
[vocabulary]
size = 360
[[stage]]
name = "table"
num_layers = 0
steps = 150
batch_size = 32
window = 4
table_learning_rate = 0.02
objectives = { align = 1 }
prefixes = [16, 32]
validate_every = 50
[[stage]]
name = "layers"
num_layers = 1
steps = 12
batch_size = 16
window = 3
order = "cluster"
clusters = 5
dropout = 0.1
objectives = { align = 1, ugt = 0.1, sim = 0.1 }
table_learning_rate = 1e-4
warmup = 3
learning_rate = 2e-4
ignore_above = 0.9
"""

QUEUED = """
[[stage]]
name = "queued"
num_layers = 2
steps = 11
batch_size = 16
window = 4
order = "cluster"
clusters = 5
ignore_above = 0.9
dropout = 0.1
layer_prefixes = [0, 2]
warmup = 3
[stage.objectives]
align = 1
mlm = 0.1
tlm = 0.1
smlm = 0.1
word_ctl = { weight = 0.1, negatives = 20 }
contrastive_distil = { weight = 0.1, queue = 40, ignore_above = 0.9 }
"""


def write_toy_recipe(
    folder: Path, *changes: tuple[str, str], minutes: float = 60, pairs: int = 600, more: str = ""
) -> Path:
    """Write a toy corpus and a recipe of two stages that trains on it in seconds, or one with other text."""
    write_toy_corpus(folder / "pairs.tsv", pairs)
    text, recipe = RECIPE, folder / "toy.toml"
    for old, new in (("MINUTES", str(minutes)), *changes):
        assert old in text
        text = text.replace(old, new)
    recipe.write_text(text + more)
    return recipe
