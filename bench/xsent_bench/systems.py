"""The systems that are compared, each as people use it, on one thread unless it says.

What opens a system loads what it needs itself, so that a process holds one system and nothing else. It returns what has
`encode` for a list of sentences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

OURS, BARE = "xsent", "bare"
MINILM, SMALL, STATIC = "multilingual-MiniLM-L12", "all-MiniLM-L6", "potion-multilingual-128M"
TOGETHER = 8  # sentences at once in plain onnxruntime: the fastest of 1, 8, 16, 32, 64 and 128 here


@dataclass(frozen=True)
class System:
    """A row of the comparison: a system, the model it runs, and how."""

    open: Callable[..., Any]
    model: str  # of another system, see `xsent_bench.peers.SHAPES`; of ours, if empty
    settings: str  # how it runs, for the report
    needs: Sequence[str] = ()  # packages without which it does not
    threads: int = 1


def ours(folder: Path, *, layers: int | None = None, backend: str = "onnx", threads: int = 1) -> object:
    """A bundle, at one of its depths."""
    from xsent import SentenceEncoder

    return SentenceEncoder(folder, layers=layers, backend=backend, threads=threads)


def bare(folder: Path) -> object:
    """A process that imports what ours imports, and encodes nothing."""
    import onnxruntime  # noqa: F401
    import sentencepiece  # noqa: F401

    return SimpleNamespace(encode=lambda sentences: np.zeros((len(sentences), 1)))


def plain_onnxruntime(folder: Path) -> object:
    """A graph in plain onnxruntime: SentencePiece, batches of sentences of about one length, the mean of its states."""
    import onnxruntime
    import sentencepiece

    from xsent.bundle import TOKENIZER  # not above: a bare process would load what it needs

    processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / TOKENIZER))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "onnx" / "model.onnx", options, providers=["CPUExecutionProvider"])
    inputs = [value.name for value in session.get_inputs()]

    def run(batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        longest = max(map(len, batch))
        ids = np.array([[*pieces, *[0] * (longest - len(pieces))] for pieces in batch], np.int64)
        mask = (np.arange(longest) < np.array([[len(pieces)] for pieces in batch])).astype(np.int64)
        values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = session.run(None, {name: values[name] for name in inputs})
        vectors = (states * mask[:, :, None]).sum(axis=1)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def encode(sentences: Sequence[str]) -> NDArray[np.float32]:
        pieces = processor.encode(list(sentences))
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        parts = [run([pieces[i] for i in order[at : at + TOGETHER]]) for at in range(0, len(order), TOGETHER)]
        return np.concatenate(parts)[np.argsort(order)]

    return SimpleNamespace(encode=encode)


def fastembed(folder: Path, **options: int) -> object:
    """Fastembed with a model on the disk, in batches as large as it makes them unless said."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(
        model="local/shape",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(url="file:///nowhere"),
        dim=384,
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding("local/shape", specific_model_path=str(folder), threads=1)
    return SimpleNamespace(encode=lambda sentences: np.array(list(model.embed(list(sentences), **options))))


def sentence_transformers(folder: Path, backend: str, **options: object) -> object:
    """sentence-transformers with a backend and what that is told."""
    from sentence_transformers import SentenceTransformer

    if backend == "onnx":
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        options = {"provider": "CPUExecutionProvider", "session_options": settings, **options}
    model = SentenceTransformer(str(folder), device="cpu", backend=backend, model_kwargs=options)
    return SimpleNamespace(encode=lambda sentences: model.encode(list(sentences), normalize_embeddings=True))


def model2vec(folder: Path) -> object:
    """A table alone in model2vec."""
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)
    return SimpleNamespace(encode=lambda sentences: model.encode(list(sentences), use_multiprocessing=False))


_ST = "sentence-transformers"
_torch = partial(sentence_transformers, backend="torch")
_onnx = partial(sentence_transformers, backend="onnx", file_name="onnx/model.onnx")
_SORTED = f"int8, SentencePiece, batches of {TOGETHER} sorted by length: the fastest of several where we tried"
_ITS_OWN = "float32, its own batches of 32, which it sorts by length"
_ONE_BY_ONE = "int8, batches of 1: the fastest of several where we tried"

SYSTEMS: Mapping[str, System] = {  # what a comma would separate in `--only` has none
    OURS: System(ours, "", "one sentence after the other"),
    BARE: System(bare, "", "imports what ours imports, and encodes nothing"),
    "xsent 2 threads": System(partial(ours, threads=2), "", "two sentences at once", threads=2),
    "xsent numpy": System(partial(ours, backend="numpy"), "", "without onnxruntime"),
    "xsent 0 layers": System(partial(ours, layers=0), "", "its table alone"),
    "onnxruntime": System(plain_onnxruntime, MINILM, _SORTED),
    "sentence-transformers torch": System(_torch, MINILM, _ITS_OWN, [_ST]),
    "sentence-transformers ONNX": System(_onnx, MINILM, "int8, its own batches of 32", [_ST, "optimum-onnx"]),
    "fastembed": System(fastembed, SMALL, "int8, its own batches of 256", ["fastembed"]),
    "fastembed one by one": System(partial(fastembed, batch_size=1), SMALL, _ONE_BY_ONE, ["fastembed"]),
    "model2vec": System(model2vec, STATIC, "float32, as it is published", ["model2vec"]),
}
