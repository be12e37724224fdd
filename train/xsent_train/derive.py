"""Checkpoints derived from others: from a bundle, with fewer layers, with another table, as the mean of several."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from xsent.backends.numpy import unpack_rows
from xsent.bundle import MANIFEST, Bundle, added_spaces, builtin_path, file_digest
from xsent.errors import BundleError, DataError
from xsent_train.checkpoint import (
    ABOUT,
    AXES,
    MODEL,
    QUANTIZED,
    ROUNDING,
    SCALES,
    SMOOTHING,
    SPACES,
    TABLE,
    TEACHERS,
    Checkpoint,
    load_checkpoint,
    read_about,
)
from xsent_train.model import Encoder, ModelConfig
from xsent_train.recipe import LAYER_SHAPE, Recipe

PLACES = ("encoder.readouts.", TEACHERS)  # prefixes of weights that belong to certain axes
BUILTIN = "builtin"
CARD, SOURCES = "README.md", "Trained on text from:"


def model_path(model: Path) -> Path:
    """The folder of a model; `builtin` is the built-in bundle, unless there is a folder of that name."""
    return builtin_path() if model == Path(BUILTIN) and not model.exists() else model


def identify(model: Path) -> tuple[list[str], str]:
    """The languages of a bundle or a checkpoint, and its identity. Raises DataError if it is neither."""
    if (model / MANIFEST).is_file():
        bundle = Bundle.open(model)
        return list(bundle.languages), bundle.fingerprint
    if (model / ABOUT).is_file():
        return list(read_about(model)["languages"]), file_digest(model / MODEL)[:16]
    raise DataError(f"{model}: neither a bundle nor a checkpoint; expected a folder with {MANIFEST} or {ABOUT}")


def open_checkpoint(model: Path) -> Checkpoint:
    """Read a checkpoint, or a bundle as one. Raises DataError or BundleError."""
    return checkpoint_from_bundle(model) if (model / MANIFEST).is_file() else load_checkpoint(model)


def open_start(recipe: Recipe, path: Path) -> Checkpoint:
    """Open the checkpoint or bundle that a run starts from. Raises DataError if its shape differs from the recipe."""
    start = open_checkpoint(path)
    for name in ("dim", *LAYER_SHAPE) if start.config.num_layers else ("dim",):
        actual, wanted = getattr(start.config, name), getattr(recipe, name)
        if actual != wanted:
            raise DataError(f"{path} has {name} = {actual}, the recipe {wanted}; to start from it, use the same value")
    return start


def checkpoint_from_bundle(bundle: Path) -> Checkpoint:
    """A bundle, of any precision and number of layers, as a checkpoint.

    Weights of 4 and 8 bits are decoded; exported again, the table is the same to the byte. Like the bundle, this
    checkpoint has no held-out pairs. Raises BundleError if the bundle is damaged.
    """
    opened = Bundle.open(bundle)
    opened.verify()
    try:
        weights = BundleWeights(opened)
        state = {f"encoder.{name}": weight for name, weight in weights.state()} | weights.quantized()
        state |= {f"{SPACES}{name}": torch.tensor(opened.floats(f"space.{name}")) for name in opened.spaces}
    except (LookupError, ValueError, TypeError) as error:
        raise BundleError(f"{bundle}: cannot be read back ({error})") from error
    about = {
        "name": opened.name,
        "languages": list(opened.languages),
        "licence": opened.licence,
        "attribution": _attribution(opened),
        "model": asdict(weights.config),
        "trained": opened.trained._asdict(),
        "space": opened.space,
        "added_spaces": added_spaces(opened.spaces, opened.files),
        "precision": opened.precision,
        "step": 0,
    }
    return Checkpoint(bundle, about, state)


def keep_layers(checkpoint: Checkpoint, numbers: Sequence[int]) -> Checkpoint:
    """The checkpoint reduced to these layers, counted from 0, without readouts, which read other layers' states.

    Raises DataError if it has fewer layers.
    """
    has = checkpoint.config.num_layers
    if numbers[-1] >= has:
        raise DataError(f"{checkpoint.path}: has {has} layers; keep_layers names {numbers[-1]}, counted from 0")
    layer = re.compile(r"encoder\.layers\.(\d+)\.(.+)")
    weights: dict[str, Tensor] = {}
    for name, weight in checkpoint.weights.items():
        if not (match := layer.fullmatch(name)):
            weights |= {} if name.startswith((*QUANTIZED, "encoder.readouts.")) else {name: weight}
        elif (number := int(match[1])) in numbers:
            weights[f"encoder.layers.{numbers.index(number)}.{match[2]}"] = weight
    model = {**checkpoint.about["model"], "num_layers": len(numbers), "depths": ()}
    return replace(checkpoint, about={**checkpoint.about, "model": model}, weights=weights)


def with_table(checkpoint: Checkpoint, table: Tensor, languages: Sequence[str]) -> Checkpoint:
    """The checkpoint with another table, without its heads and the matrices of teachers."""
    prefixes = ("encoder.", *QUANTIZED, SPACES)
    kept = {name: weight for name, weight in checkpoint.weights.items() if name.startswith(prefixes)}
    model = {**checkpoint.about["model"], "vocab_size": len(table)}
    about = {**checkpoint.about, "model": model, "languages": list(languages)}
    return replace(checkpoint, about=about, weights={**kept, TABLE: table})


def average_checkpoints(checkpoints: Sequence[Checkpoint], shares: Sequence[float | Sequence[float]]) -> Checkpoint:
    """The mean of checkpoints of one training, in the weights that all of them have (Wortsman et al. 2022).

    Each has one share, or one for its table and one for each layer: a readout counts as the layer that it reads, and
    everything else as the table. Shares need not add up to 1; where a share is 0, the weights may be missing. Readouts
    map into the space of certain axes: if some checkpoints know their axes, the mean takes only their readouts. All
    other facts, such as the number of layers, come from the shallowest checkpoint.

    Raises DataError if the number of shares does not fit the layers of a checkpoint.
    """
    shallowest = min(checkpoints, key=lambda checkpoint: checkpoint.config.num_layers)
    parts = list(zip(shares, checkpoints, strict=True))
    for share, c in parts:
        if not isinstance(share, int | float) and len(share) != c.config.num_layers + 1:
            text = f"{c.path}: has {c.config.num_layers} layers; starts_from gives it {len(share)} shares"
            raise DataError(f"{text}, expected one for the table and one for each layer")
    weights = {}
    for name in sorted({name for c in checkpoints for name in c.weights}):
        members = [(own, c) for share, c in parts if (own := _share_of(name, share))]
        if name.startswith(PLACES):
            members = [(own, c) for own, c in members if AXES in c.weights] or members
        if members and all(name in c.weights for _, c in members):
            total = sum(own for own, _ in members)
            weights[name] = sum((own / total * c.weights[name] for own, c in members), torch.zeros(()))
    return replace(shallowest, weights=weights)


def _share_of(name: str, share: float | Sequence[float]) -> float:
    """The share of a checkpoint in the mean of a weight; for layers that it lacks, the share of its last layer."""
    if isinstance(share, int | float):
        return share
    match = re.match(r"encoder\.(layers|readouts)\.(\d+)\.", name)
    depth = int(match[2]) + (match[1] == "layers") if match else 0
    return share[min(depth, len(share) - 1)]


class BundleWeights:
    """The weights of a bundle, by their names in its encoder."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._tensors = bundle.network.tensors

    @cached_property
    def config(self) -> ModelConfig:
        """The shape of the encoder. Raises ValueError if the bundle has truncated vectors."""
        bundle, network = self._bundle, self._bundle.network
        width = unpack_rows(bundle.mapped("table")[:0], None).shape[1]
        if width > bundle.dim:
            raise ValueError(f"its vectors were truncated from {width} to {bundle.dim} numbers; use its checkpoint")
        layers = bundle.num_layers
        depths = bundle.depths if any(name.startswith("readout") for name in self._tensors) else ()
        return ModelConfig(
            vocab_size=bundle.vocab_size,
            dim=bundle.dim,
            num_layers=layers,
            num_heads=network.heads if layers or depths else 1,
            ffn_dim=bundle.mapped("layer0.ffn_in.weight").shape[1] if layers else 2 * bundle.dim,
            max_length=bundle.max_length,
            activation=network.activation,
            norm_eps=network.norm_eps,
            first=network.first,
            last=network.last,
            depths=depths,
        )

    def state(self) -> Iterator[tuple[str, Tensor]]:
        """The weights by their names in the encoder. Raises LookupError or ValueError if they do not fit it."""
        expected = Encoder.empty(self.config).state_dict()  # only names and shapes
        for name, weight in expected.items():
            values = self.read(name)
            if values.shape != weight.shape or not np.isfinite(values).all():
                raise ValueError(f"{name} should be finite numbers of shape {list(weight.shape)}")
            yield name, torch.tensor(values)

    def quantized(self) -> dict[str, Tensor]:
        """What linear layers in 8 bits were quantised with, so that an export can do it again in the same way.

        Smoothing factors [inputs], scales of the weights [outputs], and the step and the zero point of inputs [2].
        """
        found = {
            prefix + place[: -len(prefix)]: torch.tensor(self._bundle.floats(place))
            for prefix in (SMOOTHING, SCALES)
            for place in self._tensors
            if place.startswith("layer") and place.endswith(f".{prefix[:-1]}")
        }
        fixed = {name: grid for name, grid in self._bundle.network.rounding.items() if not grid.by_token}
        return found | {ROUNDING + name: torch.tensor([grid.step, grid.zero]) for name, grid in fixed.items()}

    def _factors(self, name: str) -> NDArray[np.float32]:
        """The smoothing factors of the inputs of a weight [inputs], or one for all inputs [1]."""
        smoothing = f"{_place(name).removesuffix('.weight')}.smoothing"
        known = name.endswith(".weight") and smoothing in self._tensors
        return self._bundle.floats(smoothing) if known else np.ones(1, np.float32)

    def read(self, name: str) -> NDArray[np.float32]:
        """A weight in the encoder's layout. Raises LookupError if it is missing."""
        place = _place(name)
        if name.endswith(".query") and place not in self._tensors:  # the plain mean
            return np.zeros(self._bundle.dim, np.float32)
        values: NDArray[np.float32] = self._bundle.mapped(place)
        if values.dtype == np.float16:  # a readout
            values = values.astype(np.float32)
        elif values.dtype != np.float32:
            # Exported again, this gives the same bytes: s = a / 127 survives 127 s / 127, though not every float does.
            scales = self._bundle.mapped(f"{place.removesuffix('.weight')}.scales")
            values = unpack_rows(values, scales) if place == "table" else values * scales
        if ".qkv." in name:  # the scale of the attention scores is folded into the queries
            dim = values.shape[-1] // 3
            gain = np.ones(3 * dim, np.float32)
            gain[:dim] = (dim // self._bundle.network.heads) ** -0.5
            values = np.divide(values, gain, dtype=np.float32)
        return values.T * self._factors(name) if name.startswith(("layers.", "readouts.")) else values


def _place(name: str) -> str:
    """The name in the graph for a weight of the encoder."""
    return "table" if name == "table.weight" else name.replace("layers.", "layer").replace("readouts.", "readout")


def _attribution(bundle: Bundle) -> list[str]:
    """The sources that a bundle's card names; a model trained from the bundle must name them too."""
    card = bundle.path / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    listed = text.partition(SOURCES)[2].strip().partition("\n\n")[0]
    return [line.removeprefix("- ") for line in listed.splitlines()]
