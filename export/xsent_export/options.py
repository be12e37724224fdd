"""The options of an export, and the bundle that they ask for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from torch import Tensor

from xsent.errors import DataError
from xsent.files.atomic import as_data_error
from xsent_export.quantization import FLOAT_LIMIT, HALF_LIMIT, NIBBLE_LIMIT, TABLE_LIMIT, WEIGHT_LIMIT
from xsent_train.checkpoint import ABOUT, REMEDY, SPACES, Checkpoint
from xsent_train.model import ModelConfig

Precision = Literal["int8", "int4-table", "float32"]  # int4-table: 4 bits for the table, 8 for the layers
Format = Literal["bundle", "openvino", "onnx", "sentence-transformers", "web", "gguf", "teacher"]
BUNDLES = ("bundle", "openvino")  # formats that are bundles
MATRICES = ("table.weight", "qkv.weight", "attention_out.weight", "ffn_in.weight", "ffn_out.weight")


@dataclass(frozen=True)
class Budget:
    """The loss that an export may cause in the worst language."""

    cosine_mean: float = 0.995  # least mean cosine to the trained vectors
    p1_loss: float = 0.5  # points of P@1


@dataclass(frozen=True)
class BundleSpec:
    """The part of an encoder that a bundle holds, and the precision of its weights."""

    num_layers: int  # the first layers
    dim: int  # the first numbers of a vector
    precision: Precision = "int8"

    @classmethod
    def whole(cls, config: ModelConfig, precision: Precision = "int8") -> "BundleSpec":
        """All layers and dimensions of an encoder."""
        return cls(config.num_layers, config.dim, precision)

    def shape(self, config: ModelConfig) -> ModelConfig:
        """The ModelConfig, cut to `num_layers` layers."""
        depths = tuple(depth for depth in config.depths if depth <= self.num_layers)
        return replace(config, num_layers=self.num_layers, depths=depths)

    def limit(self, weight: str) -> int:
        """The largest integer that a weight of the encoder is rounded to, by its name."""
        if self.precision != "float32" and weight.startswith("readouts.") and weight.endswith(".weight"):
            return HALF_LIMIT
        if self.precision == "float32" or not weight.endswith(MATRICES):
            return FLOAT_LIMIT
        if weight != "table.weight":
            return WEIGHT_LIMIT
        return NIBBLE_LIMIT if self.precision == "int4-table" else TABLE_LIMIT


def trained_depths(checkpoint: Checkpoint) -> list[int]:
    """The depths that a checkpoint can be exported to: all layers, and those trained to stand alone."""
    if checkpoint.config.depths:
        return list(checkpoint.config.depths)
    return sorted({checkpoint.config.num_layers, *_trained(checkpoint, "layers", "layer_prefixes")})


def trained_dims(checkpoint: Checkpoint) -> list[int]:
    """The numbers of dimensions that a checkpoint can be exported with."""
    return sorted({checkpoint.config.dim, *_trained(checkpoint, "prefixes", "prefixes")})


def _trained(checkpoint: Checkpoint, name: str, setting: str) -> list[int]:
    """Trained sub-sizes, from the bundle's manifest or the last stage of the recipe."""
    with as_data_error(checkpoint.path / ABOUT, REMEDY):
        stages = checkpoint.about.get("recipe", {}).get("stages") or [{}]
        trained: Mapping[str, Sequence[int]] = checkpoint.about.get("trained", {name: stages[-1].get(setting) or ()})
        return [int(number) for number in trained[name]]


def space_of(checkpoint: Checkpoint, spec: BundleSpec) -> str | None:
    """The model whose vectors can be compared with those of the bundle; None if vectors are cut."""
    space: str | None = checkpoint.about.get("space")
    return space if spec.dim == checkpoint.config.dim else None


def spaces_of(checkpoint: Checkpoint, spec: BundleSpec) -> dict[str, Tensor]:
    """The matrices into other models' spaces, by their names; none if vectors are cut."""
    if spec.dim != checkpoint.config.dim:
        return {}
    names = sorted(name for name in checkpoint.weights if name.startswith(SPACES))
    return {name.removeprefix(SPACES): checkpoint.weights[name] for name in names}


