"""A folder that sentence-transformers loads with its own modules: no code and no pickle of ours.

An encoder with layers is a BERT; its weights have their usual names, so that every tool that reads a BERT reads them.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from xsent.errors import DataError
from xsent.files.atomic import to_json
from xsent_export.formats.tokenizer import TOKENIZER_CONFIG, write_tokenizer
from xsent_export.options import BundleSpec
from xsent_train.checkpoint import Checkpoint, save_tensors
from xsent_train.model import Encoder, ModelConfig
from xsent_train.teacher.bert import CONFIG, MODULES, PARTS, POOLING, WEIGHTS
from xsent_train.tokens import FRAME


def write_sentence_transformers(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> None:
    """Write a model for sentence-transformers into an empty folder.

    It gives the vectors of the trained encoder, of length 1, from float32 weights. Without layers and readout it is a
    `StaticEmbedding`, else a BERT, which has a vector for an empty text too; a readout is a `Dense` after the mean.
    Raises DataError if the tokenizer has no `tokenizer.json`, or a BERT without readout should be cut.
    """
    encoder = checkpoint.load_encoder().first(spec.num_layers)
    if encoder.layers and not encoder.readouts and spec.dim < encoder.config.dim:
        raise DataError(
            f"--dim {spec.dim}: a BERT has the vectors of its layers, {encoder.config.dim} numbers; leave it out and "
            f"open the folder by SentenceTransformer(folder, truncate_dim={spec.dim})"
        )
    write_tokenizer(checkpoint.tokenizer, folder, encoder.config)
    types = _static(encoder, spec, folder) if encoder.positions is None else _transformer(encoder, folder)
    if encoder.readouts:
        types |= _dense(encoder, spec, folder)
    types[f"{len(types)}_Normalize"] = "Normalize"
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(types.items())
    ]
    (folder / MODULES).write_bytes(to_json(modules))
    about = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_bytes(to_json(about))


def bert_config(config: ModelConfig) -> dict[str, Any]:
    """The shape of an encoder with layers as transformers' `config.json`."""
    return {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "vocab_size": config.vocab_size,
        "hidden_size": config.dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.ffn_dim,
        "hidden_act": config.activation,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "max_position_embeddings": config.max_length + FRAME,
        "type_vocab_size": 1,
        "layer_norm_eps": config.norm_eps,
        "pad_token_id": 0,  # as in the vocabularies of xsent-train; padding is masked anyway
        "dtype": "float32",
    }


def _bert_weights(encoder: Encoder) -> dict[str, Tensor]:
    """The weights of an encoder with layers, by their names in transformers."""
    state = encoder.state_dict()
    weights = {
        "embeddings.word_embeddings.weight": state["table.weight"],
        "embeddings.position_embeddings.weight": state["positions"],
        "embeddings.token_type_embeddings.weight": torch.zeros(1, encoder.config.dim),
    }
    for kind in ("weight", "bias"):
        weights[f"embeddings.LayerNorm.{kind}"] = state[f"table_norm.{kind}"]
        for number in range(len(encoder.layers)):
            for ours, its in PARTS.items():
                values = state[f"layers.{number}.{ours}.{kind}"].chunk(len(its))
                for part, value in zip(its, values, strict=True):  # cloned, as a file holds no part of another tensor
                    weights[f"encoder.layer.{number}.{part}.{kind}"] = value.clone()
    return weights


def _static(encoder: Encoder, spec: BundleSpec, folder: Path) -> dict[str, str]:
    (folder / TOKENIZER_CONFIG).unlink()  # a StaticEmbedding reads tokenizer.json alone
    save_tensors({"embedding.weight": encoder.table.weight[:, : spec.dim]}, folder / WEIGHTS)
    return {"": "StaticEmbedding"}


def _transformer(encoder: Encoder, folder: Path) -> dict[str, str]:
    config = encoder.config
    (folder / CONFIG).write_bytes(to_json(bert_config(config)))
    save_tensors(_bert_weights(encoder), folder / WEIGHTS)
    about = {"max_seq_length": config.max_length + FRAME, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_bytes(to_json({**about, "model_args": {"add_pooling_layer": False}}))
    pooling = Path(POOLING)
    (folder / pooling.parent).mkdir()
    (folder / pooling).write_bytes(to_json({"word_embedding_dimension": config.dim, "pooling_mode_mean_tokens": True}))
    return {"": "Transformer", pooling.parent.name: "Pooling"}


def _dense(encoder: Encoder, spec: BundleSpec, folder: Path) -> dict[str, str]:
    readout = encoder.readouts[str(len(encoder.layers))]
    assert isinstance(readout, torch.nn.Linear)
    path = folder / "2_Dense"
    path.mkdir()
    save_tensors({f"linear.{kind}": getattr(readout, kind)[: spec.dim] for kind in ("weight", "bias")}, path / WEIGHTS)
    about = {"in_features": encoder.config.dim, "out_features": spec.dim, "bias": True}
    identity = "torch.nn.modules.linear.Identity"
    (path / CONFIG).write_bytes(to_json({**about, "activation_function": identity}))
    return {path.name: "Dense"}
