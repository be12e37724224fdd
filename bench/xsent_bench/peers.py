"""Ours beside other systems, in turns, each turn in a fresh process."""

import json
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path

import numpy as np

from xsent.bundle import TOKENIZER, Bundle, file_digest
from xsent.errors import DataError, XsentError, in_one_line, require_extra
from xsent.files.atomic import atomic_folder
from xsent_bench.grid import Say, take_turns
from xsent_bench.processes import silent
from xsent_bench.report import PEER, PEER_FIGURES
from xsent_bench.results import Measurement
from xsent_bench.systems import BARE, MINILM, OURS, SMALL, STATIC, SYSTEMS
from xsent_bench.turn import Task, Turn
from xsent_export.formats.tokenizer import write_tokenizer
from xsent_train.data.vocabulary import ModelProto, SentencePiece
from xsent_train.model import ModelConfig

ENCODES = ("sentences_per_second", "latency_ms")  # what a bare process does not
# Rows of the table, which are the pieces of its tokenizer, their width, and layers. The table of all-MiniLM-L6 has
# 30,522 rows; the tokenizer here is ours.
SHAPES = {MINILM: (250_037, 384, 12), SMALL: (48_000, 384, 6), STATIC: (500_353, 256, 0)}
LONGEST = 512  # tokens
# Korean syllables: none of our texts has one, so that no piece made of them is ever used.
FIRST, SYLLABLES = ord("가"), 11_172
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def beside_others(
    bundle: Path, work: Path, *, only: Sequence[str], turns: int, number: int, note: Say, fail: Say
) -> Iterator[Measurement]:
    """Compare a bundle with other systems, each in turns with so many sentences; Ctrl-C gives what was measured.

    Their models are kept in `work`, and used again. Of `SYSTEMS` those named run, or all; ours always. How each runs is
    noted; what cannot be measured is told, and left out of the turns after.
    """
    if unknown := [name for name in only if name not in SYSTEMS]:
        raise DataError(f"no system {', '.join(unknown)}; there are {', '.join(SYSTEMS)}")
    names = [name for name in SYSTEMS if name in (OURS, *only) or not only]
    tasks, found, ours = dict[str, Task](), dict[str, list[Turn]](), Bundle.open(bundle)
    try:
        for name in names:
            try:
                with require_extra("peers"):
                    tasks[name] = Task(str(_prepare(name, ours, work)), name, sentences=number)
            except Exception as error:  # whatever a package raises that writes its model
                fail(f"{name}: {_reason(error)}")
        models, found = {name: task.folder for name, task in tasks.items()}, {name: [] for name in tasks}
        for _ in range(turns):
            take_turns(tasks, found, fail)
    finally:
        for name in (name for name, done in found.items() if done):
            note(f"{PEER}{name}: {SYSTEMS[name].settings}.")
            yield _measurement(name, models[name], found[name])


def _measurement(name: str, folder: str, turns: Sequence[Turn]) -> Measurement:
    """The medians over the turns of a system."""
    model = "none" if name == BARE else SYSTEMS[name].model
    model = model if model in (*SHAPES, "none") else Bundle.open(Path(folder)).name
    figures = [figure for figure in PEER_FIGURES if name != BARE or figure not in ENCODES]
    by_turn = [{figure: vars(turn)[figure] for figure in figures} for turn in turns]
    return Measurement.of_turns("peers", {"system": name, "model": model}, by_turn)


def _prepare(name: str, ours: Bundle, work: Path) -> Path:
    """The folder of what a system runs."""
    for package in SYSTEMS[name].needs:
        version(package)  # raises if it is missing
    model = SYSTEMS[name].model
    return write_model(model, ours.tokenizer_path, work) if model else ours.path


def write_model(name: str, tokenizer: Path, work: Path) -> Path:
    """A model of `SHAPES` with random weights in `work`, made if it is not there, or with another tokenizer.

    What it says is nonsense, what it costs is not. Our SentencePiece model is filled up to its number of pieces: all
    systems then read as many tokens, and each loads a tokenizer of its true size.
    """
    folder, (pieces, width, layers) = work / name, SHAPES[name]
    mark, made = folder / "made-of", file_digest(tokenizer)
    if mark.is_file() and mark.read_text() == made:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    with atomic_folder(folder) as partial:
        fill_vocabulary(tokenizer, pieces, partial / TOKENIZER)
        write_tokenizer(partial / TOKENIZER, partial, ModelConfig(pieces, num_layers=0, max_length=LONGEST))
        if layers:
            write_bert(pieces, width, layers, partial)
        else:
            write_static(pieces, width, partial)
        (partial / mark.name).write_text(made)
    return folder


def fill_vocabulary(model: Path, size: int, path: Path) -> None:
    """Write a SentencePiece model with pieces added up to a size: it loads and weighs as one of that size does.

    Three syllables are as long in bytes as the pieces of a large multilingual vocabulary.
    """
    proto = ModelProto.FromString(model.read_bytes())
    least, have = min(piece.score for piece in proto.pieces), {piece.piece for piece in proto.pieces}
    parts = ((number, 7919 * number, number // SYLLABLES) for number in count())  # no two numbers share a piece
    texts = ("".join(chr(FIRST + part % SYLLABLES) for part in three) for three in parts)
    for text in islice((text for text in texts if text not in have), max(0, size - len(have))):
        proto.pieces.append(SentencePiece(piece=text, score=least))
    path.write_bytes(proto.SerializeToString(deterministic=True))


def write_static(pieces: int, width: int, folder: Path) -> None:
    """A table alone, as model2vec reads it."""
    from safetensors.numpy import save_file

    table = np.random.default_rng(0).standard_normal((pieces, width), np.float32)
    save_file({"embeddings": table}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True}))


def write_bert(pieces: int, width: int, layers: int, folder: Path) -> None:
    """A BERT in float32 for transformers, and as `onnx/model.onnx` in int8 by ONNX Runtime's own tools."""
    import torch  # not above: what is missing is missed only here
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import BertConfig, BertModel

    shape = {"hidden_size": width, "intermediate_size": 4 * width, "num_hidden_layers": layers}
    torch.manual_seed(0)
    config = BertConfig(vocab_size=pieces, num_attention_heads=12, max_position_embeddings=LONGEST, **shape)
    bert, ids = BertModel(config, add_pooling_layer=False).eval(), torch.ones(2, 8, dtype=torch.long)

    class LastStates(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bert = bert

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            states: torch.Tensor = self.bert(**dict(zip(INPUTS, inputs, strict=True))).last_hidden_state
            return states

    (folder / "onnx").mkdir()
    whole = folder / "onnx" / "whole.onnx"
    with silent():
        bert.save_pretrained(folder)
        torch.onnx.export(
            LastStates().eval(),
            (ids, ids, torch.zeros_like(ids)),
            str(whole),
            input_names=[*INPUTS],
            output_names=["states"],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in (*INPUTS, "states")},
            dynamo=False,
        )
        quantize_dynamic(whole, folder / "onnx" / "model.onnx", weight_type=QuantType.QInt8)
    whole.unlink()


def _reason(error: Exception) -> str:
    """An exception in one line for people."""
    text = in_one_line(error)
    return text if isinstance(error, XsentError) else f"{type(error).__name__}: {text}"
