"""Recipes: one TOML file says everything that a training does.

The classes are the tables of the file, and their fields the settings. `load_recipe` reads a file.
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
START = "start"  # name of what a run starts from, among the stages that `starts_from` names
OWN = (
    "name",
    "starts_from",
    "keep_layers",
    "language_directions",
)  # settings of a stage that `like` does not take over
LEFT_OUT = {"weight": 0}  # an objective of a stage that is `like` one that has it


def shares(value: object) -> float | tuple[float, ...]:
    """The share of a member in a mean: a number for all weights, or one for the table and one for each layer."""
    each = value if isinstance(value, list | tuple) else (value,)
    numbers = tuple(number for number in each if type(number) in (int, float) and 0 <= number < math.inf)
    good = len(numbers) == len(each) and any(numbers)
    require(good, f"{value!r} must be a number above 0, or a list of numbers of which one is")
    return numbers if each is value else numbers[0]


class TokenWeights(Settings):
    """How much the tokens of a sentence count in its vector at a depth: h / (h + p), for a piece of the share p.

    The smooth inverse frequency of Arora et al. (2017): what stands in every sentence tells little about one.
    """

    half: PositiveFloat  # h: token frequency at which a piece's weight is halved
    first: PositiveFloat | None = None  # how much the first token counts; default: by its share, as any other


class StageConfig(Settings):
    """One stage of training; in a file, `like` names an earlier stage from which it takes what it does not say."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]  # also of its checkpoint folder
    num_layers: Annotated[int, Field(ge=0, le=6)]  # above the table
    steps: NonNegativeInt  # 0 ends with what it starts from: a mean, or a choice of layers
    objectives: Objectives
    # Shares of stages before, or of the start, in a mean (Wortsman et al. 2022).
    starts_from: Mapping[str, Annotated[Any, PlainValidator(shares)]] = {}
    keep_layers: Numbers = ()  # layers, from 0, that it takes of what it starts from; default: the first num_layers
    batch_size: Annotated[int, Field(ge=2)] = 512  # pairs in a step, over all devices
    chunk: NonNegativeInt = 0  # pairs encoded at a time, so that a large batch fits a small device; 0 is all
    weights: Mapping[str, NonNegativeFloat] = {}  # factors by source, times the corpus's; 0 leaves a source out
    order: Literal["random", "length", "cluster"] = "random"  # of the pairs of a window; cluster makes hard negatives
    shuffle: bool = True  # the batches of a window
    window: PositiveInt = 64  # batches drawn together
    clusters: Annotated[int, Field(ge=1, le=65_536)] = 4096  # found once, for order = "cluster"
    swapped: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share of a batch made of its other pairs by swapping words
    respelled: Annotated[float, Field(ge=0, le=1)] = 0.0  # share of the sentences spelled in another way
    max_tokens: PositiveInt = 200  # kept of a sentence in training
    learning_rate: NonNegativeFloat = 3e-4  # peak, of the layers and of what is not exported; 0 freezes the layers
    table_learning_rate: NonNegativeFloat = 0.0  # peak, of the token table; 0 freezes it
    frozen_rows: NonNegativeInt = 0  # rows of the table, from the first, that stay as they are
    warmup: NonNegativeInt = 100  # steps of linear warm-up, before a cosine to zero
    weight_decay: NonNegativeFloat = 0.01  # AdamW's, on matrices other than the table
    clip: NonNegativeFloat = 1.0  # largest norm of the gradients; 0 does not clip
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0  # share of what the layers add
    ignore_above: NonNegativeFloat = 1.0  # cosine of two pairs that are no negatives; 1: equal English sides alone
    prefixes: Numbers = ()  # dimensions trained to stand alone (Matryoshka), the full one among them
    layer_prefixes: Numbers = ()  # depths trained to stand alone, all layers among them
    exit_weight: Factor = 1.0  # weight of the losses of each depth but the last, whose weight is 1
    attention: Mapping[str, TokenWeights] = {}  # by depth, what the queries of readouts are fitted to as it starts
    language_directions: NonNegativeInt = 0  # told by training pairs, projected out of the readouts as it starts
    validate_every: PositiveInt = 500  # steps

    @model_validator(mode="after")
    def _can_be_trained(self) -> Self:
        wanted = self.objectives
        trained = (self.num_layers and self.learning_rate) or self.table_learning_rate
        require(trained, "nothing to train: no layers that learn, and table_learning_rate is 0")
        compared = self.num_layers and not wanted.embedding_match and (wanted.align or wanted.sentence_ctl)
        require(compared or not self.swapped, "swapped needs layers, and align or sentence_ctl")
        head = self.learning_rate or not wanted.predicts
        require(head, "learning_rate = 0 leaves the head untrained that predicts pieces")
        for name in ("prefixes", "layer_prefixes"):
            text = f"{name} needs an objective that compares vectors: align, sim, sentence_ctl, distil and the like"
            require(wanted.compares or not getattr(self, name), text)
        kept = self.keep_layers
        ordered = list(kept) == sorted(set(kept)) and min(kept, default=0) >= 0
        text = f"keep_layers = {list(kept)} must be num_layers = {self.num_layers} different numbers from 0, in order"
        require(not kept or (ordered and len(kept) == self.num_layers), text)
        depths = self.layer_prefixes
        named = not depths or (min(depths) >= 0 and max(depths) == self.num_layers)
        text = f"layer_prefixes = {list(depths)} must lie between 0 and num_layers = {self.num_layers}, and name it"
        require(named, text)
        several = [share for share in self.starts_from.values() if isinstance(share, tuple)]
        require(len(set(map(len, several))) < 2, "starts_from needs as many shares of one member as of another")
        some = len(several) < len(self.starts_from) or all(map(sum, zip(*several, strict=True)))
        require(some, f"starts_from leaves a layer without weights: its shares are 0 in {', '.join(self.starts_from)}")
        strange = ", ".join(depth for depth in self.attention if depth not in map(str, depths))
        require(not strange, f"attention names the depth {strange}; layer_prefixes are {list(depths)}")
        return self


