"""Checkpoints: folders that hold an encoder and all that belongs to it, written whole or not at all, without pickle.

`checkpoint.json` (name, languages, shape, recipe, and the SHA-256 of the other files), `model.safetensors`
(`encoder.*`, and `head.*` where pieces are predicted), `sentencepiece.model`, `validation.tsv`, and
`optimizer.safetensors` until a stage ends.
"""

import errno
import hashlib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from xsent.backends.numpy import unpack_rows
from xsent.bundle import MANIFEST, Bundle, file_digest
from xsent.clean import remove_format
from xsent.errors import BundleError, DataError
from xsent.files.atomic import as_data_error, as_write_error, atomic_folder, read_json, to_json
from xsent_train.model import Encoder, ModelConfig
from xsent_train.tokens import open_tokenizer

FORMAT_VERSION = 3
ABOUT, MODEL, OPTIMIZER = "checkpoint.json", "model.safetensors", "optimizer.safetensors"
TOKENIZER, VALIDATION = "sentencepiece.model", "validation.tsv"
TABLE = "encoder.table.weight"
TEACHERS = "teachers."  # before the names of matrices of several teachers
AXES = f"{TEACHERS}axes"  # from their vectors to those of the encoder
PLACES = ("encoder.readouts.", TEACHERS)  # before the names of weights that belong to certain axes
SPACES = "spaces."  # before the names of models into whose spaces such weights map vectors [D, D]
CARD, SOURCES = "README.md", "Trained on text from:"
SMOOTHING = "smoothing."  # before the names of such weights of a checkpoint, see `xsent_export.quantization`
REQUIRED: Mapping[str, type] = {"name": str, "languages": list, "licence": str, "step": int, "model": dict}
FIELDS = {**REQUIRED, "recipe": dict, "trained": dict, "attribution": list, "sha256": dict}
REMEDY = "take another checkpoint, or train it again"


@dataclass(frozen=True)
class Checkpoint:
    """A trained encoder with its facts."""

    path: Path  # its folder, or that of the bundle that it was made of
    about: Mapping[str, Any]  # all of `checkpoint.json`
    weights: Mapping[str, Tensor]  # tensors by name, `encoder.*`, `head.*` and `spaces.*`
    vocabulary: Path | None = None  # its SentencePiece model, where it has another than the folder

    @property
    def name(self) -> str:
        """Name of the model."""
        return str(self.about["name"])

    @property
    def languages(self) -> list[str]:
        """Languages that the encoder was trained on, English first."""
        return list(self.about["languages"])

    @property
    def licence(self) -> str:
        """Licence of the weights."""
        return str(self.about["licence"])

    @property
    def step(self) -> int:
        """Optimiser steps of its stage."""
        return int(self.about["step"])

    @property
    def config(self) -> ModelConfig:
        """Shape of the encoder."""
        return ModelConfig(**self.about["model"])

    @property
    def tokenizer(self) -> Path:
        """SentencePiece model."""
        return self.vocabulary or self.path / TOKENIZER

    def load_tokenizer(self) -> spm.SentencePieceProcessor:
        """Open the SentencePiece model; raises DataError if it is damaged or belongs to another encoder."""
        with as_data_error(self.tokenizer, REMEDY):
            processor = open_tokenizer(self.tokenizer)
            if (pieces := processor.get_piece_size()) != (rows := self.config.vocab_size):
                raise ValueError(f"it has {pieces} pieces, the table {rows} rows")
            return processor

    @property
    def validation(self) -> Path:
        """Held-out pairs, in the layout of a corpus."""
        return self.path / VALIDATION

    def load_encoder(self, num_layers: int | None = None) -> Encoder:
        """Build the encoder, or its first layers, with these weights, in evaluation mode."""
        prefix, layers = "encoder.", self.config.num_layers
        state = {name.removeprefix(prefix): w.float() for name, w in self.weights.items() if name.startswith(prefix)}
        if layers > len(state):
            raise ValueError(f"{layers} layers cannot be in {len(state)} weights")
        with torch.device("meta"):  # allocates nothing, whatever a damaged shape asks for
            encoder = Encoder(self.config)
        encoder.load_state_dict(state, assign=True)
        return encoder.eval() if num_layers is None else encoder.eval().first(num_layers)

    def with_encoder(self, encoder: Encoder) -> "Checkpoint":
        """A checkpoint of the same tokenizer with another encoder alone."""
        weights = {f"encoder.{name}": weight for name, weight in encoder.state_dict().items()}
        return replace(self, about={**self.about, "model": asdict(encoder.config)}, weights=weights)


