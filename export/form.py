"""The form of a bundle: how much of a checkpoint it holds, in which numbers, for which processors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xsent.export.quantization import Target
from xsent.train.checkpoint import Checkpoint
from xsent.train.model import ModelConfig

Precision = Literal["int8", "int4-table", "float32"]  # int4-table: 4 bits for the table, 8 for the layers


@dataclass(frozen=True)
class Form:
    """What is made of a checkpoint: the first of its layers, the first numbers of its vectors."""

    num_layers: int
    dim: int
    precision: Precision = "int8"
    target: Target = "portable"  # processors that the weights of the layers are made for

    @classmethod
    def whole(cls, config: ModelConfig, precision: Precision = "int8", target: Target = "portable") -> "Form":
        """All layers and dimensions of an encoder."""
        return cls(config.num_layers, config.dim, precision, target)


def trained_layers(checkpoint: Checkpoint) -> list[int]:
    """The layers that a checkpoint can be used with: all, those trained to stand alone, and none by a readout."""
    config = checkpoint.config
    none = [0] if config.readout else []
    return sorted({config.num_layers, *none, *_trained(checkpoint, "layers", "layer_prefixes")})


def trained_dims(checkpoint: Checkpoint) -> list[int]:
    """The dimensions that a checkpoint was trained to be cut to, and its own."""
    return sorted({checkpoint.config.dim, *_trained(checkpoint, "prefixes", "prefixes")})


def space_of(checkpoint: Checkpoint, form: Form) -> str | None:
    """The model whose vectors can be compared with those of a form; a part of a vector lies nowhere else."""
    space: str | None = checkpoint.about.get("space")
    return space if form.dim == checkpoint.config.dim else None


def _trained(checkpoint: Checkpoint, name: str, setting: str) -> Sequence[int]:
    """What stands alone beside the whole: as the bundle says that it was made of, or the last stage of its recipe."""
    stages = checkpoint.about.get("recipe", {}).get("stages") or [{}]
    told: Mapping[str, Sequence[int]] = checkpoint.about.get("trained", {name: stages[-1].get(setting) or ()})
    return told[name]
