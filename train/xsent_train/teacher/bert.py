"""Folders of sentence-transformers: their BERT's weights to start from, and the whole model as an encoder of texts.

The table under a teacher's layers has a starting point: a piece that is an English word gets the teacher's row (as in
WECHSEL, Minixhofer et al. 2022).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor

from xsent.errors import DataError, in_one_line, require_extra
from xsent.files.atomic import as_data_error, read_json
from xsent.similarity import Floats
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import evenly
from xsent_train.data.store import Store
from xsent_train.model import ACTIVATIONS, Encoder, ModelConfig
from xsent_train.recipe import Recipe
from xsent_train.teacher.open import TOKENIZER, english_targets, files_identity, read_tokenizer
from xsent_train.tokens import FRAME

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

logger = logging.getLogger(__name__)

POSITIONS = "embeddings.position_embeddings.weight"
WEIGHTS, CONFIG, POOLING = "model.safetensors", "config.json", "1_Pooling/config.json"
MODULES = "modules.json"  # marks a folder of sentence-transformers
PICKLED = "*_model*.bin"  # pytorch_model.bin, its shards, adapter_model.bin
BATCH = 32  # sentences, sorted by length and padded to the longest; on a CPU, 64 and 128 are slower
SEEN = 20  # minimum number of times that an English piece occurs in English text
FOREIGN = 8  # how many times more often it may occur in the other languages
COUNTED = 200_000  # pairs whose pieces are counted
PARTS = {  # names in a layer here, and in the files of a BERT, where some are split
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "ffn_in": ("intermediate.dense",),
    "ffn_out": ("output.dense",),
    "ffn_norm": ("output.LayerNorm",),
}


@dataclass(frozen=True)
class TeacherBert:
    """A teacher's network."""

    path: Path  # its folder, one of sentence-transformers
    config: Mapping[str, Any]  # its `config.json`
    weights: Mapping[str, Tensor]  # its tensors, by their names in a BERT

    @cached_property
    def identity(self) -> str:
        """Identity of the files in its folder."""
        return files_identity(self.path)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """Its tokenizer, see `read_tokenizer`."""
        return read_tokenizer(self.path / TOKENIZER)

    @property
    def table(self) -> Tensor:
        """The rows for the ids of its own tokenizer [V, D]."""
        return self.weights["embeddings.word_embeddings.weight"]

    def piece(self, name: str) -> int:
        """The id of a symbol such as [CLS]. Raises DataError if it is missing."""
        number = self.tokenizer.token_to_id(name)
        if number is None:
            raise DataError(f"{self.path / TOKENIZER}: has no {name}; only a BERT's layers can be taken over")
        return int(number)

    @property
    def frame(self) -> tuple[int, int]:
        """The first and the last piece of every text. Raises DataError if its tokenizer adds other pieces."""
        ids = self.tokenizer.encode("").ids
        if len(ids) != FRAME:
            raise DataError(
                f"{self.path / TOKENIZER}: puts {len(ids)} pieces around a text, expected {FRAME} such as [CLS] and "
                "[SEP]; only a BERT's layers can be taken over"
            )
        return ids[0], ids[1]

    def shaped_recipe(self, recipe: Recipe) -> Recipe:
        """The recipe with this teacher's shape. Raises DataError if layers, length or prefixes do not fit it."""
        layers, longest = self.config["num_hidden_layers"], len(self.weights[POSITIONS]) - FRAME
        if missing := [number for number in recipe.teacher_layers if not 0 <= number < layers]:
            raise DataError(f"{self.path}: has layers 0 to {layers - 1}; teacher_layers names {missing[0]}")
        if recipe.max_length > longest:
            raise DataError(
                f"{self.path}: reads {longest} tokens; max_length = {recipe.max_length} must be at most that"
            )
        model = self.model_config(recipe.max_length)
        names = ("dim", "num_heads", "ffn_dim", "activation", "norm_eps")
        shaped = recipe.model_copy(update={name: getattr(model, name) for name in names})
        try:
            shaped.require_prefixes()
        except ValueError as error:
            raise DataError(f"{self.path}: has {shaped.dim} dimensions: {error}") from error
        return shaped

    def model_config(self, max_length: int) -> ModelConfig:
        """The shape of the teacher as an encoder."""
        return ModelConfig(
            vocab_size=len(self.table),
            dim=self.config["hidden_size"],
            num_layers=self.config["num_hidden_layers"],
            num_heads=self.config["num_attention_heads"],
            ffn_dim=self.config["intermediate_size"],
            max_length=max_length,
            activation=self.config["hidden_act"],
            norm_eps=self.config["layer_norm_eps"],
        )

    def layers(self, numbers: Sequence[int], max_length: int) -> dict[str, Tensor]:
        """All weights but the table, by their names in an encoder of these layers."""
        weights = self.weights
        positions = weights[POSITIONS][: max_length + FRAME]
        state = {"positions": positions + weights["embeddings.token_type_embeddings.weight"][0]}
        for kind in ("weight", "bias"):
            state[f"table_norm.{kind}"] = weights[f"embeddings.LayerNorm.{kind}"]
            for place, number in enumerate(numbers):
                for name, split in PARTS.items():
                    parts = [weights[f"encoder.layer.{number}.{part}.{kind}"] for part in split]
                    state[f"layers.{place}.{name}.{kind}"] = torch.cat(parts)
        return state

    def encoder(self, max_length: int) -> Encoder:
        """The whole teacher as an encoder for the ids of its own tokenizer."""
        first, last = self.frame
        config = replace(self.model_config(max_length), first=first, last=last)
        encoder = Encoder.empty(config)
        numbers = range(config.num_layers)
        encoder.load_state_dict({"table.weight": self.table, **self.layers(numbers, max_length)}, assign=True)
        return encoder.eval()