def save_checkpoint(
    path: Path,
    about: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor] | None,
    files: Sequence[Path],
) -> None:
    """Write a checkpoint of weights and optimiser state by name, the latter None for a finished stage.

    `about` has name, languages, licence, model, step and whatever else should be known; the files are the tokenizer
    and the validation pairs. Raises DataError if it cannot be written; then nothing is left behind.
    """
    remedy = "make room and run the same command again, it resumes from the checkpoint before"
    with as_write_error(path, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(path) as folder:
            save_tensors(weights, folder / MODEL)
            if optimizer is not None:
                save_tensors(optimizer, folder / OPTIMIZER)
            for file in files:
                shutil.copy(file, folder)
            digests = {ABOUT: _shape_digest(about)}
            digests |= {file.name: file_digest(file) for file in sorted(folder.iterdir())}
            (folder / ABOUT).write_bytes(to_json({"format_version": FORMAT_VERSION, **about, "sha256": digests}))


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors. Raises OSError if they cannot be written."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # which has the number of the error in its text alone
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else errno.EIO, str(error), str(path)) from error


def read_about(path: Path) -> dict[str, Any]:
    """The facts in `checkpoint.json`; raises DataError if the folder is no checkpoint or has an unknown version."""
    if not (path / ABOUT).is_file():
        raise DataError(f"{path}: no {ABOUT} in it; expected a checkpoint of xsent-train, or a bundle")
    about = read_json(path / ABOUT, REMEDY)
    if (version := about.get("format_version")) != FORMAT_VERSION:
        raise DataError(f"{path}: checkpoint of version {version}; this xsent reads version {FORMAT_VERSION}; {REMEDY}")
    with as_data_error(path / ABOUT, REMEDY):
        for name, kind in FIELDS.items():
            if not isinstance(about[name] if name in REQUIRED else about.get(name, kind()), kind):
                raise TypeError(f"{name!r} is of type {type(about[name]).__name__}, expected {kind.__name__}")
        if not all(isinstance(language, str) for language in about["languages"]):
            raise TypeError("'languages' are not all codes")
    return about


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises DataError as `read_about` does, and if it is damaged."""
    about = read_about(path)
    for name in (ABOUT, TOKENIZER, VALIDATION, MODEL):
        _refuse_changed(path / name, about, REMEDY)
    with as_data_error(path / MODEL, REMEDY):
        checkpoint = Checkpoint(path, about, load_file(path / MODEL))
        checkpoint = replace(checkpoint, weights=_with_queries(checkpoint.weights))
        checkpoint.load_encoder()  # a checkpoint whose weights do not fit fails here, not later
    if checkpoint.tokenizer.is_file():
        checkpoint.load_tokenizer()  # likewise
    return checkpoint


def _with_queries(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights with a query of zeros for each readout that has none: older checkpoints know the plain mean alone."""
    bias = re.compile(r"(encoder\.readouts\.\d+)\.bias")
    readouts = [(match[1], weight) for name, weight in weights.items() if (match := bias.fullmatch(name))]
    return {**{f"{readout}.query": torch.zeros_like(weight) for readout, weight in readouts}, **weights}


def load_optimizer(path: Path) -> dict[str, Tensor]:
    """Optimiser state of a checkpoint by name. Raises DataError if it is missing or damaged."""
    remedy = "delete the checkpoint to go back"
    _refuse_changed(path / OPTIMIZER, read_about(path), remedy)
    with as_data_error(path / OPTIMIZER, remedy):
        return load_file(path / OPTIMIZER)


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter name, ready for safetensors."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    return {f"{names[p]}|{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Put back the tensors of `optimizer_state`."""
    parameters = dict(model.named_parameters())
    for entry, value in saved.items():
        name, key = entry.rsplit("|", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device)  # where fused AdamW wants all of it


def _refuse_changed(file: Path, about: Mapping[str, Any], remedy: str) -> None:
    """Raises DataError if a file has another SHA-256 than when it was saved."""
    with as_data_error(file, remedy):
        saved = about.get("sha256", {}).get(file.name)
        if saved and file.is_file() and saved != (_shape_digest(about) if file.name == ABOUT else file_digest(file)):
            raise ValueError("its SHA-256 is not the one that was saved")


def _shape_digest(about: Mapping[str, Any]) -> str:
    """SHA-256 of the encoder's shape: weights alone do not say the number of heads."""
    return hashlib.sha256(to_json(about["model"])).hexdigest()


def stage_folders(run: Path, stage: str) -> list[Path]:
    """The checkpoints of a stage in the folder of a run, the oldest first."""
    name = re.compile(re.escape(stage) + r"-(\d{7,})")
    found = [(match, path) for path in run.glob("checkpoints/*") if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found)]


