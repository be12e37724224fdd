"""Recipes: one TOML file says everything that a training does."""

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from xsent.errors import DataError
from xsent.train.objectives.settings import Objectives
from xsent.train.settings import require, section, tables

ACTIVATIONS = ("gelu", "silu")
ORDERS = ("random", "length", "cluster")
PRECISIONS = ("auto", "32-true", "bf16-mixed")
NOT_NEGATIVE = (
    *("learning_rate", "table_learning_rate", "warmup", "weight_decay", "clip", "dropout"),
    *("ignore_above", "chunk", "frozen_rows"),
)


def require_weights(weights: Mapping[str, float], *, zero: bool) -> None:
    """Refuse factors that are no numbers or too small.

    Raises:
        ValueError: One is.
    """
    bound = "from 0 up" if zero else "above 0"
    for name, weight in weights.items():
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        good = number and (0 < weight < math.inf or (zero and weight == 0))
        require(good, f"the weight of {name!r}, {weight!r}, must be a number {bound}")


@dataclass(frozen=True)
class CorpusConfig:
    """Where the pairs come from.

    Attributes:
        files: Files of pairs, relative to the data folder.
        validation_share: Share of English sentences held out, chosen by hash.
        validation_pairs: Pairs a language kept of them, drawn like the training pairs.
        temperature: Exponent of a source's size in sampling: 1 keeps the corpus as it is, 0 makes sources equal.
        weights: Factors by source.
    """

    files: tuple[str, ...]
    validation_share: float = 0.005
    validation_pairs: int = 1000
    temperature: float = 0.5
    weights: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(len(self.files) > 0, "files is empty; name at least one file of pairs")
        require(0 < self.validation_share < 1, f"validation_share = {self.validation_share} must lie between 0 and 1")
        require(self.validation_pairs >= 2, f"validation_pairs = {self.validation_pairs} must be at least 2")
        require(self.temperature >= 0, f"temperature = {self.temperature} must not be negative")
        require_weights(self.weights, zero=False)


@dataclass(frozen=True)
class VocabularyConfig:
    """The joint SentencePiece vocabulary: its pieces, and about how many sentences it is trained on."""

    size: int = 48_000
    sentences: int = 2_000_000

    def __post_init__(self) -> None:
        require(256 < self.size <= 65_536, f"size = {self.size} must lie between 257 and 65536")
        require(self.sentences > 0, f"sentences = {self.sentences} must be above 0")


@dataclass(frozen=True)
class StageConfig:
    """One stage of training.

    Attributes:
        name: Name of the stage, also of its checkpoint folder.
        num_layers: Layers above the table.
        steps: Optimiser steps.
        objectives: What is learnt, each with its weight.
        starts_from: Earlier stages, each with its share: the mean of the weights that they ended with is what the stage
            starts from. A stage fine-tuned for meaning and the one before it, which retrieves better, have a mean that
            does nearly as well as each in what it is good at (Wortsman et al. 2022). Unless given, a stage starts from
            the one before it.
        batch_size: Pairs in a step, over all devices.
        chunk: Pairs encoded at a time, so that a large batch fits a small device; 0 encodes all at once.
        weights: Factors by source in this stage, beside the corpus's; 0 leaves a source out.
        order: What a window is ordered by before it is cut into batches: random; length; cluster (hard negatives from
            all over the corpus, found once).
        shuffle: Whether the batches of a window are shuffled.
        window: Batches drawn together.
        clusters: Clusters for `order = "cluster"`.
        max_tokens: Tokens kept of a sentence in training.
        learning_rate: Peak rate of the layers and of what is not exported; 0 freezes the layers.
        table_learning_rate: Peak rate of the token table; 0 freezes it.
        frozen_rows: Rows of the table, from the first, that stay as they are.
        warmup: Steps of linear warm-up, before a cosine to zero.
        weight_decay: AdamW's, on matrices other than the table.
        clip: Largest norm of the gradients; 0 does not clip.
        dropout: Share of what the layers add that is dropped.
        ignore_above: Cosine above which two pairs are no negatives of each other; 1 ignores equal English sides only.
        prefixes: Dimensions that are trained to stand alone (Matryoshka); the full dimension among them.
        layer_prefixes: Numbers of layers that are trained to stand alone; all layers among them.
        validate_every: Steps between validations.
    """

    name: str
    num_layers: int
    steps: int
    objectives: Objectives
    starts_from: Mapping[str, float] = field(default_factory=dict)
    batch_size: int = 512
    chunk: int = 0
    weights: Mapping[str, float] = field(default_factory=dict)
    order: str = "random"
    shuffle: bool = True
    window: int = 64
    clusters: int = 4096
    max_tokens: int = 200
    learning_rate: float = 3e-4
    table_learning_rate: float = 0.0
    frozen_rows: int = 0
    warmup: int = 100
    weight_decay: float = 0.01
    clip: float = 1.0
    dropout: float = 0.0
    ignore_above: float = 1.0
    prefixes: tuple[int, ...] = ()
    layer_prefixes: tuple[int, ...] = ()
    validate_every: int = 500

    def __post_init__(self) -> None:
        good = re.fullmatch(r"[A-Za-z0-9_.-]+", self.name)
        require(good is not None, f"name = {self.name!r} must be of letters, digits, '-', '_' and '.'")
        require(0 <= self.num_layers <= 6, f"num_layers = {self.num_layers} must lie between 0 and 6")
        require(self.batch_size >= 2, f"batch_size = {self.batch_size} must be at least 2")
        for name in ("steps", "window", "clusters", "max_tokens", "validate_every"):
            require(getattr(self, name) >= 1, f"{name} = {getattr(self, name)} must be at least 1")
        require(self.clusters <= 65_536, f"clusters = {self.clusters} must be at most 65536")
        require(self.order in ORDERS, f"order = {self.order!r} must be one of {', '.join(ORDERS)}")
        for name in NOT_NEGATIVE:
            value = getattr(self, name)
            require(0 <= value < math.inf, f"{name} = {value} must be a number from 0 up")
        require_weights(self.weights, zero=True)
        require_weights(self.starts_from, zero=False)
        require(self.dropout < 1, f"dropout = {self.dropout} must be below 1")
        trained = (self.num_layers and self.learning_rate) or self.table_learning_rate
        require(bool(trained), "nothing to train: no layers that learn, and table_learning_rate is 0")
        head = self.learning_rate > 0 or not self.objectives.predicts
        require(head, "learning_rate = 0 leaves the head untrained that predicts pieces")
        for name in ("prefixes", "layer_prefixes"):
            compared = self.objectives.contrasts or self.objectives.distils or not getattr(self, name)
            require(
                compared, f"{name} needs an objective that compares vectors: align, sim, sentence_ctl, distil or co"
            )
        depth, last = self.layer_prefixes, self.num_layers
        good_depth = not depth or (min(depth) >= 0 and max(depth) == last)
        require(good_depth, f"layer_prefixes = {list(depth)} must lie between 0 and num_layers = {last}, and name it")