def read_teacher(path: Path) -> TeacherBert:
    """Read a folder of sentence-transformers. Raises DataError if its model is not a BERT with mean pooling."""
    refuse_pickle(path)
    expected = f"expected a folder of sentence-transformers with {CONFIG} and {WEIGHTS}, whose layers can be taken over"
    config = read_json(path / CONFIG, expected)
    pooling = read_json(path / POOLING, expected) if (path / POOLING).is_file() else {}
    with as_data_error(path / WEIGHTS, expected):
        tensors = load_file(path / WEIGHTS).items()
        weights = {name.removeprefix("bert."): w.float() for name, w in tensors if w.is_floating_point()}
    kind, activation = config.get("model_type"), config.get("hidden_act")
    if kind != "bert":
        raise DataError(f"{path}: is of type {kind!r}; only the layers of a 'bert' can be taken over")
    if activation not in ACTIVATIONS:
        raise DataError(f"{path}: its activation is {activation!r}; supported are {', '.join(ACTIVATIONS)}")
    if not pools_by_mean(pooling):
        raise DataError(f"{path}: does not take the mean of its tokens, as an xsent encoder does; use another model")
    teacher = TeacherBert(path, config, weights)
    with as_data_error(path, f"expected {CONFIG} and {WEIGHTS} of a BERT"):
        shapes = {name: weight.shape for name, weight in Encoder.empty(teacher.model_config(1)).state_dict().items()}
        state = {"table.weight": teacher.table, **teacher.layers(range(config["num_hidden_layers"]), 1)}
        wrong = [name for name, shape in shapes.items() if state[name].shape != shape]
    if wrong:
        raise DataError(f"{path}: {WEIGHTS} does not fit {CONFIG}: {wrong[0]} is {list(state[wrong[0]].shape)}")
    return teacher


def pools_by_mean(pooling: Mapping[str, Any]) -> bool:
    """Whether a pooling configuration, in its current form or the older one with flags, is only the mean."""
    flags = {name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True}
    return pooling.get("pooling_mode", "mean") in ("mean", ["mean"]) and flags <= {"pooling_mode_mean_tokens"}


def list_modules(kinds: Mapping[str, str]) -> list[dict[str, object]]:
    """The content of `modules.json` for modules, given their kinds by folder."""
    return [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]


class TeacherInput:
    """The input of a teacher as an encoder: the mean of a sentence's rows, before any layer."""

    def __init__(self, teacher: TeacherBert) -> None:
        self._teacher = teacher
        self.identity = f"{teacher.identity}-input"
        self.dim = teacher.table.shape[1]

    def encode(self, sentences: list[str]) -> Floats:
        """The means [n, dim], not normalised; zero for a sentence without tokens."""
        read = self._teacher.tokenizer.encode_batch(sentences, add_special_tokens=False)
        lengths = torch.tensor([len(sentence.ids) for sentence in read])
        ids = torch.tensor([i for sentence in read for i in sentence.ids], dtype=torch.long)
        means = F.embedding_bag(ids, self._teacher.table, lengths.cumsum(0) - lengths, mode="mean")
        return np.asarray(means.numpy(), np.float32)

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """See `TargetSource`: the means of the English sides."""
        return english_targets(self.encode, pairs)


