"""Checkpoints: folders with an encoder and everything that belongs to it, written atomically and without pickle.

`checkpoint.json` (name, languages, shape, recipe, and the SHA-256 of the other files), `model.safetensors`
(`encoder.*`, and `head.*` if pieces are predicted), `sentencepiece.model`, `validation.tsv`, and
`optimizer.safetensors` until a stage ends.
"""

import errno
import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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

from xsent.bundle import file_digest
from xsent.clean import remove_format
from xsent.errors import DataError
from xsent.files.atomic import as_data_error, as_write_error, atomic_folder, read_json, remove_folder, to_json
from xsent_train.model import Encoder, ModelConfig
from xsent_train.tokens import open_tokenizer

FORMAT_VERSION = 3
ABOUT, MODEL, OPTIMIZER = "checkpoint.json", "model.safetensors", "optimizer.safetensors"
TOKENIZER, VALIDATION = "sentencepiece.model", "validation.tsv"
TABLE = "encoder.table.weight"
TEACHERS = "teachers."  # prefix of matrices of several teachers
AXES = f"{TEACHERS}axes"  # from their vectors to those of the encoder
SPACES = "spaces."  # prefix of matrices into other models' spaces, followed by the model's name [D, E]
# Prefixes of what the layers of a bundle were quantised with, see `xsent_export.quantization`.
QUANTIZED = SMOOTHING, SCALES, ROUNDING = "smoothing.", "scales.", "rounding."
REQUIRED: Mapping[str, type] = {"name": str, "languages": list, "licence": str, "step": int, "model": dict}
FIELDS = {**REQUIRED, "recipe": dict, "trained": dict, "attribution": list, "sha256": dict}
REMEDY = "use another checkpoint, or train it again"


@dataclass(frozen=True)
class Checkpoint:
    """A trained encoder with its facts."""

    path: Path  # its folder, or that of the bundle that it was read from
    about: Mapping[str, Any]  # all of `checkpoint.json`
    weights: Mapping[str, Tensor]  # tensors by name, `encoder.*`, `head.*` and `spaces.*`
    vocabulary: Path | None = None  # its SentencePiece model, if it is not the one in the folder

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
        """Build the encoder, or its first layers, from these weights, in evaluation mode."""
        prefix, layers = "encoder.", self.config.num_layers
        state = {name.removeprefix(prefix): w.float() for name, w in self.weights.items() if name.startswith(prefix)}
        if layers > len(state):
            raise ValueError(f"{layers} layers cannot be in {len(state)} weights")
        encoder = Encoder.empty(self.config)  # allocates nothing, even for a damaged shape
        encoder.load_state_dict(state, assign=True)
        return encoder.eval() if num_layers is None else encoder.eval().first(num_layers)

    def with_encoder(self, encoder: Encoder) -> "Checkpoint":
        """A checkpoint with the same tokenizer and only the given encoder."""
        weights = {f"encoder.{name}": weight for name, weight in encoder.state_dict().items()}
        return replace(self, about={**self.about, "model": asdict(encoder.config)}, weights=weights)


