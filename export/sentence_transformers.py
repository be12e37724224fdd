"""A checkpoint as a folder that sentence-transformers loads: its own modules, no code and no pickle of ours."""

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from xsent.export.form import Form
from xsent.export.huggingface_tokenizer import TOKENIZER_CONFIG, write_tokenizer
from xsent.export.stock_bert import StockBert, stock_bert
from xsent.train.checkpoint import Checkpoint, save_tensors
from xsent.train.model import Encoder

WEIGHTS = "model.safetensors"
DENSE = "2_Dense"


def write_sentence_transformers(checkpoint: Checkpoint, form: Form, folder: Path) -> None:
    """Write a model for sentence-transformers.

    Its vectors are those of the trained encoder, of length 1; its weights are float32 whatever the form's precision.
    Without layers it is a `StaticEmbedding`, else a BERT that transformers has. An empty text is the zero vector; with
    layers, transformers refuses a batch that has no other.

    Args:
        checkpoint: The trained encoder.
        form: How many layers and dimensions of it.
        folder: An empty folder.

    Raises:
        DataError: The tokenizer is of a kind that cannot be written for it.
    """
    encoder = checkpoint.encoder.first(form.num_layers)
    write_tokenizer(checkpoint.tokenizer, folder, encoder.config.max_length)
    types = _static(encoder, form, folder) if not encoder.layers else _transformer(encoder, form, folder)
    types[f"{len(types)}_Normalize"] = "Normalize"
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for number, (path, kind) in enumerate(types.items())
    ]
    _write(folder / "modules.json", modules)
    _write(
        folder / "config_sentence_transformers.json",
        {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"},
    )


def _static(encoder: Encoder, form: Form, folder: Path) -> dict[str, str]:
    (folder / TOKENIZER_CONFIG).unlink()  # it reads tokenizer.json alone
    save_tensors({"embedding.weight": encoder.table.weight[:, : form.dim]}, folder / WEIGHTS)
    return {"": "StaticEmbedding"}


def _transformer(encoder: Encoder, form: Form, folder: Path) -> dict[str, str]:
    model = stock_bert(encoder)
    _write(folder / "config.json", model.config)
    save_tensors(model.weights, folder / WEIGHTS)
    about = {"max_seq_length": encoder.config.max_length, "do_lower_case": False}
    _write(folder / "sentence_bert_config.json", {**about, "model_args": {"add_pooling_layer": False}})
    types = {"": "Transformer", "1_Pooling": "Pooling"}
    (folder / "1_Pooling").mkdir()
    _write(
        folder / "1_Pooling" / "config.json",
        {"word_embedding_dimension": model.width, "pooling_mode_mean_tokens": True},
    )
    readout = _readout(encoder, form, model)
    if readout is not None:
        types[DENSE] = "Dense"
        _write_dense(readout, folder / DENSE)
    return types


def _readout(encoder: Encoder, form: Form, model: StockBert) -> Tensor | None:
    """What makes the vector of the mean hidden state [d, W]; None if it is the vector."""
    if model.readout is not None:
        return model.readout[: form.dim]
    return None if form.dim == encoder.config.dim else torch.eye(model.width)[: form.dim]


def _write_dense(weight: Tensor, folder: Path) -> None:
    folder.mkdir()
    save_tensors({"linear.weight": weight}, folder / WEIGHTS)
    outputs, inputs = weight.shape
    activation = "torch.nn.modules.linear.Identity"
    about = {"in_features": inputs, "out_features": outputs, "bias": False, "activation_function": activation}
    _write(folder / "config.json", about)


def _write(path: Path, content: Any) -> None:  # noqa: ANN401  what JSON can hold
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
