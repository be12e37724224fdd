"""What is asked of an export, and the form that is made to give it.

A form says how much of a checkpoint a bundle holds, in which numbers, for which processors.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torch import Tensor

from xsent.errors import DataError
from xsent.files.atomic import as_data_error
from xsent_export.quantization import FLOAT_LIMIT, HALF_LIMIT, NIBBLE_LIMIT, TABLE_LIMIT, WEIGHT_LIMITS, Target
from xsent_train.checkpoint import ABOUT, REMEDY, SPACES, Checkpoint
from xsent_train.model import ModelConfig

Precision = Literal["int8", "int4-table", "float32"]  # int4-table: 4 bits for the table, 8 for the layers
Format = Literal["bundle", "openvino", "onnx", "sentence-transformers", "web", "teacher"]
BUNDLES = ("bundle", "openvino")  # formats that are bundles
MATRICES = ("table.weight", "qkv.weight", "attention_out.weight", "ffn_in.weight", "ffn_out.weight")


@dataclass(frozen=True)
class Budget:
    """What an export may cost in the worst language: the least mean cosine, and the most points of P@1 lost."""

    cosine_mean: float = 0.995
    p1_loss: float = 0.5


@dataclass(frozen=True)
class BundleSpec:
    """What is made of a checkpoint: the first of its layers, the first numbers of its vectors."""

    num_layers: int
    dim: int
    precision: Precision = "int8"
    target: Target = "portable"  # processors that the weights of the layers are made for

    @classmethod
    def whole(cls, config: ModelConfig, precision: Precision = "int8", target: Target = "portable") -> "BundleSpec":
        """All layers and dimensions of an encoder."""
        return cls(config.num_layers, config.dim, precision, target)

    def shape(self, config: ModelConfig) -> ModelConfig:
        """The shape of the encoder that stops after its layers, inside one of this shape."""
        depths = tuple(depth for depth in config.depths if depth <= self.num_layers)
        return replace(config, num_layers=self.num_layers, depths=depths)

    def limit(self, weight: str) -> int:
        """The largest whole number that a weight of the encoder is rounded to, by its name."""
        if self.precision != "float32" and weight.startswith("readouts.") and weight.endswith(".weight"):
            return HALF_LIMIT
        if self.precision == "float32" or not weight.endswith(MATRICES):
            return FLOAT_LIMIT
        if weight != "table.weight":
            return WEIGHT_LIMITS[self.target]
        return NIBBLE_LIMIT if self.precision == "int4-table" else TABLE_LIMIT


def trained_layers(checkpoint: Checkpoint) -> list[int]:
    """The layers that a checkpoint can be used with as it is: all, and those trained to stand alone."""
    if checkpoint.config.depths:
        return list(checkpoint.config.depths)
    return sorted({checkpoint.config.num_layers, *_trained(checkpoint, "layers", "layer_prefixes")})


def trained_dims(checkpoint: Checkpoint) -> list[int]:
    """The dimensions that a checkpoint was trained to be cut to, and its own."""
    return sorted({checkpoint.config.dim, *_trained(checkpoint, "prefixes", "prefixes")})


def space_of(checkpoint: Checkpoint, form: BundleSpec) -> str | None:
    """The model whose vectors can be compared with those of a form; a part of a vector lies nowhere else."""
    space: str | None = checkpoint.about.get("space")
    return space if form.dim == checkpoint.config.dim else None


def spaces_of(checkpoint: Checkpoint, form: BundleSpec) -> dict[str, Tensor]:
    """The matrices into other models' spaces, by their names; whole vectors alone can be mapped."""
    whole = form.dim == checkpoint.config.dim
    names = [name for name in checkpoint.weights if whole and name.startswith(SPACES)]
    return {name.removeprefix(SPACES): checkpoint.weights[name] for name in sorted(names)}


def _trained(checkpoint: Checkpoint, name: str, setting: str) -> Sequence[int]:
    """What stands alone beside the whole: as the bundle says that it was made of, or the last stage of its recipe."""
    with as_data_error(checkpoint.path / ABOUT, REMEDY):
        stages = checkpoint.about.get("recipe", {}).get("stages") or [{}]
        told: Mapping[str, Sequence[int]] = checkpoint.about.get("trained", {name: stages[-1].get(setting) or ()})
        return [int(number) for number in told[name]]


