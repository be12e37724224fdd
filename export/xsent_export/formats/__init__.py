"""Folders for other tools: plain onnxruntime, sentence-transformers, transformers.js, llama.cpp."""

import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from xsent.backends.threads import available_cpus
from xsent.bundle import TOKENIZER
from xsent.clean import remove_format
from xsent.files.atomic import to_json
from xsent.open_model import SupportsEncode
from xsent.similarity import unit_rows
from xsent_export.formats.gguf import LlamaEncoder, write_gguf
from xsent_export.formats.sentence_transformers import bert_config, write_sentence_transformers
from xsent_export.formats.tokenizer import write_tokenizer
from xsent_export.graph import INPUT, MASK, OUTPUT, write_batch_graph
from xsent_export.options import BundleSpec
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder
from xsent_train.model import ModelConfig
from xsent_train.teacher.bert import CONFIG
from xsent_train.tokens import open_tokenizer

WEB_GRAPH = "onnx/model.onnx"
BATCH = 64  # sentences


def write_onnx(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> None:
    """Write one ONNX file and the SentencePiece model, for plain onnxruntime."""
    write_batch_graph(checkpoint.load_encoder(), spec, folder / "model.onnx")
    shutil.copyfile(checkpoint.tokenizer, folder / TOKENIZER)


def write_web(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> None:
    """Write a model for transformers.js; it gives `sentence_embedding` [B, D], not normalised."""
    (folder / WEB_GRAPH).parent.mkdir()
    write_batch_graph(checkpoint.load_encoder(), spec, folder / WEB_GRAPH)
    shape = spec.shape(checkpoint.config)
    # Without SentencePiece's map of characters: transformers.js takes it for NFKC, with exceptions that are not ours.
    write_tokenizer(checkpoint.tokenizer, folder, shape, charsmap=False)
    config = {
        **bert_config(shape),
        "hidden_size": spec.dim,
        "transformers.js_config": {"dtype": "fp32"},  # selects model.onnx, the only file, whatever its precision
    }
    (folder / CONFIG).write_bytes(to_json(config))


WRITERS = {"onnx": write_onnx, "sentence-transformers": write_sentence_transformers, "web": write_web}
WRITERS["gguf"] = write_gguf


def open_foreign(checkpoint: Checkpoint, spec: BundleSpec, folder: Path) -> SupportsEncode | None:
    """The encoder in a folder, as the other tool will run it; None where that tool is not installed."""
    for file in folder.glob("*.gguf"):
        return LlamaEncoder(file) if find_spec("llama_cpp") else None
    graph = next(folder.rglob("*.onnx"), None)
    if graph is None:  # sentence-transformers has the float32 weights as they are; only pieces can be missing
        return CheckpointEncoder(checkpoint, depth=spec.num_layers, dim=spec.dim)
    return GraphEncoder(graph, checkpoint.tokenizer, spec.shape(checkpoint.config))


class GraphEncoder:
    """Runs a batch graph with plain onnxruntime; `config` is the shape of the encoder in it."""

    def __init__(self, graph: Path, tokenizer: Path, config: ModelConfig) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = available_cpus()
        options.log_severity_level = 3  # errors only
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._processor = open_tokenizer(tokenizer)
        self._config = config

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, D]."""
        pieces = [ids[: self._config.max_length] for ids in self._processor.encode([*map(remove_format, sentences)])]
        if self._config.num_layers or self._config.depths:
            pieces = [[self._config.first, *ids, self._config.last] for ids in pieces]
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))  # for little padding; it changes no vector
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