def english_rows(teacher: TeacherBert, processor: spm.SentencePieceProcessor, counts: NDArray[np.int64]) -> Tensor:
    """Rows for a student's vocabulary: the teacher's rows for English pieces, and their mean for others [V, D].

    `counts` are the occurrences of each piece in English and in other languages [2, V]. Raises DataError if no piece is
    English.
    """
    known = teacher.tokenizer.get_vocab()
    rows = teacher.table.mean(dim=0, keepdim=True).repeat(len(processor), 1)
    english = (counts[0] >= SEEN) & (FOREIGN * counts[0] >= counts[1])
    matched = 0
    for piece in english.nonzero()[0].tolist():
        if not processor.is_byte(piece) and (ids := spell(teacher, processor.id_to_piece(piece), known)):
            rows[piece] = teacher.table[ids].mean(dim=0)
            matched += 1
    if not matched:
        raise DataError(
            f"{teacher.path}: knows none of the {len(processor)} pieces as an English word; train the vocabulary on "
            "English text, too"
        )
    ends = (processor.bos_id(), "[CLS]"), (processor.eos_id(), "[SEP]"), (processor.unk_id(), "[UNK]")
    for piece, symbol in ends:
        rows[piece] = teacher.table[teacher.piece(symbol)]
    logger.info("%d of %d pieces start at the teacher's rows", matched, len(processor))
    return rows


def spell(teacher: TeacherBert, piece: str, known: Mapping[str, int]) -> list[int]:
    """Spell a piece in the pieces of a teacher; empty if the teacher does not know it."""
    if (inner := f"##{piece}") in known:
        return [known[inner]]
    ids: list[int] = teacher.tokenizer.encode(piece.removeprefix("▁"), add_special_tokens=False).ids
    return [] if teacher.piece("[UNK]") in ids else ids


def piece_counts(store: Store, vocab_size: int) -> NDArray[np.int64]:
    """How often each piece occurs in the English and in the other sides of a sample of a store [2, V]."""
    pairs = evenly(len(store), COUNTED)
    longest = np.iinfo(np.int32).max
    return np.stack([np.bincount(store.tokens(pairs, side, longest).ids, minlength=vocab_size) for side in (0, 1)])


class SentenceTransformerEncoder:
    """A sentence-transformers model as an encoder of texts. Raises ValueError if all texts get the same vector."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model
        self.dim = 0
        probe = self.encode(["a", "o"])
        self.dim = probe.shape[1]
        if np.allclose(probe[0], probe[1], atol=1e-6):  # the library makes up a missing tokenizer
            raise ValueError("different texts get the same vector; its tokenizer is missing")

    def encode(self, sentences: list[str]) -> Floats:
        """Unit vectors of sentences [n, dim]; the model's own default prompt and length limit apply."""
        if not sentences:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._model.encode(sentences, batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(vectors, np.float32)


def open_sentence_transformer(path: Path) -> SentenceTransformerEncoder | None:
    """The model in a sentence-transformers folder, or None if the folder is something else.

    It runs on a GPU if there is one, in float32. Raises DataError if the folder is damaged, or has pickled weights or
    its own code.
    """
    if not (path / MODULES).is_file():
        return None
    refuse_pickle(path)
    with require_extra("teacher"):
        from sentence_transformers import SentenceTransformer
        from transformers.utils.logging import disable_progress_bar
    disable_progress_bar()  # transformers draws one bar per weight file, even without a terminal
    try:
        model = SentenceTransformer(
            str(path),
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True, "dtype": "float32"},
        )
        return SentenceTransformerEncoder(model)
    except Exception as error:  # the library reads a dozen files, and raises anything
        reason = in_one_line(error)
        if "trust_remote_code" in reason:  # the library would advise to allow it
            reason = "it has its own code, which xsent does not run; use a model built from the library's modules"
        raise DataError(f"{path}: not a readable sentence-transformers folder: {reason[:300]}") from error


def refuse_pickle(path: Path) -> None:
    """Raises DataError if weights exist only as a pickle."""
    for file in sorted(path.rglob(PICKLED)):
        if not file.name.startswith("openvino") and not any(file.parent.glob("*.safetensors")):
            raise DataError(
                f"{file}: pickled weights can run code when loaded; save the model with safetensors instead"
            )