@dataclass(frozen=True)
class ExportOptions:
    """The options of `xsent-export`, which explains each; raises DataError if they contradict each other."""

    format: Format = "bundle"
    precision: Precision | None = None  # None: int8, or int4-table for a bundle whose table has 4 bits
    num_layers: int | None = None
    dim: int | None = None
    languages: Sequence[str] | None = None
    sample: Path | None = None
    gate_data: Path | None = None
    tolerance: float | None = None
    least_cosine: float | None = None  # least mean cosine to the trained vectors; None: by the precision
    name: str | None = None
    force: bool = False
    tatoeba: Path | None = None
    tests: Path | None = None  # --eval

    def __post_init__(self) -> None:
        if bool(self.languages) != bool(self.sample):
            raise DataError(
                "--languages and --sample belong together, give both; "
                "pieces that do not occur in the sample are removed"
            )
        given: dict[str, object] = {"--tatoeba": self.tatoeba, "--eval": self.tests, "--force": self.force or None}
        if self.format == "teacher":
            given |= {"--layers": self.num_layers, "--dim": self.dim, "--languages": self.languages}
            given |= {"--name": self.name, "--tolerance": self.tolerance}
        useless = [option for option, value in given.items() if value is not None]
        if useless and self.format not in BUNDLES:
            raise DataError(f"{', '.join(useless)}: not for --format {self.format}; leave it out")
        if self.format == "sentence-transformers" and self.precision not in (None, "float32"):
            raise DataError("--format sentence-transformers is float32; leave --int8 and --int4-table out")

    def spec(self, checkpoint: Checkpoint) -> BundleSpec:
        """The bundle to make; raises DataError if the checkpoint was not trained for it, and names what it has."""
        num_layers = checkpoint.config.num_layers if self.num_layers is None else self.num_layers
        dim = self.dim or checkpoint.config.dim
        _check_trained(checkpoint, "--layers", num_layers, trained_depths(checkpoint), "layer_prefixes")
        _check_trained(checkpoint, "--dim", dim, trained_dims(checkpoint), "prefixes")
        # The numbers of a table that was read from 4 bits fit into 4 bits again.
        four_bits = checkpoint.about.get("precision") == "int4-table" and self.format != "sentence-transformers"
        precision = self.precision or ("int4-table" if four_bits and dim % 2 == 0 else "int8")
        if precision == "int4-table" and dim % 2:
            raise DataError(f"--int4-table needs an even number of dimensions, not {dim}")
        return BundleSpec(num_layers, dim, precision)

    def named(self, checkpoint: Checkpoint) -> Checkpoint:
        """The checkpoint under the name that was asked for."""
        return replace(checkpoint, about={**checkpoint.about, "name": self.name or checkpoint.name})

    def budget(self, precision: Precision) -> Budget:
        """The loss that is allowed."""
        # With 4 bits vectors move further; the sentences that they find must stay.
        usual = 0.98 if precision == "int4-table" else Budget.cosine_mean
        least = usual if self.least_cosine is None else self.least_cosine
        return Budget(least, Budget.p1_loss if self.tolerance is None else self.tolerance)

    @property
    def command(self) -> str:
        """The command that asks for this, without the names of files."""
        options: dict[str, object] = {
            "format": self.format if self.format != "bundle" else None,
            (self.precision or "").replace("float32", "fp32"): "" if self.precision else None,
            "layers": self.num_layers,
            "dim": self.dim,
            "languages": ",".join(self.languages) if self.languages else None,
            "sample": "TEXT" if self.sample else None,
            "gate-data": "PAIRS" if self.gate_data else None,
            "tolerance": self.tolerance,
        }
        words = (f"--{name} {value}".rstrip() for name, value in options.items() if value is not None)
        return " ".join(["xsent-export CHECKPOINT OUT", *words])


def _check_trained(checkpoint: Checkpoint, option: str, asked: int, trained: Sequence[int], setting: str) -> None:
    if asked in trained:
        return
    known = " and ".join(map(str, trained)) + (" was" if len(trained) == 1 else " were")
    table = "; the recipe static.toml trains a table without layers" if option == "--layers" and asked == 0 else ""
    raise DataError(
        f"{checkpoint.given}: {option} {asked} was not trained, {known}; train with {setting} to have others{table}"
    )


DEFAULTS = ExportOptions()
