"""Recipes: one TOML file with all settings of a training.

The classes are the tables of the file, and their fields are the settings. `load_recipe` reads a file.
"""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PlainValidator,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from xsent.errors import DataError
from xsent_train.objectives import Objectives, with_weight
from xsent_train.settings import Factor, Names, Numbers, Settings, Share, require

LAYER_SHAPE = ("num_heads", "ffn_dim", "activation", "norm_eps", "max_length")
START = "start"  # in `starts_from`: the checkpoint or bundle that the run starts from
# Settings of a stage that `like` does not take over.
OWN = ("name", "starts_from", "keep_layers", "language_directions")
OMITTED = {"weight": 0}  # an objective that a stage does not take over from the stage that it is `like`


def shares(value: object) -> float | tuple[float, ...]:
    """The share of a stage in a mean: one number for all weights, or one for the table and one for each layer."""
    each = value if isinstance(value, list | tuple) else (value,)
    numbers = tuple(number for number in each if type(number) in (int, float) and 0 <= number < math.inf)
    good = len(numbers) == len(each) and any(numbers)
    require(good, f"{value!r} must be a number above 0, or a list of numbers with at least one above 0")
    return numbers if each is value else numbers[0]


class TokenWeights(Settings):
    """The weight of a token in the vector at a depth: h / (h + p), for a piece with the share p of all tokens.

    This is the smooth inverse frequency of Arora et al. (2017): what occurs in every sentence means little in one.
    """

    half: PositiveFloat  # h: token frequency at which a piece's weight is halved
    first: PositiveFloat | None = None  # weight of the first token; default: by its share, like any other