@dataclass(frozen=True)
class Recipe:
    """A whole training.

    Attributes:
        name: Name of the model.
        languages: Languages beside English.
        licence: Licence of the trained weights.
        attribution: Sources to name in the model card.
        dim: Sentence dimension.
        num_heads: Attention heads.
        ffn_dim: Inner size of the feed-forward blocks.
        activation: Of the feed-forward blocks: silu as in mao2021, or gelu as in BERT.
        norm_eps: What the norms add to a variance.
        teacher_layers: Layers of the teacher that the encoder's start as, from 0. Its width, heads, inner size,
            activation and norms are then the teacher's, whatever stands here.
        space: Name of the model whose vector space the vectors lie in, if they are distilled from one.
        max_length: Longest sentence that the encoder takes, in tokens.
        seed: Seed of everything.
        compile: Whether torch.compile makes the layers faster; it takes a minute at the start.
        precision: auto, 32-true or bf16-mixed; auto is bf16 where the processor has it.
        checkpoint_minutes: Minutes between checkpoints.
        corpus: The pairs.
        vocabulary: The pieces.
        stages: What is trained, in order.
    """

    name: str
    languages: tuple[str, ...]
    corpus: CorpusConfig
    stages: tuple[StageConfig, ...]
    licence: str = "unknown"
    attribution: tuple[str, ...] = ()
    dim: int = 512
    num_heads: int = 8
    ffn_dim: int = 1024
    activation: str = "silu"
    norm_eps: float = 1e-5
    teacher_layers: tuple[int, ...] = ()
    space: str | None = None
    max_length: int = 256
    seed: int = 1
    compile: bool = False
    precision: str = "auto"
    checkpoint_minutes: float = 5.0
    vocabulary: VocabularyConfig = VocabularyConfig()

    def __post_init__(self) -> None:
        require(len(self.languages) > 0, "languages is empty; name at least one beside English")
        require(len(self.stages) > 0, "no [[stage]]; a recipe needs at least one")
        names = [stage.name for stage in self.stages]
        require(len(set(names)) == len(names), f"stages need names of their own, not {', '.join(names)}")
        fits = self.num_heads > 0 and self.dim > 0 and self.dim % self.num_heads == 0
        require(fits, f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        for name in ("ffn_dim", "max_length"):
            require(getattr(self, name) >= 1, f"{name} = {getattr(self, name)} must be at least 1")
        require(self.activation in ACTIVATIONS, f"activation = {self.activation!r} must be gelu or silu")
        require(self.precision in PRECISIONS, f"precision = {self.precision!r} must be one of {', '.join(PRECISIONS)}")
        require(0 <= self.seed < 2**32, f"seed = {self.seed} must lie between 0 and 2^32")
        minutes = self.checkpoint_minutes
        require(0 <= minutes < math.inf, f"checkpoint_minutes = {minutes} must be a number from 0 up")
        for number, stage in enumerate(self.stages):
            later = ", ".join(name for name in stage.starts_from if name not in names[:number])
            require(not later, f"stage {stage.name!r} starts_from {later}, which is no stage before it")
            layers = len(self.teacher_layers) or stage.num_layers
            require(stage.num_layers <= layers, f"stage {stage.name!r} has more layers than teacher_layers, {layers}")
        if not self.teacher_layers:
            self.require_prefixes()

    def require_prefixes(self) -> None:
        """Refuse prefixes that do not fit the dimension.

        Raises:
            ValueError: They do not.
        """
        for stage in self.stages:
            good = not stage.prefixes or (min(stage.prefixes) > 0 and max(stage.prefixes) == self.dim)
            require(good, f"prefixes of stage {stage.name!r} must be above 0 and end with dim = {self.dim}")


def load_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises:
        DataError: The file is missing or no TOML, a setting is unknown (the nearest valid one is named), missing, or
            of the wrong type or range.
    """
    try:
        with open(path, "rb") as file:
            raw = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a TOML recipe: {error}") from error
    stages = tuple(section(path, "stage", StageConfig, stage) for stage in tables(path, raw.pop("stage", [])))
    return section(path, "", Recipe, raw | {"stages": stages})
