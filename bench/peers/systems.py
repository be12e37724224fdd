"""The systems that are compared, each as people use it, on one thread unless it says.

What opens a system loads what it needs itself, so that a process holds one system and nothing else. It returns what has
`encode` for a list of sentences.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xsent.errors import DataError

Form = Literal["given", "no layers", "onnx", "torch", "openvino", "lstm", "static"]

OURS, BARE = "xsent", "bare"
MINILM = "multilingual-MiniLM-L12"
# Sentences at once in plain onnxruntime: the fastest of 1, 8, 16, 32, 64 and 128 here, for an LSTM too.
BATCH = 8


@dataclass(frozen=True)
class System:
    """A row of the comparison: a system, the model it runs, and how."""

    open: Callable[..., Any]
    form: Form  # what it reads: the given bundle, one of ours without layers, or a model of another system
    model: str  # that model, one of `xsent.bench.peers.shapes.SHAPES`; empty for ours
    settings: str  # how it runs, for the report
    needs: Sequence[str] = ()  # packages without which it does not
    threads: int = 1
    name: str = ""  # in the table, where that is not the key

    @property
    def missing(self) -> str:
        """The first package that it needs and that is not installed; empty if there is none."""
        return next((name for name in self.needs if not _is_installed(name)), "")


def choose(only: Sequence[str]) -> list[str]:
    """The names of the systems that are asked for, in their order; ours always, all unless some are named."""
    if unknown := [name for name in only if name not in SYSTEMS]:
        raise DataError(f"no system {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
    return [name for name in SYSTEMS if name in (OURS, *only) or not only]


def ours(folder: Path, *, backend: str = "onnx", threads: int = 1) -> object:
    """A bundle."""
    from xsent import SentenceEncoder

    return SentenceEncoder(folder, backend=backend, threads=threads)


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


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor the package around it
        return False


_torch = partial(sentence_transformers, backend="torch")
_onnx = partial(sentence_transformers, backend="onnx", file_name="onnx/model.onnx")
_openvino = partial(
    sentence_transformers,
    backend="openvino",
    file_name="openvino/openvino_model.xml",
    ov_config={"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1},
)
_ST = ("sentence_transformers", "transformers")
_SORTED = f"int8, SentencePiece, batches of {BATCH} sorted by length: the fastest of several where we tried"
_ITS_OWN = "float32, its own batches of 32, which it sorts by length"
_SAMPLES = "int8 by NNCF with samples, its own batches of 32"
_ONE_BY_ONE = "int8, batches of 1: the fastest of several where we tried"
_plain, _L6 = plain_onnxruntime, "all-MiniLM-L6"

SYSTEMS: Mapping[str, System] = {  # what a comma would separate in `--only` has none
    OURS: System(ours, "given", "", "one sentence after the other"),
    BARE: System(bare, "given", "", "imports what ours imports, and encodes nothing"),
    "xsent 2 threads": System(partial(ours, threads=2), "given", "", "two sentences at once", threads=2),
    "xsent numpy": System(partial(ours, backend="numpy"), "given", "", "without onnxruntime"),
    "xsent 0 layers": System(ours, "no layers", "", "the table alone, int8, random weights"),
    "onnxruntime": System(_plain, "onnx", MINILM, _SORTED),
    "onnxruntime LaBSE": System(_plain, "onnx", "LaBSE", _SORTED, name="onnxruntime"),
    "onnxruntime LASER2": System(_plain, "lstm", "LASER2", _SORTED, name="onnxruntime"),
    "sentence-transformers torch": System(_torch, "torch", MINILM, _ITS_OWN, _ST),
    "sentence-transformers ONNX": System(
        _onnx, "onnx", MINILM, "int8, its own batches of 32", (*_ST, "optimum.onnxruntime")
    ),
    "sentence-transformers OpenVINO": System(
        _openvino, "openvino", MINILM, _SAMPLES, (*_ST, "optimum.intel", "openvino")
    ),
    "fastembed": System(fastembed, "onnx", _L6, "int8, its own batches of 256", ["fastembed"]),
    "fastembed one by one": System(partial(fastembed, batch_size=1), "onnx", _L6, _ONE_BY_ONE, ["fastembed"]),
    "model2vec": System(model2vec, "static", "potion-multilingual-128M", "float32, as it is published", ["model2vec"]),
}
