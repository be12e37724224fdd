"""Recipes: one TOML file says everything that a training does."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from xsent.errors import DataError
from xsent.train.objectives.settings import Objectives
from xsent.train.settings import Factor, Names, Numbers, Settings, Share, first_mistake, require

ITS_OWN = ("name", "starts_from", "keep_layers")  # settings of a stage that no other is `like` it in


class CorpusConfig(Settings):
    """Where the pairs come from."""

    files: Annotated[Names, Field(min_length=1)]  # of pairs, relative to the data folder
    validation_share: Share = 0.005  # of the English sentences, held out by hash
    validation_pairs: Annotated[int, Field(ge=2)] = 1000  # a language kept of them, drawn like the training pairs
    temperature: NonNegativeFloat = 0.5  # exponent of a source's size in sampling: 1 as it is, 0 makes sources equal
    weights: Mapping[str, Factor] = {}  # factors by source
    most: Mapping[str, PositiveInt] = {}  # pairs of a source in a language that are ever drawn; `others` for the rest


class TeacherConfig(Settings):
    """A teacher of several, whose vectors are joined; its name is that of its table in a recipe."""

    weight: PositiveFloat = 1.0  # of its cosine among those of the others
    prompt: str = ""  # put before every text
    languages: Names = ()  # that it knows; unless given, those that it names itself, or all
    space: str | None = None  # name of its vector space, if a matrix shall lead from the student's space into it


class VocabularyConfig(Settings):
    """The joint SentencePiece vocabulary: its pieces, and about how many sentences it is trained on."""

    size: Annotated[int, Field(gt=256)] = 48_000
    sentences: PositiveInt = 2_000_000


class StageConfig(Settings):
    """One stage of training; in a file, `like` names an earlier one whose settings it has where it gives none."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+$")]  # also of its checkpoint folder
    num_layers: Annotated[int, Field(ge=0, le=6)]  # above the table
    steps: NonNegativeInt  # 0 ends with what it starts from: a mean, or a choice of layers
    objectives: Objectives
    starts_from: Mapping[str, Factor] = {}  # shares of earlier stages; it starts from their mean (Wortsman et al. 2022)
    keep_layers: Numbers = ()  # those that it takes of what it starts from, from 0; by default the first num_layers
    batch_size: Annotated[int, Field(ge=2)] = 512  # pairs in a step, over all devices
    chunk: NonNegativeInt = 0  # pairs encoded at a time, so that a large batch fits a small device; 0 is all
    weights: Mapping[str, NonNegativeFloat] = {}  # factors by source, beside the corpus's; 0 leaves a source out
    order: Literal["random", "length", "cluster"] = "random"  # of the pairs of a window; cluster makes hard negatives
    shuffle: bool = True  # the batches of a window
    window: PositiveInt = 64  # batches drawn together
    clusters: Annotated[int, Field(ge=1, le=65_536)] = 4096  # found once, for order = "cluster"
    swapped: Annotated[float, Field(ge=0, le=0.5)] = 0.0  # share of a batch made of its other pairs by swapping words
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
    layer_prefixes: Numbers = ()  # numbers of layers trained to stand alone, all among them
    exit_weight: Factor = 1.0  # of the losses of each number of layers below all, beside 1 for all
    validate_every: PositiveInt = 500  # steps

    @model_validator(mode="after")
    def _can_be_trained(self) -> Self:
        trained = (self.num_layers and self.learning_rate) or self.table_learning_rate
        require(trained, "nothing to train: no layers that learn, and table_learning_rate is 0")
        told = self.num_layers and not self.objectives.rows and (self.objectives.align or self.objectives.sentence_ctl)
        require(told or not self.swapped, "swapped needs layers, and align or sentence_ctl to tell copies from pairs")
        head = self.learning_rate or not self.objectives.predicts
        require(head, "learning_rate = 0 leaves the head untrained that predicts pieces")
        compared = self.objectives.contrasts or self.objectives.distils
        for name in ("prefixes", "layer_prefixes"):
            text = f"{name} needs an objective that compares vectors: align, sim, sentence_ctl, distil or co"
            require(compared or not getattr(self, name), text)
        kept = self.keep_layers
        ordered = list(kept) == sorted(set(kept)) and min(kept, default=0) >= 0
        text = f"keep_layers = {list(kept)} must be num_layers = {self.num_layers} different numbers from 0, in order"
        require(not kept or (ordered and len(kept) == self.num_layers), text)
        depth, last = self.layer_prefixes, self.num_layers
        named = not depth or (min(depth) >= 0 and max(depth) == last)
        require(named, f"layer_prefixes = {list(depth)} must lie between 0 and num_layers = {last}, and name it")
        return self


