"""Folders in the layout of Hugging Face's hub, for onnxruntime, sentence-transformers and transformers.js.

sentence-transformers loads its folder with its own modules, without any code or pickle from xsent. An encoder with
layers is a BERT whose weights have their usual names, so every tool that reads a BERT reads them. These tools only know
the plain mean, so a readout that weighs the tokens is one more layer of that BERT.
"""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from numpy.typing import NDArray
from torch import Tensor

from xsent.backends.threads import available_cpus
from xsent.bundle import TOKENIZER
from xsent.errors import DataError
from xsent.files.atomic import to_json
from xsent.open_model import SupportsEncode
from xsent.similarity import unit_rows
from xsent.tokenizer import Tokenizer
from xsent_export.batch_graph import BatchGraph
from xsent_export.graph import INPUT, MASK, OUTPUT
from xsent_export.options import BundleSpec
from xsent_export.readout import readout_as_layer
from xsent_export.tokenizer import TOKENIZER_CONFIG, write_tokenizer
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, save_tensors
from xsent_train.model import Encoder, ModelConfig
from xsent_train.teacher.bert import CONFIG, MODULES, PARTS, POOLING, WEIGHTS, list_modules
from xsent_train.tokens import FRAME

HUB_GRAPH = "onnx/model.onnx"
LARGE_OUTPUT = 1e3  # ratio of a readout as a layer to the state that is added to it; fits in float16
BATCH = 64  # sentences
LARGE = ("*.onnx", "*.safetensors", "tokenizer.json")  # files for Git LFS in a hub's repository


def write_onnx(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> SupportsEncode:
    """Write one ONNX file and the SentencePiece model, for plain onnxruntime."""
    shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)
    return _write_graph(checkpoint, checkpoint.load_encoder(spec.num_layers), spec, folder / "model.onnx")