class StageConfig(Settings):
    """One stage of training. In a file, `like` names an earlier stage whose settings are the defaults."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]  # names the checkpoint folders, too
    num_layers: Annotated[int, Field(ge=0, le=6)]  # above the table
    steps: NonNegativeInt  # 0 keeps what it starts from: a mean, or a selection of layers
    objectives: Objectives
    # Shares of earlier stages, or of the start, in a mean (Wortsman et al. 2022).
    starts_from: Mapping[str, Annotated[Any, PlainValidator(shares)]] = {}
    keep_layers: Numbers = ()  # layers to keep of what it starts from, counted from 0; default: the first num_layers
    batch_size: Annotated[int, Field(ge=2)] = 512  # pairs per step, over all devices
    weights: Mapping[str, NonNegativeFloat] = {}  # factors by source, times those of the corpus; 0 skips a source
    order: Literal["random", "length", "cluster"] = "random"  # of the pairs in a window; cluster gives hard negatives
    shuffle: bool = True  # whether to shuffle the batches of a window
    window: PositiveInt = 64  # batches drawn together
    clusters: Annotated[int, Field(ge=1, le=65_536)] = 4096  # found once, for order = "cluster"
    swapped: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share of a batch: copies of its pairs with words swapped
    respelled: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of the sentences with another spelling
    max_tokens: PositiveInt = 200  # where sentences are cut in training
    learning_rate: NonNegativeFloat = 3e-4  # peak, of layers and training heads; 0 freezes the layers
    table_learning_rate: NonNegativeFloat = 0.0  # peak, of the token table; 0 freezes it
    frozen_rows: NonNegativeInt = 0  # number of rows at the start of the table that are frozen
    frozen_layers: NonNegativeInt = 0  # number of layers at the start that are frozen, with the norm below them
    warmup: NonNegativeInt = 100  # steps of linear warm-up, before the cosine decay to zero
    weight_decay: NonNegativeFloat = 0.01  # AdamW's, on matrices other than the table
    clip: NonNegativeFloat = 1.0  # largest norm of the gradients; 0 does not clip
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # rate, on what each layer adds
    ignore_above: NonNegativeFloat = 1.0  # above this cosine, two pairs are not negatives; 1: only equal English sides
    prefixes: Numbers = ()  # dimensions that can be used on their own (Matryoshka), including the full one
    layer_prefixes: Numbers = ()  # depths that can be used on their own, including all layers
    exit_weight: Factor = 1.0  # weight of the losses of each depth but the last, whose weight is 1
    attention: Mapping[str, TokenWeights] = {}  # by depth: what the readouts' queries are fitted to at its start
    language_directions: NonNegativeInt = 0  # number of them to project out of the readouts at its start
    validate_every: PositiveInt = 500  # steps

    @model_validator(mode="after")
    def _can_be_trained(self) -> Self:
        wanted = self.objectives
        trained = (self.num_layers and self.learning_rate) or self.table_learning_rate
        require(trained, "nothing to train: no layers that learn, and table_learning_rate is 0")
        compared = self.num_layers and not wanted.embedding_match and (wanted.align or wanted.sentence_ctl)
        require(compared or not self.swapped, "swapped needs layers, and align or sentence_ctl")
        head = self.learning_rate or not wanted.predicts
        require(head, "learning_rate = 0 leaves the head that predicts pieces untrained")
        for name in ("prefixes", "layer_prefixes"):
            text = f"{name} needs an objective that compares vectors: align, sim, sentence_ctl, distil and the like"
            require(wanted.compares or not getattr(self, name), text)
        kept = self.keep_layers
        ordered = list(kept) == sorted(set(kept)) and min(kept, default=0) >= 0
        text = f"keep_layers = {list(kept)} must be num_layers = {self.num_layers} different numbers from 0, in order"
        require(not kept or (ordered and len(kept) == self.num_layers), text)
        depths = self.layer_prefixes
        named = not depths or (min(depths) >= 0 and max(depths) == self.num_layers)
        text = f"layer_prefixes = {list(depths)} must be between 0 and num_layers = {self.num_layers}, and include it"
        require(named, text)
        several = [share for share in self.starts_from.values() if isinstance(share, tuple)]
        require(len(set(map(len, several))) < 2, "starts_from needs equally long lists of shares")
        whole = len(several) < len(self.starts_from) or all(map(sum, zip(*several, strict=True)))
        require(whole, f"starts_from leaves a layer without weights: the shares are 0 in {', '.join(self.starts_from)}")
        unknown = ", ".join(depth for depth in self.attention if depth not in map(str, depths))
        require(not unknown, f"attention names the depth {unknown}; layer_prefixes are {list(depths)}")
        return self


class TextConfig(Settings):
    """Where text of one kind comes from."""

    files: Annotated[Names, Field(min_length=1)]  # relative to the data folder

    def paths(self, data: Path) -> list[Path]:
        """The files in a data folder."""
        return [data / file for file in self.files]


class CorpusConfig(TextConfig):
    """Where the pairs come from."""

    validation_share: Share = 0.005  # of the English sentences, held out by hash
    validation_pairs: Annotated[int, Field(ge=2)] = 1000  # held-out pairs per language, drawn like training pairs
    temperature: NonNegativeFloat = 0.5  # exponent of a source's size in sampling: 1 keeps sizes, 0 makes sources equal
    weights: Mapping[str, Factor] = {}  # factors by source
    most: Mapping[str, PositiveInt] = {}  # limit of pairs per source and language; `others` for the rest


class PassagesConfig(TextConfig):
    """Where queries with passages come from, for the objective `retrieve`."""

    temperature: NonNegativeFloat = 0.5  # exponent of a source's size in sampling, as in the corpus
    weights: Mapping[str, NonNegativeFloat] = {}  # factors by source; 0 skips a source
    kinds: Mapping[str, NonNegativeFloat] = {}  # factors by kind of query, within a source


class TeacherConfig(Settings):
    """One of several teachers whose vectors are joined; its name is that of its table in a recipe."""

    weight: PositiveFloat = 1.0  # of its cosine, relative to the others
    prompt: str = ""  # prepended to every text
    languages: Names = ()  # that it knows; default: those that the model lists, or all
    space: str | None = None  # name of its vector space, to give the bundle a matrix into it


class VocabularyConfig(Settings):
    """The joint SentencePiece vocabulary: its size, and about how many sentences it is trained on."""

    size: Annotated[int, Field(gt=256)] = 48_000
    sentences: PositiveInt = 2_000_000


class Recipe(Settings):
    """The settings of a whole training."""

    name: str  # of the model
    languages: Annotated[Names, Field(min_length=1)]  # besides English
    corpus: CorpusConfig
    licence: str = "unknown"  # of the trained weights
    attribution: Names = ()  # sources to name in the model card
    dim: PositiveInt = 512  # of a sentence vector
    num_heads: PositiveInt = 8
    ffn_dim: PositiveInt = 1024  # inner size of the feed-forward blocks
    activation: Literal["gelu", "silu"] = "silu"  # silu as in mao2021, gelu as in BERT
    norm_eps: float = 1e-5  # added to the variance in the norms
    max_length: PositiveInt = 256  # maximum number of tokens of a sentence
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1  # for all random numbers
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"  # auto: bf16 if the hardware supports it
    checkpoint_minutes: NonNegativeFloat = 5.0  # between checkpoints
    vocabulary: VocabularyConfig = VocabularyConfig()
    stages: Annotated[tuple[StageConfig, ...], Field(strict=False, min_length=1)]  # in order
    scored: TextConfig | None = None  # scored pairs, for the objective `similarity`
    passages: PassagesConfig | None = None
    readouts: bool = False  # whether each of layer_prefixes has its own linear map into the common space
    teachers: Mapping[str, TeacherConfig] = {}  # several teachers by name, each given by --teacher NAME=PATH
    teacher_layers: Numbers = ()  # layers of the teacher, from 0, to start from; the shape is then the teacher's
    space: str | None = None  # name of the model whose vector space is distilled

    @model_validator(mode="after")
    def _is_of_one_shape(self) -> Self:
        require(self.dim % self.num_heads == 0, f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        names = [stage.name for stage in self.stages]
        require(len(set(names)) == len(names), f"stages need different names, not {', '.join(names)}")
        for number, stage in enumerate(self.stages):
            require(stage.name != START, f"{START!r} is reserved for what the run starts from; rename the stage")
            later = ", ".join(name for name in stage.starts_from if name not in [START, *names[:number]])
            require(not later, f"stage {stage.name!r} starts_from {later}, which is not an earlier stage")
            depths = {other.name: other.num_layers for other in self.stages[:number]}
            depth = min(
                (depths[name] for name in stage.starts_from or names[:number][-1:] if name in depths), default=None
            )
            deepest = max(stage.keep_layers, default=-1)
            text = f"stage {stage.name!r} keeps layer {deepest} of {depth}, counted from 0"
            require(depth is None or deepest < depth, text)
            layers = len(self.teacher_layers) or stage.num_layers
            require(stage.num_layers <= layers, f"stage {stage.name!r} has more layers than teacher_layers, {layers}")
        exits = {tuple(sorted(stage.layer_prefixes)) for stage in self.stages}
        text = "readouts need the same layer_prefixes in every stage"
        require(not self.readouts or (len(exits) == 1 and () not in exits), text)
        for name in ("attention", "language_directions"):
            used = any(getattr(stage, name) for stage in self.stages)
            require(self.readouts or not used, f"{name} needs readouts; set readouts = true")
        for objective, table in (("similarity", "scored"), ("retrieve", "passages")):
            needs = [stage.name for stage in self.stages if objective in stage.objectives.weights]
            text = f"objective {objective} of stage {''.join(needs[:1])!r} needs a table [{table}] that names files"
            require(not needs or getattr(self, table) is not None, text)
        matched = any(stage.objectives.embedding_match for stage in self.stages)
        require(self.teacher_layers or not matched, "embedding_match fits the table to a teacher's; set teacher_layers")
        require(not (self.teachers and self.teacher_layers), "teacher_layers needs one teacher, not several")
        if not self.teacher_layers:
            self.require_prefixes()
        return self

    def require_prefixes(self) -> None:
        """Raises ValueError if prefixes do not fit the dimension."""
        for stage in self.stages:
            good = not stage.prefixes or (min(stage.prefixes) > 0 and max(stage.prefixes) == self.dim)
            require(good, f"prefixes of stage {stage.name!r} must be above 0 and end with dim = {self.dim}")


def load_recipe(path: Path) -> Recipe:
    """Read a recipe. Raises DataError that reports the first mistake in it."""
    return parse_recipe(read_toml(path), path)


def parse_recipe(raw: dict[str, Any], path: Path) -> Recipe:
    """The recipe in the tables of a file, see `load_recipe`."""
    stages = raw.pop("stage", None)
    if not isinstance(stages, list) or "stages" in raw or not all(isinstance(stage, dict) for stage in stages):
        raise DataError(f"{path}: a recipe has one or more stages, tables that start with [[stage]] in double brackets")
    try:
        return Recipe.model_validate({**raw, "stages": resolved(stages)})
    except ValidationError as error:
        raise DataError(f"{path}: {first_mistake(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a recipe. Raises DataError if the file is not TOML."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); expected a recipe, a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as a TOML recipe: {error}") from error


def resolved(given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Resolve `like` in stages. Raises ValueError if `like` does not name an earlier stage."""
    stages: list[dict[str, Any]] = []
    for number, raw in enumerate(given):
        stage = dict(raw)
        if isinstance(wanted := stage.get("objectives"), dict):
            stage["objectives"] = {name: with_weight(objective) for name, objective in wanted.items()}
        if "like" in stage:
            name = stage.pop("like")
            other = next((other for other in stages if other.get("name") == name), None)
            if other is None:
                raise ValueError(f"stages[{number}].like = {name!r} is not an earlier stage")
            named = stage["objectives"] if isinstance(wanted, dict) else {}
            without = [name for name, objective in named.items() if objective == OMITTED]
            stage = merged({key: value for key, value in other.items() if key not in OWN}, stage)
            for name in without:
                del stage["objectives"][name]
        stages.append(stage)
    return stages


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two tables recursively; where both have a value, the second one wins."""
    both = [name for name in below.keys() & above.keys() if isinstance(below[name], dict)]
    tables = {name: merged(below[name], above[name]) for name in both if isinstance(above[name], dict)}
    return {**below, **above, **tables}


def first_mistake(error: ValidationError) -> str:
    """The first mistake in one line: where it is, what was given, and what was expected."""
    mistake = error.errors()[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake["loc"]).lstrip(".")
    if mistake["type"] == "missing":
        return f"setting {where!r} is missing"
    if mistake["type"] == "value_error":  # raised by `require`
        return f"{where}: {mistake['ctx']['error']}".removeprefix(": ")
    expected = re.sub(r"^\w+ should", "must", mistake["msg"]).replace(" after validation", "")
    expected = re.sub("a valid dictionary.*", "a table of settings", expected)
    expected = re.sub("a valid (tuple|list)", "a list", expected)
    return f"{where} = {mistake['input']!r} {expected}"