class Recipe(Settings):
    """A whole training."""

    name: str  # of the model
    languages: Annotated[Names, Field(min_length=1)]  # beside English
    corpus: CorpusConfig
    stages: Annotated[tuple[StageConfig, ...], Field(strict=False, min_length=1)]  # in order
    licence: str = "unknown"  # of the trained weights
    attribution: Names = ()  # sources to name in the model card
    dim: PositiveInt = 512  # of a sentence vector
    num_heads: PositiveInt = 8
    ffn_dim: PositiveInt = 1024  # inner size of the feed-forward blocks
    activation: Literal["gelu", "silu"] = "silu"  # silu as in mao2021, gelu as in BERT
    norm_eps: float = 1e-5  # what the norms add to a variance
    readouts: bool = False  # whether each of layer_prefixes has a linear map of its own into the common space
    teachers: Mapping[str, TeacherConfig] = {}  # several teachers by name; each has its --teacher NAME=PATH
    teacher_layers: Numbers = ()  # that ours start as, from 0; width, heads and so on are then the teacher's
    space: str | None = None  # name of the model whose vector space the vectors lie in, if they are distilled
    max_length: PositiveInt = 256  # tokens that the encoder takes
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 1  # of everything
    compile: bool = False  # whether torch.compile makes the layers faster; it takes a minute at the start
    precision: Literal["auto", "32-true", "bf16-mixed"] = "auto"  # auto is bf16 where the processor has it
    checkpoint_minutes: NonNegativeFloat = 5.0  # between checkpoints
    vocabulary: VocabularyConfig = VocabularyConfig()

    @model_validator(mode="after")
    def _is_of_one_shape(self) -> Self:
        require(self.dim % self.num_heads == 0, f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        names = [stage.name for stage in self.stages]
        require(len(set(names)) == len(names), f"stages need names of their own, not {', '.join(names)}")
        for number, stage in enumerate(self.stages):
            later = ", ".join(name for name in stage.starts_from if name not in names[:number])
            require(not later, f"stage {stage.name!r} starts_from {later}, which is no stage before it")
            depths = {other.name: other.num_layers for other in self.stages[:number]}
            depth = min((depths[name] for name in stage.starts_from or names[:number][-1:]), default=None)
            deepest = max(stage.keep_layers, default=-1)
            text = f"stage {stage.name!r} keeps layer {deepest} of {depth}, counted from 0"
            require(depth is None or deepest < depth, text)
            layers = len(self.teacher_layers) or stage.num_layers
            require(stage.num_layers <= layers, f"stage {stage.name!r} has more layers than teacher_layers, {layers}")
        exits = {tuple(sorted(stage.layer_prefixes)) for stage in self.stages}
        text = "readouts need the same layer_prefixes in every stage"
        require(not self.readouts or (len(exits) == 1 and () not in exits), text)
        rows = any(stage.objectives.rows for stage in self.stages)
        require(not (self.teachers and rows), "rows looks at the input of one teacher, not of several")
        if not self.teacher_layers:
            self.require_prefixes()
        return self

    def require_prefixes(self) -> None:
        """Raise a ValueError for prefixes that do not fit the dimension."""
        for stage in self.stages:
            good = not stage.prefixes or (min(stage.prefixes) > 0 and max(stage.prefixes) == self.dim)
            require(good, f"prefixes of stage {stage.name!r} must be above 0 and end with dim = {self.dim}")


def load_recipe(path: Path) -> Recipe:
    """Read a recipe; a DataError names the first mistake in it."""
    try:
        with open(path, "rb") as file:
            raw = tomllib.load(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); expected a recipe, a TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as a TOML recipe: {error}") from error
    stages = raw.pop("stage", None)
    if not isinstance(stages, list) or "stages" in raw or not all(isinstance(stage, dict) for stage in stages):
        raise DataError(f"{path}: a recipe has one or more stages, tables that start with [[stage]] in double brackets")
    for number, stage in enumerate(stages):
        if "like" in stage:
            name = stage.pop("like")
            other = next((other for other in stages[:number] if other.get("name") == name), None)
            if other is None:
                raise DataError(f"{path}: stages[{number}].like = {name!r} is no stage before it")
            stages[number] = {**{key: value for key, value in other.items() if key not in ITS_OWN}, **stage}
    try:
        return Recipe.model_validate({**raw, "stages": stages})
    except ValidationError as error:
        raise DataError(f"{path}: {first_mistake(error)}") from error
