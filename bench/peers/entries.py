"""The rows of the comparison: a system, the model it runs, and how."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from xsent.bench.peers.systems import BATCH
from xsent.errors import DataError

Form = Literal["given", "no layers", "onnx", "torch", "openvino", "lstm", "static"]

OURS, BARE = "xsent", "bare"
MINILM = "multilingual-MiniLM-L12"


@dataclass(frozen=True)
class Entry:
    """A row.

    Attributes:
        system: One of `xsent.bench.peers.systems.SYSTEMS`.
        form: What it reads: the given bundle, one of ours without layers, or a model of another system.
        model: That model, one of `xsent.bench.peers.shapes.SHAPES`; empty for ours.
        settings: How it runs, for the report.
        needs: Packages without which it does not.
    """

    system: str
    form: Form
    model: str
    settings: str
    needs: Sequence[str] = ()


_SORTED = f"int8, SentencePiece, batches of {BATCH} sorted by length: the fastest of several where we tried"
_ST = ("sentence_transformers", "transformers")
# What a comma would separate in `--only` has none.
ENTRIES: Mapping[str, Entry] = {
    OURS: Entry(OURS, "given", "", "one sentence after the other"),
    BARE: Entry(BARE, "given", "", "imports what ours imports, and encodes nothing"),
    "xsent 2 threads": Entry("xsent 2 threads", "given", "", "two sentences at once"),
    "xsent numpy": Entry("xsent numpy", "given", "", "without onnxruntime"),
    "xsent 0 layers": Entry("xsent 0 layers", "no layers", "", "the table alone, int8, random weights"),
    "onnxruntime": Entry("onnxruntime", "onnx", MINILM, _SORTED),
    "onnxruntime LaBSE": Entry("onnxruntime", "onnx", "LaBSE", _SORTED),
    "onnxruntime LASER2": Entry("onnxruntime", "lstm", "LASER2", _SORTED),
    "sentence-transformers torch": Entry(
        "sentence-transformers torch", "torch", MINILM, "float32, its own batches of 32, which it sorts by length", _ST
    ),
    "sentence-transformers ONNX": Entry(
        "sentence-transformers ONNX", "onnx", MINILM, "int8, its own batches of 32", (*_ST, "optimum.onnxruntime")
    ),
    "sentence-transformers OpenVINO": Entry(
        "sentence-transformers OpenVINO",
        "openvino",
        MINILM,
        "int8 by NNCF with samples, its own batches of 32",
        (*_ST, "optimum.intel", "openvino"),
    ),
    "fastembed": Entry("fastembed", "onnx", "all-MiniLM-L6", "int8, its own batches of 256", ["fastembed"]),
    "fastembed one by one": Entry(
        "fastembed one by one",
        "onnx",
        "all-MiniLM-L6",
        "int8, batches of 1: the fastest of several where we tried",
        ["fastembed"],
    ),
    "model2vec": Entry("model2vec", "static", "potion-multilingual-128M", "float32, as it is published", ["model2vec"]),
}


def choose(only: Sequence[str]) -> list[str]:
    """The names of the rows that are asked for, in their order; ours always, all unless some are named.

    Raises:
        DataError: There is no such system.
    """
    if unknown := [name for name in only if name not in ENTRIES]:
        raise DataError(f"no system {', '.join(unknown)}; there are {', '.join(ENTRIES)}")
    return [name for name in ENTRIES if name in (OURS, *only) or not only]


def missing(entry: Entry) -> str:
    """The first package that an entry needs and that is not installed; empty if there is none."""
    return next((name for name in entry.needs if not _is_installed(name)), "")


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # nor the package around it
        return False
