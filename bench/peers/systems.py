"""The systems that are compared, each as people use it, on one thread.

Each function loads what it needs itself, so that a process holds one system and nothing else, and returns what encodes
a list of sentences.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Sentences at once in plain onnxruntime: the fastest of 1, 8, 16, 32, 64 and 128 here, for an LSTM too.
BATCH = 8
Encode = Callable[[Sequence[str]], Any]


def ours(folder: Path, *, backend: str = "onnx", threads: int = 1) -> Encode:
    """A bundle."""
    from xsent import SentenceEncoder

    return SentenceEncoder(folder, backend=backend, threads=threads).encode


def bare(folder: Path) -> Encode:
    """A process that imports what ours imports, and encodes nothing."""
    import onnxruntime  # noqa: F401
    import sentencepiece  # noqa: F401

    return lambda sentences: np.zeros((len(sentences), 1))


def plain_onnxruntime(folder: Path) -> Encode:
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
        (found,) = session.run(None, {name: values[name] for name in inputs})
        # One that pools by itself gives no states.
        vectors = found if found.ndim == 2 else (found * mask[:, :, None]).sum(axis=1)
        unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return unit

    def encode(sentences: Sequence[str]) -> NDArray[np.float32]:
        pieces = processor.encode(list(sentences))
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        parts = [run([pieces[i] for i in order[at : at + BATCH]]) for at in range(0, len(order), BATCH)]
        return np.concatenate(parts)[np.argsort(order)]

    return encode


def fastembed(folder: Path, *, batch: int | None = None) -> Encode:
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
    options = {} if batch is None else {"batch_size": batch}
    return lambda sentences: np.array(list(model.embed(list(sentences), **options)))


def sentence_transformers(folder: Path, backend: str, **options: object) -> Encode:
    """sentence-transformers with a backend and what that is told."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", backend=backend, model_kwargs=options)
    return lambda sentences: model.encode(list(sentences), normalize_embeddings=True)


def sentence_transformers_onnx(folder: Path) -> Encode:
    """sentence-transformers with its ONNX backend."""
    import onnxruntime

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    file, provider = "onnx/model.onnx", "CPUExecutionProvider"
    return sentence_transformers(folder, "onnx", file_name=file, provider=provider, session_options=settings)


def sentence_transformers_openvino(folder: Path) -> Encode:
    """sentence-transformers with its OpenVINO backend."""
    settings = {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    return sentence_transformers(folder, "openvino", file_name="openvino/openvino_model.xml", ov_config=settings)


def model2vec(folder: Path) -> Encode:
    """A table alone in model2vec."""
    from model2vec import StaticModel

    model = StaticModel.from_pretrained(folder)
    return lambda sentences: model.encode(list(sentences), use_multiprocessing=False)


SYSTEMS: Mapping[str, Callable[[Path], Encode]] = {
    "xsent": ours,
    "xsent numpy": lambda folder: ours(folder, backend="numpy"),
    "xsent 2 threads": lambda folder: ours(folder, threads=2),
    "xsent 0 layers": ours,
    "bare": bare,
    "onnxruntime": plain_onnxruntime,
    "sentence-transformers torch": lambda folder: sentence_transformers(folder, "torch"),
    "sentence-transformers ONNX": sentence_transformers_onnx,
    "sentence-transformers OpenVINO": sentence_transformers_openvino,
    "fastembed": fastembed,
    "fastembed one by one": lambda folder: fastembed(folder, batch=1),
    "model2vec": model2vec,
}
