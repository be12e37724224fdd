"""What an encoder takes over from an English teacher: its layers as they are.

The layers of a model of language carry over to languages that it never saw, when their pieces lie where the pieces of
their English translations lie (Artetxe et al. 2020). So only the table has to be learnt anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from xsent.errors import DataError
from xsent.files import naming_damage, read_json
from xsent.train.config import Recipe
from xsent.train.model import ACTIVATIONS, Encoder, ModelConfig
from xsent.train.sentence_transformer import refuse_pickle
from xsent.train.teacher import TOKENIZER, files_identity, read_tokenizer
from xsent.train.tokens import FRAME

if TYPE_CHECKING:
    from tokenizers import Tokenizer

POSITIONS = "embeddings.position_embeddings.weight"
WEIGHTS, CONFIG, POOLING = "model.safetensors", "config.json", "1_Pooling/config.json"
PARTS = {  # names of a layer here and in the files of a BERT, of which some lie there in parts
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
        """The id of a symbol such as [CLS]; a DataError where it has none."""
        found = self.tokenizer.token_to_id(name)
        if found is None:
            raise DataError(f"{self.path / TOKENIZER}: has no {name}; only a BERT's layers can be taken over")
        return int(found)

    @property
    def frame(self) -> tuple[int, int]:
        """The first and the last piece of every text; a DataError where its tokenizer puts other things around one."""
        ids = self.tokenizer.encode("").ids
        if len(ids) != FRAME:
            raise DataError(
                f"{self.path / TOKENIZER}: puts {len(ids)} pieces around a text, expected {FRAME} such as [CLS] and "
                "[SEP]; only a BERT's layers can be taken over"
            )
        return ids[0], ids[1]

    def shape(self, recipe: Recipe) -> Recipe:
        """The recipe with this teacher's shape; a DataError where layers, length or prefixes do not fit it."""
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
    """Read a folder of sentence-transformers whose model is a BERT that pools by the mean; a DataError says why not."""
    refuse_pickle(path)
    expected = f"expected a folder of sentence-transformers with {CONFIG} and {WEIGHTS}, whose layers can be taken over"
    config = read_json(path / CONFIG, expected)
    pooling = read_json(path / POOLING, expected) if (path / POOLING).is_file() else {}
    with naming_damage(path / WEIGHTS, expected):
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
    with naming_damage(path, f"{CONFIG} and {WEIGHTS} must make a BERT"):
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