def write_web(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> SupportsEncode:
    """Write a model for transformers.js, which returns `sentence_embedding` [B, D], not normalised."""
    encoder = checkpoint.load_encoder(spec.num_layers)
    # Without SentencePiece's map of characters, which transformers.js replaces by NFKC with its own exceptions.
    write_tokenizer(checkpoint.tokenizer, folder, encoder.config, charsmap=False)
    config = {
        **bert_config(encoder.config),
        "hidden_size": spec.dim,
        "transformers.js_config": {"dtype": "fp32"},  # selects model.onnx, the only file, whatever its precision
    }
    (folder / CONFIG).write_bytes(to_json(config))
    return _write_graph(checkpoint, encoder, spec, folder / HUB_GRAPH)


def write_sentence_transformers(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> SupportsEncode:
    """Write a model for sentence-transformers into an empty folder.

    It returns the vectors of the trained encoder, of length 1, from float32 weights. Without layers and readout it is a
    `StaticEmbedding`, else a BERT, which also has a vector for an empty text. A readout is a `Dense` after the mean or,
    if it weighs the tokens, one more layer. That layer is not exact, so it is what the export measures.
    Raises DataError if the tokenizer cannot be a `tokenizer.json`, or a BERT without `Dense` should be truncated.
    """
    encoder = checkpoint.load_encoder(spec.num_layers)
    weighs = encoder.weighs(spec.num_layers)
    if (weighs or (encoder.layers and not encoder.readouts)) and spec.dim < encoder.config.dim:
        raise DataError(
            f"--dim {spec.dim}: a BERT returns the vectors of its layers, {encoder.config.dim} numbers; omit it and "
            f"open the folder with SentenceTransformer(folder, truncate_dim={spec.dim})"
        )
    write_tokenizer(checkpoint.tokenizer, folder, encoder.config)
    if encoder.positions is None:
        (folder / TOKENIZER_CONFIG).unlink()  # a StaticEmbedding only reads tokenizer.json
        save_tensors({"embedding.weight": encoder.table.weight[:, : spec.dim]}, folder / WEIGHTS)
        types = {"": "StaticEmbedding"}
    else:
        bert = readout_as_layer(encoder, LARGE_OUTPUT) if weighs else encoder
        types = _transformer(bert, folder)
    if encoder.readouts and not weighs:
        types |= _dense(encoder, spec, folder)
    types[f"{len(types)}_Normalize"] = "Normalize"
    (folder / MODULES).write_bytes(to_json(list_modules(types)))
    about = {"model_type": "SentenceTransformer", "similarity_fn_name": "cosine"}
    (folder / "config_sentence_transformers.json").write_bytes(to_json(about))
    attributes = "".join(f"{kind} filter=lfs diff=lfs merge=lfs -text\n" for kind in LARGE)
    (folder / ".gitattributes").write_text(attributes)
    if encoder.positions is not None:
        graph = _write_graph(checkpoint, encoder, spec, folder / HUB_GRAPH)
        return CheckpointEncoder(checkpoint.with_encoder(bert)) if weighs else graph
    # The folder has the float32 weights unchanged; only pieces can be missing.
    return CheckpointEncoder(checkpoint, depth=spec.num_layers, dim=spec.dim)


def bert_config(config: ModelConfig) -> dict[str, Any]:
    """The shape of an encoder with layers, as transformers' `config.json`."""
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
        "type_vocab_size": 2,  # as in BERT, because tools that trace a model try both
        "layer_norm_eps": config.norm_eps,
        "pad_token_id": 0,  # as in the vocabularies of xsent-train; padding is masked anyway
        "dtype": "float32",
    }


def bert_weights(encoder: Encoder) -> dict[str, Tensor]:
    """The weights of an encoder with layers, by their names in transformers."""
    state = encoder.state_dict()
    dim = encoder.config.dim
    weights = {
        "embeddings.word_embeddings.weight": state["table.weight"],
        "embeddings.position_embeddings.weight": state["positions"],
        "embeddings.token_type_embeddings.weight": torch.zeros(2, dim),
        "pooler.dense.weight": torch.eye(dim),  # its result is not used, but tools expect its weights
        "pooler.dense.bias": torch.zeros(dim),
    }
    for kind in ("weight", "bias"):
        weights[f"embeddings.LayerNorm.{kind}"] = state[f"table_norm.{kind}"]
        for number in range(len(encoder.layers)):
            for name, parts in PARTS.items():
                values = state[f"layers.{number}.{name}.{kind}"].chunk(len(parts))
                for part, value in zip(parts, values, strict=True):  # cloned, because a file cannot hold views
                    weights[f"encoder.layer.{number}.{part}.{kind}"] = value.clone()
    return weights


def _write_graph(checkpoint: Checkpoint, encoder: Encoder, spec: BundleSpec, path: Path) -> "GraphEncoder":
    """Write a graph. transformers.js, fastembed and optimum (sentence-transformers' ONNX) expect it at `HUB_GRAPH`."""
    path.parent.mkdir(exist_ok=True)
    BatchGraph(encoder, spec).write_file(path)
    return GraphEncoder(path, checkpoint.tokenizer, encoder.config)


def _transformer(encoder: Encoder, folder: Path) -> dict[str, str]:
    config = encoder.config
    (folder / CONFIG).write_bytes(to_json(bert_config(config)))
    save_tensors(bert_weights(encoder), folder / WEIGHTS)
    about = {"max_seq_length": config.max_length + FRAME, "do_lower_case": False}
    (folder / "sentence_bert_config.json").write_bytes(to_json(about))
    pooling = Path(POOLING)
    (folder / pooling.parent).mkdir()
    (folder / pooling).write_bytes(to_json({"word_embedding_dimension": config.dim, "pooling_mode_mean_tokens": True}))
    return {"": "Transformer", pooling.parent.name: "Pooling"}


def _dense(encoder: Encoder, spec: BundleSpec, folder: Path) -> dict[str, str]:
    readout = encoder.readout(len(encoder.layers))
    path = folder / "2_Dense"
    path.mkdir()
    save_tensors({f"linear.{kind}": getattr(readout, kind)[: spec.dim] for kind in ("weight", "bias")}, path / WEIGHTS)
    about = {"in_features": encoder.config.dim, "out_features": spec.dim, "bias": True}
    identity = "torch.nn.modules.linear.Identity"
    (path / CONFIG).write_bytes(to_json({**about, "activation_function": identity}))
    return {path.name: "Dense"}


class GraphEncoder:
    """Runs a batch graph with plain onnxruntime; `config` is the shape of the encoder in it."""

    def __init__(self, graph: Path, tokenizer: Path, config: ModelConfig) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = available_cpus()
        options.log_severity_level = 3  # errors only
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._tokenizer = Tokenizer(tokenizer)
        self._config = config

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, D]."""
        pieces = [self._tokenizer.encode(text)[: self._config.max_length] for text in sentences]
        if self._config.num_layers or self._config.depths:
            pieces = [[self._config.first, *ids, self._config.last] for ids in pieces]
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))  # for little padding; vectors do not change
        batches = (order[start : start + BATCH] for start in range(0, len(order), BATCH))
        parts = [self._run([pieces[i] for i in batch]) for batch in batches]
        return unit_rows(np.concatenate(parts)[np.argsort(order)])

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in batch])
        mask = np.arange(max(1, lengths.max())) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = [i for sentence in batch for i in sentence]
        (vectors,) = self._session.run([OUTPUT], {INPUT: ids, MASK: mask.astype(np.int64)})
        return np.asarray(vectors, np.float32)
