"""The form of a bundle: how much of a checkpoint it holds, in which numbers, for which processors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

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
        floats: Linear layers that keep float32, by their names in the graph.
    """

    num_layers: int
    dim: int
    precision: Precision = "int8"
    target: Target = "portable"
    floats: frozenset[str] = frozenset()

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
    """The numbers of layers that a checkpoint can be used with.

    Beside all, and those that were trained to stand alone: none, if the table was trained alone and then stayed as it
    was under pre-norm layers, which only add to it.
    """
    stages, config = _stages(checkpoint), checkpoint.config
    layers = {config.num_layers, *(stages[-1].get("layer_prefixes") or () if stages else ())}
    alone = [number for number, stage in enumerate(stages) if stage["num_layers"] == 0]
    if config.norm == "pre" and alone:
        later = stages[alone[-1] + 1 :]
        if not any(stage.get("table_learning_rate") for stage in later):
            layers.add(0)
    return sorted(layers)


def trained_dims(checkpoint: Checkpoint) -> list[int]:
    """The dimensions that a checkpoint was trained to be cut to, and its own."""
    stages = _stages(checkpoint)
    return sorted({checkpoint.config.dim, *(stages[-1].get("prefixes") or () if stages else ())})


def _stages(checkpoint: Checkpoint) -> Sequence[Mapping[str, Any]]:
    """The stages of its recipe; a checkpoint that was made of a bundle has none."""
    stages: Sequence[Mapping[str, Any]] = checkpoint.about.get("recipe", {}).get("stages", [])
    return stages
