"""Recipes: one TOML file says everything that a training does."""

import re
import tomllib
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    WrapValidator,
    field_validator,
    model_validator,
)
from pydantic_core import to_jsonable_python

from xsent.errors import DataError


def as_written(value: float, check: Callable[[float], float]) -> float:
    """A checked number as the recipe has it: prepared data is known by its settings, and 2 is not written as 2.0."""
    check(value)
    return value


Factor = Annotated[PositiveFloat, WrapValidator(as_written)]
Share = Annotated[float, Field(gt=0, lt=1)]
Names = Annotated[tuple[str, ...], Field(strict=False)]  # TOML has lists
FREE = ("licence", "attribution", "space", "checkpoint_minutes")  # settings that change no weight
Numbers = Annotated[tuple[int, ...], Field(strict=False)]


class Settings(BaseModel):
    """A table of settings; a truth value is no number, nor is a text."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, values: object) -> object:
        """Offer the nearest setting for an unknown one, before anything else is said."""
        known = cls.model_fields
        for key in values if isinstance(values, Mapping) else ():
            if key not in known:
                near = get_close_matches(key, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
                raise ValueError(f"unknown setting {key!r}; {hint}")
        return values


def require(condition: object, message: str) -> None:
    """Raise a ValueError unless settings go together."""
    if not condition:
        raise ValueError(message)


def first_mistake(error: ValidationError) -> str:
    """The first mistake in a line: where it stands, what was given, what was expected."""
    mistake = error.errors()[0]
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in mistake["loc"]).lstrip(".")
    if mistake["type"] == "missing":
        return f"setting {where!r} is missing"
    if mistake["type"] == "value_error":  # in our words
        return f"{where}: {mistake['ctx']['error']}".removeprefix(": ")
    expected = re.sub(r"^\w+ should", "must", mistake["msg"]).replace(" after validation", "")
    expected = re.sub("a valid dictionary.*", "a table of settings", expected).replace("a valid tuple", "a list")
    return f"{where} = {mistake['input']!r} {expected}"


def differences(saved: object, now: object, name: str = "") -> str:
    """Where settings as a checkpoint has them differ from a recipe's, in words; empty where they do not.

    A setting that the saved ones do not know yet had the value that is now its default.
    """
    if isinstance(now, Settings) and isinstance(saved, Mapping):
        known = {**dict(type(now).model_construct()), **saved}
        parts = [(f"{name}.{key}".lstrip("."), known.get(key), value) for key, value in now if key not in FREE]
    elif isinstance(now, tuple) and isinstance(saved, list | tuple) and len(saved) == len(now):
        parts = [(f"{name}[{i}]", was, value) for i, (was, value) in enumerate(zip(saved, now, strict=True))]
    else:
        was, value = to_jsonable_python([saved, now])
        return f"{name}: {was!r} became {value!r}" if was != value else ""
    return ", ".join(filter(None, (differences(was, value, where) for where, was, value in parts)))


class Objective(Settings):
    """What all objectives have: their weight in the sum. `distil = 2` is short for `distil = { weight = 2 }`."""

    weight: float = 1.0

    @model_validator(mode="before")
    @classmethod
    def _weight_alone(cls, values: object) -> object:
        return {"weight": values} if type(values) in (int, float) else values

    @field_validator("weight")
    @classmethod
    def _is_wanted(cls, weight: float) -> float:
        require(weight > 0, f"{weight} must be above 0; leave the objective out to be without it")
        return weight

    @property
    def arguments(self) -> dict[str, Any]:
        """The settings that its loss is called with."""
        return self.model_dump(exclude={"weight"})


class Masked(Objective):
    """MLM or TLM: hidden tokens are predicted from their own position."""

    share: Share = 0.15  # of the tokens that is hidden


class Align(Objective):
    """Find the translation in the batch (mao2021 eq. 5)."""

    temperature: NonNegativeFloat = 0.05  # divisor of the cosines, here and below; 0 is the paper's inner product
    margin: NonNegativeFloat = 0.0  # subtracted from the true pair's cosine

    @model_validator(mode="after")
    def _margin_is_of_cosines(self) -> Self:
        require(self.temperature or not self.margin, f"margin = {self.margin} needs a temperature above 0")
        return self


class Sim(Objective):
    """Equal similarity matrices in both languages (mao2021 eq. 6)."""

    temperature: NonNegativeFloat = 0.05
    literal: bool = False  # the paper's form: inner products, diagonal included

    @model_validator(mode="after")
    def _cosines_are_divided(self) -> Self:
        require(self.literal or self.temperature, "temperature = 0 is for the literal form alone")
        return self


class SentenceCtl(Objective):
    """HiCTL between sentences (wei2020 eq. 2 to 4)."""

    temperature: PositiveFloat = 0.05


class WordCtl(Objective):
    """HiCTL between a pair and its words (wei2020 eq. 5 and 6)."""

    temperature: PositiveFloat = 0.1
    negatives: PositiveInt = 2048  # pieces drawn against each pair


class Distil(Objective):
    """The cosine to the teacher's vector (LASER3; tan2022 section 2)."""

    english: bool = True  # whether the English side learns too, not the translation alone