class CorpusConfig(Settings):
    """Where the pairs come from."""

    files: Annotated[Names, Field(min_length=1)]  # of pairs, relative to the data folder
    validation_share: Share = 0.005  # of the English sentences, held out by hash
    validation_pairs: Annotated[int, Field(ge=2)] = 1000  # held-out pairs a language, drawn like the training pairs
    temperature: NonNegativeFloat = 0.5  # exponent of a source's size in sampling: 1 as it is, 0 makes sources equal
    weights: Mapping[str, Factor] = {}  # factors by source
    most: Mapping[str, PositiveInt] = {}  # pairs of a source in a language that are ever drawn; `others` for the rest


class ScoredConfig(Settings):
    """Where scored pairs come from, for the objective `similarity`."""

    files: Annotated[Names, Field(min_length=1)]  # of scored pairs, relative to the data folder


class PassagesConfig(Settings):
    """Where queries with passages come from, for the objective `retrieve`."""

    files: Annotated[Names, Field(min_length=1)]  # of queries with passages, relative to the data folder
    temperature: NonNegativeFloat = 0.5  # exponent of a source's size in sampling, as in the corpus
    weights: Mapping[str, NonNegativeFloat] = {}  # factors by source; 0 leaves a source out
    kinds: Mapping[str, NonNegativeFloat] = {}  # factors by kind of query, within a source


class TeacherConfig(Settings):
    """One of several teachers whose vectors are joined; its name is that of its table in a recipe."""

    weight: PositiveFloat = 1.0  # of its cosine among those of the others
    prompt: str = ""  # put before every text
    languages: Names = ()  # that it knows; default: those that it names itself, or all
    space: str | None = None  # name of its vector space, if the bundle gets a matrix into it
    by_language: bool = False  # whether its vectors lose the mean of their language instead of that of all


class VocabularyConfig(Settings):
    """The joint SentencePiece vocabulary: its pieces, and about how many sentences it is trained on."""

    size: Annotated[int, Field(gt=256)] = 48_000
    sentences: PositiveInt = 2_000_000


class Groups(Settings):
    """Names for several sources, which a file may use where it gives weights by source."""

    groups: Mapping[str, Names] = {}