def save_checkpoint(
    path: Path,
    about: Mapping[str, Any],
    weights: Mapping[str, Tensor],
    optimizer: Mapping[str, Tensor] | None,
    files: Sequence[Path],
) -> None:
    """Write a checkpoint of weights and optimiser state by name; the latter is None for a finished stage.

    `about` has name, languages, licence, model, step and any other facts; `files` are the tokenizer and the validation
    pairs. Raises DataError if the checkpoint cannot be written; then nothing is left behind.
    """
    remedy = "make room and run the same command again; it resumes from the last checkpoint"
    with as_write_error(path, remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_folder(path, private=True) as folder:  # it holds text
            save_tensors(weights, folder / MODEL)
            if optimizer is not None:
                save_tensors(optimizer, folder / OPTIMIZER)
            for file in files:
                shutil.copy(file, folder)
            digests = {ABOUT: _shape_digest(about)}
            digests |= {file.name: file_digest(file) for file in sorted(folder.iterdir())}
            (folder / ABOUT).write_bytes(to_json({"format_version": FORMAT_VERSION, **about, "sha256": digests}))


def require_room(run: Path, model: nn.Module) -> None:
    """Raises DataError if a run's disk has no room for two checkpoints of a model, the last one and its successor."""
    sizes = [(weight.nbytes, weight.requires_grad) for weight in model.state_dict(keep_vars=True).values()]
    needed, free = 2 * sum(size * (3 if trained else 1) for size, trained in sizes), shutil.disk_usage(run).free
    if free < needed:
        raise DataError(
            f"{run}: its disk has {free / 1e6:,.0f} MB free, and two checkpoints take {needed / 1e6:,.0f}; make room, "
            "or name a folder on another disk"
        )


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors as safetensors. Raises OSError if they cannot be written."""
    try:
        save_file({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}, path)
    except SafetensorError as error:  # the error number is only in its text
        number = re.search(r"os error (\d+)", str(error))
        raise OSError(int(number[1]) if number else errno.EIO, str(error), str(path)) from error


def read_about(path: Path) -> dict[str, Any]:
    """The facts in `checkpoint.json`. Raises DataError if the folder is not a checkpoint of a known version."""
    if not (path / ABOUT).is_file():
        missing = f"no {ABOUT} in this folder" if path.is_dir() else "no such folder"
        raise DataError(f"{path}: {missing}; expected a checkpoint of xsent-train, a bundle, or: builtin")
    about = read_json(path / ABOUT, REMEDY)
    if (version := about.get("format_version")) != FORMAT_VERSION:
        raise DataError(f"{path}: checkpoint of version {version}; this xsent reads version {FORMAT_VERSION}; {REMEDY}")
    with as_data_error(path / ABOUT, REMEDY):
        for name, kind in FIELDS.items():
            if not isinstance(about[name] if name in REQUIRED else about.get(name, kind()), kind):
                raise TypeError(f"{name!r} is of type {type(about[name]).__name__}, expected {kind.__name__}")
        if not all(isinstance(language, str) for language in about["languages"]):
            raise TypeError("'languages' must contain only codes")
    return about


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint. Raises DataError as `read_about` does, and if it is damaged."""
    about = read_about(path)
    for name in (ABOUT, TOKENIZER, VALIDATION, MODEL):
        _refuse_changed(path / name, about, REMEDY)
    with as_data_error(path / MODEL, REMEDY):
        checkpoint = Checkpoint(path, about, load_file(path / MODEL))
        checkpoint.load_encoder()  # so that weights that do not fit fail here
    if checkpoint.tokenizer.is_file():
        checkpoint.load_tokenizer()  # for the same reason
    return checkpoint


def load_optimizer(path: Path) -> dict[str, Tensor]:
    """Optimiser state of a checkpoint by name. Raises DataError if it is missing or damaged."""
    remedy = "delete the checkpoint to resume from the one before"
    _refuse_changed(path / OPTIMIZER, read_about(path), remedy)
    with as_data_error(path / OPTIMIZER, remedy):
        return load_file(path / OPTIMIZER)


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter name, ready for safetensors."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    return {f"{names[p]}|{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Restore the tensors of `optimizer_state`."""
    parameters = dict(model.named_parameters())
    for entry, value in saved.items():
        name, key = entry.rsplit("|", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device)  # fused AdamW needs all of it there


def _refuse_changed(file: Path, about: Mapping[str, Any], remedy: str) -> None:
    """Raises DataError if the SHA-256 of a file is not the one that was saved."""
    with as_data_error(file, remedy):
        saved = about.get("sha256", {}).get(file.name)
        if saved and file.is_file() and saved != (_shape_digest(about) if file.name == ABOUT else file_digest(file)):
            raise ValueError("its SHA-256 is not the one that was saved")


def _shape_digest(about: Mapping[str, Any]) -> str:
    """SHA-256 of the encoder's shape, because the weights do not show the number of heads."""
    return hashlib.sha256(to_json(about["model"])).hexdigest()


def stage_folders(run: Path, stage: str) -> list[Path]:
    """The checkpoints of a stage in a run's folder, oldest first."""
    name = re.compile(re.escape(stage) + r"-(\d{7,})")
    found = [(match, path) for path in run.glob("checkpoints/*") if (match := name.fullmatch(path.name))]
    return [path for _, path in sorted((int(match[1]), path) for match, path in found)]


def remove_older(run: Path, stage: str) -> None:
    """Remove all checkpoints of a stage but the last."""
    for older in stage_folders(run, stage)[:-1]:
        remove_folder(older)


def last_finished(run: Path) -> Path:
    """The checkpoint of the last stage that a run has finished. Raises DataError if no stage is finished."""
    finished = {}
    for file in run.glob(f"checkpoints/[!.]*/{ABOUT}"):
        about = read_about(file.parent)
        stages = about.get("recipe", {}).get("stages")  # up to its own
        if stages and about["step"] == stages[-1]["steps"]:
            finished[len(stages)] = file.parent
    if not finished:
        folders = run / "checkpoints"
        raise DataError(f"{run}: no stage is finished; continue the training, or name a folder in {folders}")
    return finished[max(finished)]


def trained_depths(checkpoint: Checkpoint) -> list[int]:
    """The depths that a checkpoint can be used at: all layers, and other trained depths."""
    if checkpoint.config.depths:
        return list(checkpoint.config.depths)
    return sorted({checkpoint.config.num_layers, *_trained(checkpoint, "layers", "layer_prefixes")})


def trained_dims(checkpoint: Checkpoint) -> list[int]:
    """The numbers of dimensions that a checkpoint's vectors can be cut to."""
    return sorted({checkpoint.config.dim, *_trained(checkpoint, "prefixes", "prefixes")})


def _trained(checkpoint: Checkpoint, name: str, setting: str) -> list[int]:
    """Trained smaller sizes, from the bundle's manifest or the last stage of the recipe."""
    with as_data_error(checkpoint.path / ABOUT, REMEDY):
        stages = checkpoint.about.get("recipe", {}).get("stages") or [{}]
        trained: Mapping[str, Sequence[int]] = checkpoint.about.get("trained", {name: stages[-1].get(setting) or ()})
        return [int(number) for number in trained[name]]


class CheckpointEncoder:
    """A checkpoint as an encoder of texts, at a depth and truncated to `dim`: for evaluation and the parity gate."""

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
        # For an empty sentence, layers see the first and the last token; return the zero vector, as a bundle does.
        there = torch.tensor([len(ids) > 0 for ids in pieces], dtype=torch.bool)
        return np.asarray((F.normalize(vectors, dim=1) * there[:, None]).numpy(), np.float32)


def open_encoder(path: Path) -> CheckpointEncoder | None:
    """The encoder in a checkpoint folder, or None if the folder is something else."""
    return CheckpointEncoder(load_checkpoint(path)) if (path / ABOUT).is_file() else None
