"""Recipes: one TOML file says everything that a training does."""

import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from xsent.errors import DataError

T = TypeVar("T")

ORDERS = ("random", "length", "cluster")
PRECISIONS = ("auto", "32-true", "bf16-mixed")


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


@dataclass(frozen=True)
class VocabularyConfig:
    """The joint SentencePiece vocabulary: its pieces, and about how many sentences it is trained on."""

    size: int = 48_000
    sentences: int = 2_000_000


@dataclass(frozen=True)
class StageConfig:
    """One stage of training; it starts from the encoder that the stage before it left.

    Attributes:
        name: Name of the stage, also of its checkpoint folder.
        num_layers: Layers above the table.
        steps: Optimiser steps.
        batch_size: Pairs in a step.
        order: What a window is ordered by before it is cut into batches: random, length, or cluster (hard negatives).
        window: Batches drawn together.
        clusters: Clusters for `order = "cluster"`.
        max_tokens: Tokens kept of a sentence in training.
        learning_rate: Peak rate of the layers and the generative head.
        residual_rate: Factor of that rate for the projections that write onto the table's vectors. They start at zero,
            and at the full rate they bury within a hundred steps what the table knows.
        table_learning_rate: Peak rate of the token table; 0 freezes it.
        warmup: Steps of linear warm-up, before a cosine to zero.
        weight_decay: AdamW's, on matrices other than the table.
        clip: Largest norm of the gradients; 0 does not clip.
        dropout: Share of activations dropped in the layers.
        align: Weight of the contrastive objective.
        temperature: Its temperature; 0 is the paper's inner product.
        margin: Its additive margin.
        ignore_above: Cosine above which two pairs are no negatives of each other; 1 ignores equal English sides only.
        prefixes: Dimensions that are trained to stand alone (Matryoshka); the full dimension among them.
        sim: Weight of the similarity objective.
        ugt: Weight of the generative objective.
        validate_every: Steps between validations.
    """

    name: str
    num_layers: int
    steps: int
    batch_size: int = 512
    order: str = "random"
    window: int = 64
    clusters: int = 4096
    max_tokens: int = 200
    learning_rate: float = 3e-4
    residual_rate: float = 0.1
    table_learning_rate: float = 0.0
    warmup: int = 100
    weight_decay: float = 0.01
    clip: float = 1.0
    dropout: float = 0.0
    align: float = 1.0
    temperature: float = 0.05
    margin: float = 0.0
    ignore_above: float = 1.0
    prefixes: tuple[int, ...] = ()
    sim: float = 0.0
    ugt: float = 0.0
    validate_every: int = 500


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
        max_length: Longest sentence that the encoder takes, in tokens.
        seed: Seed of everything.
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
    max_length: int = 256
    seed: int = 1
    precision: str = "auto"
    checkpoint_minutes: float = 5.0
    vocabulary: VocabularyConfig = VocabularyConfig()


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
    stages = raw.pop("stage", [])
    parts: dict[str, Any] = {
        "corpus": section(path, "corpus", CorpusConfig, raw.pop("corpus", {})),
        "vocabulary": section(path, "vocabulary", VocabularyConfig, raw.pop("vocabulary", {})),
        "stages": tuple(section(path, "stage", StageConfig, stage) for stage in stages),
    }
    recipe = section(path, "the top level", Recipe, raw | parts)
    check(path, recipe)
    return recipe


def section(path: Path, name: str, kind: type[T], values: object) -> T:
    """Build one part of a recipe from its TOML table, naming what is unknown, missing or of the wrong type."""
    if not isinstance(values, Mapping):
        raise DataError(f"{path}: [{name}] must be a table of settings, not {values!r}")
    known = {f.name: f for f in fields(kind)}  # type: ignore[arg-type]
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
            raise DataError(f"{path}: unknown setting {key!r} in [{name}]{hint}")
    settings: dict[str, Any] = {}
    for key, setting in known.items():
        if key in values:
            settings[key] = convert(path, f"{name}.{key}", get_type_hints(kind)[key], values[key])
        elif setting.default is MISSING and setting.default_factory is MISSING:
            raise DataError(f"{path}: setting {key!r} is missing in [{name}]")
    return kind(**settings)


def convert(path: Path, name: str, hint: Any, value: object) -> Any:  # noqa: ANN401  a type, and a value of it
    """A TOML value as the type of its setting."""
    kind = get_origin(hint) or hint
    if kind is tuple and isinstance(value, list | tuple):
        return tuple(convert(path, name, get_args(hint)[0], item) for item in value)
    if kind is float and type(value) is int:
        return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DataError(f"{path}: {name} = {value!r} must be of type {kind.__name__.lower()}")
    return value


def check(path: Path, recipe: Recipe) -> None:
    """Refuse a recipe that cannot be trained."""
    if not recipe.stages:
        raise DataError(f"{path}: no [[stage]]; a recipe needs at least one")
    if not recipe.corpus.files:
        raise DataError(f"{path}: corpus.files is empty; name at least one file of pairs")
    choices = [("precision", recipe.precision, PRECISIONS)]
    choices += [(f"{stage.name}.order", stage.order, ORDERS) for stage in recipe.stages]
    for name, value, allowed in choices:
        if value not in allowed:
            raise DataError(f"{path}: {name} = {value!r} must be one of {', '.join(allowed)}")
    if not 256 < recipe.vocabulary.size <= 65_536:
        raise DataError(f"{path}: vocabulary.size = {recipe.vocabulary.size} must lie between 257 and 65536")
    for stage in recipe.stages:
        if stage.batch_size < 2 or stage.steps < 1 or stage.window < 1:
            raise DataError(f"{path}: stage {stage.name!r} needs batch_size >= 2, steps >= 1 and window >= 1")
        if any(not 0 < prefix <= recipe.dim for prefix in stage.prefixes):
            raise DataError(f"{path}: prefixes of stage {stage.name!r} must lie between 1 and dim = {recipe.dim}")
        if not (stage.align or stage.sim or stage.ugt):
            raise DataError(f"{path}: stage {stage.name!r} has no objective; give align, sim or ugt a weight")