class Basics(Settings):
    """What every recipe has: text, vocabulary and the shape of the encoder."""

    name: str  # of the model
    languages: Annotated[Names, Field(min_length=1)]  # besides English
    corpus: CorpusConfig
    licence: str = "unknown"  # of the trained weights
    attribution: Names = ()  # sources to name in the model card
    dim: PositiveInt = 512  # of a sentence vector
    num_heads: PositiveInt = 8
    ffn_dim: PositiveInt = 1024  # inner size of the feed-forward blocks
    activation: Literal["gelu", "silu"] = "silu"  # silu as in mao2021, gelu as in BERT
    norm_eps: float = 1e-5  # what the norms add to a variance
    max_length: PositiveInt = 256  # tokens that the encoder takes
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1  # of everything
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"  # auto is bf16 where the hardware has it
    checkpoint_minutes: NonNegativeFloat = 5.0  # between checkpoints
    vocabulary: VocabularyConfig = VocabularyConfig()

    @model_validator(mode="after")
    def _has_whole_heads(self) -> Self:
        require(self.dim % self.num_heads == 0, f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        return self


class Recipe(Basics):
    """A whole training."""

    stages: Annotated[tuple[StageConfig, ...], Field(strict=False, min_length=1)]  # in order
    scored: ScoredConfig | None = None
    passages: PassagesConfig | None = None
    readouts: bool = False  # whether each of layer_prefixes has a linear map of its own into the common space
    teachers: Mapping[str, TeacherConfig] = {}  # several teachers by name; each has its --teacher NAME=PATH
    teacher_layers: Numbers = ()  # layers of the teacher, from 0, to start from; the shape is then the teacher's
    space: str | None = None  # name of the model whose vector space the vectors lie in, if they are distilled

    @model_validator(mode="after")
    def _is_of_one_shape(self) -> Self:
        names = [stage.name for stage in self.stages]
        require(len(set(names)) == len(names), f"stages need names of their own, not {', '.join(names)}")
        for number, stage in enumerate(self.stages):
            require(stage.name != START, f"{START!r} is the name of what the run starts from; give the stage another")
            later = ", ".join(name for name in stage.starts_from if name not in [START, *names[:number]])
            require(not later, f"stage {stage.name!r} starts_from {later}, which is no stage before it")
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
            require(self.readouts or not used, f"{name} is of readouts; set readouts = true")
        for objective, table in (("similarity", "scored"), ("retrieve", "passages")):
            needs = [stage.name for stage in self.stages if objective in stage.objectives.weights]
            text = f"objective {objective} of stage {''.join(needs[:1])!r} needs a table [{table}] that names files"
            require(not needs or getattr(self, table) is not None, text)
        matched = any(stage.objectives.embedding_match for stage in self.stages)
        require(not (self.teachers and matched), "embedding_match needs one teacher, not several")
        if not self.teacher_layers:
            self.require_prefixes()
        return self

    def require_prefixes(self) -> None:
        """Raises ValueError if prefixes do not fit the dimension."""
        for stage in self.stages:
            good = not stage.prefixes or (min(stage.prefixes) > 0 and max(stage.prefixes) == self.dim)
            require(good, f"prefixes of stage {stage.name!r} must be above 0 and end with dim = {self.dim}")


def load_recipe(path: Path) -> Recipe:
    """Read a recipe. Raises DataError with the first mistake in it."""
    raw = read_toml(path)
    stages = raw.pop("stage", None)
    if not isinstance(stages, list) or "stages" in raw or not all(isinstance(stage, dict) for stage in stages):
        raise DataError(f"{path}: a recipe has one or more stages, tables that start with [[stage]] in double brackets")
    try:
        groups = Groups.model_validate({"groups": raw.pop("groups", {})}).groups
        tables = {name: by_source(raw[name], groups) for name in ("corpus", "passages") if name in raw}
        return Recipe.model_validate({**raw, **tables, "stages": resolved(stages, groups)})
    except ValidationError as error:
        raise DataError(f"{path}: {first_mistake(error)}") from error
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a recipe. Raises DataError if the file is no TOML."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); expected a recipe, a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as a TOML recipe: {error}") from error


def resolved(given: Sequence[dict[str, Any]], groups: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Stages without groups and without `like`. Raises ValueError if a stage is like none before it."""
    stages: list[dict[str, Any]] = []
    for number, raw in enumerate(given):
        stage = by_source(raw, groups)
        if isinstance(wanted := stage.get("objectives"), dict):
            stage["objectives"] = {name: with_weight(objective) for name, objective in wanted.items()}
        if "like" in stage:
            name = stage.pop("like")
            other = next((other for other in stages if other.get("name") == name), None)
            if other is None:
                raise ValueError(f"stages[{number}].like = {name!r} is no stage before it")
            without = [name for name, objective in stage.get("objectives", {}).items() if objective == LEFT_OUT]
            stage = merged({key: value for key, value in other.items() if key not in OWN}, stage)
            for name in without:
                del stage["objectives"][name]
        stages.append(stage)
    return stages


def by_source(table: Any, groups: Mapping[str, Sequence[str]]) -> Any:  # noqa: ANN401  whatever a file holds
    """A table whose numbers by source may be given by group; a source's own number counts before its group's."""
    if not isinstance(table, dict):
        return table
    found = dict(table)
    for name in ("weights", "most"):
        if isinstance(numbers := table.get(name), dict):
            grouped = {source: numbers[group] for group in groups if group in numbers for source in groups[group]}
            found[name] = grouped | {source: n for source, n in numbers.items() if source not in groups}
    return found


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Two tables as one: the second's value where both have one; tables that both have are merged in turn."""
    both = [name for name in below.keys() & above.keys() if isinstance(below[name], dict)]
    tables = {name: merged(below[name], above[name]) for name in both if isinstance(above[name], dict)}
    return {**below, **above, **tables}


def first_mistake(error: ValidationError) -> str:
    """The first mistake in one line: where it stands, what was given, what was expected."""
    mistake = error.errors()[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake["loc"]).lstrip(".")
    if mistake["type"] == "missing":
        return f"setting {where!r} is missing"
    if mistake["type"] == "value_error":  # in our words
        return f"{where}: {mistake['ctx']['error']}".removeprefix(": ")
    expected = re.sub(r"^\w+ should", "must", mistake["msg"]).replace(" after validation", "")
    expected = re.sub("a valid dictionary.*", "a table of settings", expected)
    expected = re.sub("a valid (tuple|list)", "a list", expected)
    return f"{where} = {mistake['input']!r} {expected}"