def last_finished(run: Path) -> Path:
    """The last checkpoint of the last stage that a run has finished. Raises DataError if none is finished."""
    finished = {}
    for file in run.glob(f"checkpoints/[!.]*/{ABOUT}"):
        about = read_about(file.parent)
        stages = about.get("recipe", {}).get("stages")  # up to its own
        if stages and about["step"] == stages[-1]["steps"]:
            finished[len(stages)] = file.parent
    if not finished:
        raise DataError(f"{run}: no stage is finished; train on, or name a folder in {run / 'checkpoints'}")
    return finished[max(finished)]


def average_checkpoints(checkpoints: Sequence[Checkpoint], shares: Sequence[float | Sequence[float]]) -> Checkpoint:
    """The mean of checkpoints of one training, in the weights that all of them have (Wortsman et al. 2022).

    Each has one share, or one for its table and one for each layer: a readout counts as the layer that it reads, all
    else as the table. Shares need not add up to 1; where one is 0, its weights are not asked for. Readouts lead into
    the space of certain axes: where checkpoints know their axes, the mean has the readouts of these alone. All other
    facts, such as the number of layers, come from the shallowest.

    Raises DataError if a checkpoint has not as many layers as shares.
    """
    shallowest = min(checkpoints, key=lambda checkpoint: checkpoint.config.num_layers)
    parts = list(zip(shares, checkpoints, strict=True))
    for share, c in parts:
        if not isinstance(share, int | float) and len(share) != c.config.num_layers + 1:
            text = f"{c.path}: has {c.config.num_layers} layers; starts_from gives it {len(share)} shares"
            raise DataError(f"{text}, and one for the table and one for each layer are expected")
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
    """The share of a checkpoint in the mean of a weight; that of its last layer for weights of layers that it lacks."""
    if isinstance(share, int | float):
        return share
    match = re.match(r"encoder\.(layers|readouts)\.(\d+)\.", name)
    depth = int(match[2]) + (match[1] == "layers") if match else 0
    return share[min(depth, len(share) - 1)]


def keep_layers(checkpoint: Checkpoint, numbers: Sequence[int]) -> Checkpoint:
    """A checkpoint with these of its layers alone, counted from 0. Raises DataError if it has fewer."""
    has = checkpoint.config.num_layers
    if numbers[-1] >= has:
        raise DataError(f"{checkpoint.path}: has {has} layers; keep_layers names {numbers[-1]}, counted from 0")
    layer = re.compile(r"encoder\.layers\.(\d+)\.(.+)")
    weights = {}
    for name, weight in checkpoint.weights.items():
        if not (match := layer.fullmatch(name)):
            weights[name] = weight
        elif (number := int(match[1])) in numbers:
            weights[f"encoder.layers.{numbers.index(number)}.{match[2]}"] = weight
    about = {**checkpoint.about, "model": {**checkpoint.about["model"], "num_layers": len(numbers)}}
    return replace(checkpoint, about=about, weights=weights)


class CheckpointEncoder:
    """A checkpoint, of a depth and cut to a prefix, as an encoder of texts: for evaluation and the parity gate."""

    def __init__(self, checkpoint: Checkpoint, *, depth: int | None = None, dim: int | None = None) -> None:
        self._encoder = checkpoint.load_encoder(depth).to("cuda" if torch.cuda.is_available() else "cpu")
        self._processor = checkpoint.load_tokenizer()
        self.languages = checkpoint.languages
        self.dim = dim or checkpoint.config.dim

    @torch.inference_mode()
    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, dim], zero if empty; each is cut at the encoder's `max_length` tokens."""
        pieces = self._processor.encode([remove_format(text) for text in sentences])
        vectors = self._encoder.encode_pieces(pieces)[:, : self.dim].cpu()
        # Of an empty sentence the layers see the first and the last token; as in a bundle it is the zero vector.
        there = torch.tensor([len(ids) > 0 for ids in pieces], dtype=torch.bool)
        return np.asarray((F.normalize(vectors, dim=1) * there[:, None]).numpy(), np.float32)


def open_encoder(path: Path) -> CheckpointEncoder | None:
    """The encoder in a checkpoint folder, or None where the folder is something else."""
    return CheckpointEncoder(load_checkpoint(path)) if (path / ABOUT).is_file() else None


