"""The form of a bundle: how much of a checkpoint it holds, in which numbers, for which processors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from xsent.errors import DataError
from xsent.export.quantization import Target
from xsent.train.checkpoint import Checkpoint
from xsent.train.model import ModelConfig

Precision = Literal["int8", "int4-table", "float32"]


@dataclass(frozen=True)
class Form:
    """What is made of a checkpoint.

    Attributes:
        num_layers: Layers kept, from the first.
        dim: Numbers kept of a vector, from the first.
        precision: "int8", "int4-table" (4 bits for the table, 8 for the layers) or "float32".
        target: Processors that the weights of the layers are made for.
    """

    num_layers: int
    dim: int
    precision: Precision = "int8"
    target: Target = "portable"

    @classmethod
    def whole(cls, config: ModelConfig, precision: Precision = "int8") -> "Form":
        """All layers and dimensions of an encoder."""
        return cls(config.num_layers, config.dim, precision)


def choose_form(
    checkpoint: Checkpoint,
    *,
    precision: Precision = "int8",
    target: Target = "portable",
    num_layers: int | None = None,
    dim: int | None = None,
) -> Form:
    """The form that is asked for.

    Args:
        checkpoint: What is exported.
        precision: See `Form`.
        target: See `Form`.
        num_layers: Layers; all unless given.
        dim: Dimensions; all unless given.

    Raises:
        DataError: The checkpoint was not trained for so many layers or dimensions; names those it was trained for.
    """
    config = checkpoint.config
    for name, asked, trained in (
        ("--layers", num_layers, trained_layers(checkpoint)),
        ("--dim", dim, trained_dims(checkpoint)),
    ):
        if asked is not None and asked not in trained:
            known = " and ".join(str(number) for number in trained) + (" was" if len(trained) == 1 else " were")
            raise DataError(
                f"{checkpoint.given}: {name} {asked} was not trained, {known}; "
                f"train with {'layer_prefixes' if name == '--layers' else 'prefixes'} to have others"
            )
    if precision == "int4-table" and (dim or config.dim) % 2:
        raise DataError(f"--int4-table needs an even number of dimensions, not {dim or config.dim}")
    layers = config.num_layers if num_layers is None else num_layers
    return Form(layers, config.dim if dim is None else dim, precision, target)


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