class Co(Objective):
    """Find the teacher's vector among those of earlier batches (LASER3-CO; tan2022 section 3)."""

    temperature: PositiveFloat = 0.05
    queue: PositiveInt = 4096  # vectors of earlier batches
    batch: bool = False  # whether it is told from those of its own batch too
    ignore_above: float = 1.0  # cosine to the right vector above which another is no negative (CO-Filter: 0.9)
    english: bool = True  # as in Distil


class Rows(Objective):
    """The mean of a sentence's rows where the teacher's input has its English translation (Artetxe et al. 2020)."""

    contrast: NonNegativeFloat = 1.0  # weight of finding the translation in the batch, beside the squared error
    temperature: PositiveFloat = 0.05


class Objectives(Settings):
    """The objectives of a stage; None where one is not wanted."""

    mlm: Masked | None = None
    tlm: Masked | None = None
    smlm: Objective | None = None  # here and below the sentence vector predicts pieces (mao2021 eq. 1 to 4)
    xtr: Objective | None = None
    ugt: Objective | None = None
    align: Align | None = None
    sim: Sim | None = None
    sentence_ctl: SentenceCtl | None = None
    word_ctl: WordCtl | None = None
    distil: Distil | None = None
    co: Co | None = None
    relate: Objective | None = None  # the teacher's cosines in a batch, within English and across (Tung & Mori 2019)
    rows: Rows | None = None

    @model_validator(mode="after")
    def _can_be_learnt_together(self) -> Self:
        require(self.weights, f"no objective; known are {', '.join(type(self).model_fields)}")
        mixed = self.rows and (self.distil or self.co or self.relate)
        require(not mixed, "rows looks at the teacher's input, distil, co and relate at its vectors: not in one stage")
        return self

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each objective that is wanted."""
        return {name: objective.weight for name, objective in self if objective is not None}

    @property
    def generative(self) -> tuple[str, ...]:
        """The wanted ones that hide one piece of each pair."""
        return tuple(name for name in ("smlm", "xtr", "ugt") if name in self.weights)

    @property
    def predicts(self) -> bool:
        """Whether pieces are predicted, so that a generative head is needed."""
        return bool(self.generative or self.mlm or self.tlm)

    @property
    def contrasts(self) -> bool:
        """Whether the sentence vectors of a batch are compared with each other."""
        return bool(self.align or self.sim or self.sentence_ctl)

    @property
    def distils(self) -> bool:
        """Whether a teacher is needed."""
        return bool(self.distil or self.co or self.relate or self.rows)

    @property
    def takes_english_alone(self) -> bool:
        """Whether sentences without translation have something to learn from, and nothing asks for the other side."""
        return self.distils and self.reads_english and not (self.predicts or self.word_ctl)

    @property
    def copies(self) -> bool:
        """Whether the teacher's vectors are to be copied, for which they need the student's dimension."""
        return bool(self.distil or self.co)

    @property
    def reads_english(self) -> bool:
        """Whether the English side has to be encoded: distillation can do with the teacher's vectors of it."""
        distilled = [part for part in (self.distil, self.co) if part is not None]
        return len(self.weights) > len(distilled) or any(part.english for part in distilled)


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