def identify(model: Path) -> tuple[list[str], str]:
    """The languages of a bundle or a checkpoint, and its identity. Raises DataError if it is neither."""
    if (model / MANIFEST).is_file():
        bundle = Bundle.open(model)
        return list(bundle.languages), bundle.fingerprint
    if (model / ABOUT).is_file():
        return list(read_about(model)["languages"]), file_digest(model / MODEL)[:16]
    raise DataError(f"{model}: neither a bundle nor a checkpoint; expected a folder with {MANIFEST} or {ABOUT}")


def open_checkpoint(model: Path) -> Checkpoint:
    """Read a checkpoint, or a bundle as one; raises DataError or BundleError."""
    return checkpoint_from_bundle(model) if (model / MANIFEST).is_file() else load_checkpoint(model)


def checkpoint_from_bundle(bundle: Path) -> Checkpoint:
    """A bundle, of any precision and number of layers, as a checkpoint.

    Weights of 4 and 8 bits are decoded; exported again, the table is the same to the byte. A bundle has no held-out
    pairs, so neither has this checkpoint. Raises BundleError if the bundle is damaged.
    """
    opened = Bundle.open(bundle)
    opened.verify()
    try:
        weights = BundleWeights(opened)
        state = {f"encoder.{name}": weight for name, weight in weights.state()} | weights.smoothing()
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
        "precision": opened.precision,
        "step": 0,
    }
    return Checkpoint(bundle, about, state)


def with_table(
    checkpoint: Checkpoint, table: Tensor, languages: Sequence[str]
) -> tuple[dict[str, object], dict[str, Tensor]]:
    """A checkpoint's facts and weights with another table; heads and a teacher's matrices are left out."""
    stay = ("encoder.", SMOOTHING, SPACES)
    kept = {name: weight for name, weight in checkpoint.weights.items() if name.startswith(stay)}
    model = {**checkpoint.about["model"], "vocab_size": len(table)}
    return {**checkpoint.about, "model": model, "languages": list(languages)}, {**kept, TABLE: table}


class BundleWeights:
    """The weights of a bundle, by their names in its encoder."""

    def __init__(self, bundle: Bundle) -> None:
        self._bundle = bundle
        self._tensors = bundle.network.tensors

    @cached_property
    def config(self) -> ModelConfig:
        """The shape of the encoder. Raises ValueError if the bundle's vectors were cut."""
        bundle, network = self._bundle, self._bundle.network
        width = unpack_rows(bundle.mapped("table")[:0], None).shape[1]
        if width > bundle.dim:
            raise ValueError(f"its vectors were cut from {width} to {bundle.dim} numbers; take its checkpoint")
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
        with torch.device("meta"):  # names and shapes alone
            expected = Encoder(self.config).state_dict()
        for name, weight in expected.items():
            values = self.read(name)
            if values.shape != weight.shape or not np.isfinite(values).all():
                raise ValueError(f"{name} should be finite numbers of shape {list(weight.shape)}")
            yield name, torch.tensor(values)

    def smoothing(self) -> dict[str, Tensor]:
        """The factors that export multiplied the inputs of linear layers by, so that it can do so again."""
        end = ".smoothing"
        names = [name for name in self._tensors if name.endswith(end)]
        return {SMOOTHING + name.removesuffix(end): torch.tensor(self._bundle.floats(name)) for name in names}

    def factors(self, name: str) -> NDArray[np.float32]:
        """The factors of the inputs of a weight before it was rounded [inputs], or one for all [1]."""
        smoothing = f"{_place(name).removesuffix('.weight')}.smoothing"
        known = name.endswith(".weight") and smoothing in self._tensors
        return self._bundle.floats(smoothing) if known else np.ones(1, np.float32)

    def read(self, name: str) -> NDArray[np.float32]:
        """A weight as the encoder has it. Raises LookupError if there is none."""
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
        return values.T * self.factors(name) if name.startswith(("layers.", "readouts.")) else values


def _place(name: str) -> str:
    """The name in a graph of a weight of the encoder."""
    return "table" if name == "table.weight" else name.replace("layers.", "layer").replace("readouts.", "readout")


def _attribution(bundle: Bundle) -> list[str]:
    """The sources that the card of a bundle names; a model trained from the bundle must name them too."""
    card = bundle.path / CARD
    text = card.read_text(encoding="utf-8") if card.is_file() else ""
    listed = text.partition(SOURCES)[2].strip().partition("\n\n")[0]
    return [line.removeprefix("- ") for line in listed.splitlines()]
