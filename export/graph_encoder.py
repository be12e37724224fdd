"""A graph of padded batches as an encoder of texts, as plain onnxruntime runs it for other tools."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import sentencepiece as spm
from numpy.typing import NDArray

from xsent.export.batch_graph import MASK
from xsent.export.graph import INPUT, OUTPUT
from xsent.similarity import unit_rows
from xsent.threads import available_cpus
from xsent.train.model import ModelConfig

BATCH = 64


class GraphEncoder:
    """Runs a file of `xsent.export.batch_graph`; `config` is that of the encoder in it."""

    def __init__(self, graph: Path, tokenizer: Path, config: ModelConfig) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = available_cpus()
        options.log_severity_level = 3  # errors only
        self._session = onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        self._processor = spm.SentencePieceProcessor(model_file=str(tokenizer))
        self._config = config

    def encode(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Unit vectors of sentences [n, D]."""
        pieces = [ids[: self._config.max_length] for ids in self._processor.encode(list(sentences))]
        if self._config.num_layers:
            pieces = [[self._config.first, *ids, self._config.last] for ids in pieces]
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))  # little padding; it changes no vector
        parts = [self._run([pieces[i] for i in order[at : at + BATCH]]) for at in range(0, len(order), BATCH)]
        return unit_rows(np.concatenate(parts)[np.argsort(order)])

    def _run(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        lengths = np.array([len(ids) for ids in batch])
        mask = np.arange(max(1, lengths.max())) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = [i for sentence in batch for i in sentence]
        (vectors,) = self._session.run([OUTPUT], {INPUT: ids, MASK: mask.astype(np.int64)})
        return np.asarray(vectors, np.float32)