@dataclass(frozen=True)
class ExportOptions:
    """The options of `xsent-export`, where each is explained; a DataError where they make no sense together."""

    format: Format = "bundle"
    precision: Precision | None = None  # None is int8, or as a bundle's own table asks for
    weights_only: bool = False
    target: Target = "portable"
    num_layers: int | None = None
    dim: int | None = None
    languages: Sequence[str] | None = None
    sample: Path | None = None
    gate_data: Path | None = None
    tolerance: float | None = None
    least_cosine: float | None = None  # to the trained vectors, the mean; by the precision unless given
    name: str | None = None
    force: bool = False
    tatoeba: Path | None = None
    tests: Path | None = None  # --eval

    def __post_init__(self) -> None:
        if self.precision == "float32" and self.target != "portable":
            raise DataError(f"--target {self.target} is for quantised weights; leave it out with --fp32")
        if self.weights_only and (self.format != "openvino" or self.precision == "float32"):
            raise DataError("--weights-only is for --format openvino with quantised weights")
        if bool(self.languages) != bool(self.sample):
            raise DataError("--languages and --sample belong together: pieces that are in none of the sample go")
        if useless := self._useless():
            raise DataError(f"{', '.join(useless)}: not for --format {self.format}; leave it out")
        if self.format == "sentence-transformers" and self.precision not in (None, "float32"):
            raise DataError("--format sentence-transformers is float32; leave --int8 and --int4-table out")

    def _useless(self) -> list[str]:
        """What was given that the format has no use for."""
        given: dict[str, object] = {"--tatoeba": self.tatoeba, "--eval": self.tests, "--force": self.force or None}
        if self.format == "teacher":
            given |= {"--layers": self.num_layers, "--dim": self.dim, "--languages": self.languages}
            given |= {"--name": self.name, "--tolerance": self.tolerance}
        return [] if self.format in BUNDLES else [name for name, value in given.items() if value is not None]

    def form(self, checkpoint: Checkpoint) -> BundleSpec:
        """The form that is asked for; a DataError where the checkpoint was not trained for it, says for what it was.

        Of no layers anything can be made, see `xsent_export.to_static`.
        """
        config = checkpoint.config
        for name, asked, trained, setting in (
            ("--layers", self.num_layers or None, trained_layers(checkpoint), "layer_prefixes"),
            ("--dim", self.dim, trained_dims(checkpoint), "prefixes"),
        ):
            if asked is not None and asked not in trained:
                known = " and ".join(map(str, trained)) + (" was" if len(trained) == 1 else " were")
                raise DataError(
                    f"{checkpoint.given}: {name} {asked} was not trained, {known}; train with {setting} to have others"
                )
        layers, dim = (config.num_layers if self.num_layers is None else self.num_layers), self.dim or config.dim
        # A table that was read from a bundle of 4 bits has no more in it.
        kept = checkpoint.about.get("precision") == "int4-table" and self.format != "sentence-transformers"
        precision = self.precision or ("int4-table" if kept and dim % 2 == 0 else "int8")
        if precision == "int4-table" and dim % 2:
            raise DataError(f"--int4-table needs an even number of dimensions, not {dim}")
        return BundleSpec(layers, dim, precision, self.target)

    def named(self, checkpoint: Checkpoint) -> Checkpoint:
        """A checkpoint by the name that is asked for."""
        return replace(checkpoint, about={**checkpoint.about, "name": self.name or checkpoint.name})

    def budget(self, precision: Precision) -> Budget:
        """What may be lost."""
        # With 4 bits vectors move; what they find must not.
        usual = 0.98 if precision == "int4-table" else Budget.cosine_mean
        least = usual if self.least_cosine is None else self.least_cosine
        return Budget(least, Budget.p1_loss if self.tolerance is None else self.tolerance)

    @property
    def command(self) -> str:
        """The command that asks for this, without the names of files."""
        options: dict[str, object] = {
            "format": self.format if self.format != "bundle" else None,
            (self.precision or "").replace("float32", "fp32"): "" if self.precision else None,
            "weights-only": "" if self.weights_only else None,
            "target": self.target if self.target != "portable" else None,
            "layers": self.num_layers,
            "dim": self.dim,
            "languages": ",".join(self.languages) if self.languages else None,
            "sample": "TEXT" if self.sample else None,
            "gate-data": "PAIRS" if self.gate_data else None,
            "tolerance": self.tolerance,
        }
        words = (f"--{name} {value}".rstrip() for name, value in options.items() if value is not None)
        return " ".join(["xsent-export CHECKPOINT OUT", *words])


DEFAULTS = ExportOptions()
