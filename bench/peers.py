"""Ours beside other systems, in turns, each turn in a fresh process."""

import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path

import numpy as np

from xsent.bench.bundles import Bundles
from xsent.bench.grid import memory_of, take_turns
from xsent.bench.machine import Watch, processor_name
from xsent.bench.pages import markdown
from xsent.bench.peak import int8_peak, share_of_peak
from xsent.bench.processes import silent
from xsent.bench.report import PEER, PEER_FIGURES, sections
from xsent.bench.results import Axis, Measurement, Results
from xsent.bench.systems import BARE, MINILM, OURS, SMALL, STATIC, SYSTEMS, TABLE_ALONE
from xsent.bench.turn import Task, Turn, run_turn
from xsent.bundle import TOKENIZER, Bundle, file_digest
from xsent.errors import DataError, XsentError
from xsent.export.huggingface_tokenizer import write_tokenizer
from xsent.files import atomic_folder
from xsent.train.model import ModelConfig
from xsent.train.sentencepiece_proto import ModelProto, SentencePiece

ENCODES = ("sentences_per_second", "latency_ms")  # what a bare process does not
TOKENS = 32
REACHED = (
    f"A sentence of {TOKENS} tokens reaches {{:.0%}} of the {{:.0f}} GOP/s of a large 8-bit matrix product in ONNX "
    "Runtime on one thread; arithmetic counted for every layer on every token."
)
# Rows of the table, which are the pieces of its tokenizer, their width, and layers. The table of all-MiniLM-L6 has
# 30,522 rows; the tokenizer here is ours.
SHAPES = {MINILM: (250_037, 384, 12), SMALL: (48_000, 384, 6), STATIC: (500_353, 256, 0)}
LONGEST = 512  # tokens
# Korean syllables: none of our texts has one, so that no piece made of them is ever used.
FIRST, SYLLABLES = ord("가"), 11_172
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def beside_others(
    bundle: Path,
    work: Path,
    *,
    only: Sequence[str] = (),
    turns: int,
    number: int,
    note: Callable[[str], None],
    fail: Callable[[str], None],
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
                tasks[name] = Task(str(_prepare(name, ours, work)), name, sentences=number)
            except Exception as error:  # whatever a package raises that writes its model
                fail(f"{name}: {_reason(error)}")
        models, found = {name: task.folder for name, task in tasks.items()}, {name: [] for name in tasks}
        for _ in range(turns):
            take_turns(tasks, found, fail)
    finally:
        for name in (name for name, done in found.items() if done):
            note(f"{name}: {SYSTEMS[name].settings}.")
            yield _measurement(name, models[name], found[name])


def measure_peers(
    bundle: Path, work: Path, only: Sequence[str], turns: int, number: int, stream: int, command: str
) -> str:
    """Compare a bundle with other systems, see `beside_others`, and watch its memory over a stream; in Markdown."""
    results = Results(command)
    note, fail = results.notes.append, results.failures.append
    with Watch() as watch:
        results.measurements += beside_others(
            bundle, work, only=only, turns=turns, number=number, note=lambda text: note(PEER + text), fail=fail
        )
    if not any(m.axes["system"] == OURS for m in results.measurements):
        raise DataError(results.failures[0])
    if stream:
        ours = Bundle.open(bundle)
        axes: dict[str, Axis] = {"layers": ours.num_layers, "precision": ours.precision, "backend": "onnx"}
        results.measurements.append(memory_of(axes, run_turn(Task(str(bundle), stream=stream))))
    share, peak = share_of_peak(bundle, int8_peak, TOKENS)
    results.notes += [f"{turns} turns, {number:,} sentences.", REACHED.format(share, peak / 1e9), *watch.warnings()]
    parts = {part.title: part for part in sections(results)}
    shown = [parts[title] for title in ("Peers", "Memory", "To know", "Not measured") if title in parts]
    return markdown("Peers", f"`{command}` on {processor_name()}.", shown)


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
    if model == TABLE_ALONE:
        return Bundles(work, like=ours.path).path(0, "int8")
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

    save_file(
        {"embeddings": np.random.default_rng(0).standard_normal((pieces, width), np.float32)},
        folder / "model.safetensors",
    )
    (folder / "config.json").write_text(json.dumps({"normalize": True}))


def write_bert(pieces: int, width: int, layers: int, folder: Path) -> None:
    """A BERT in float32 for transformers, and as `onnx/model.onnx` in int8 by ONNX Runtime's own tools."""
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=pieces,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=4 * width,
        max_position_embeddings=LONGEST,
    )
    torch.manual_seed(0)
    network, ids, axes = (
        BertModel(config, add_pooling_layer=False).eval(),
        torch.ones(2, 8, dtype=torch.long),
        {0: "batch", 1: "tokens"},
    )
    network.save_pretrained(folder)
    (folder / "onnx").mkdir()
    whole = folder / "onnx" / "whole.onnx"
    with silent():
        torch.onnx.export(
            network,
            (ids, ids, torch.zeros_like(ids)),
            str(whole),
            input_names=INPUTS,
            output_names=["states"],
            dynamic_axes=dict.fromkeys([*INPUTS, "states"], axes),
            dynamo=False,
        )
        quantize_dynamic(whole, folder / "onnx" / "model.onnx", weight_type=QuantType.QInt8)
    whole.unlink()


def _reason(error: Exception) -> str:
    """An exception in one line for people."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'xsent[peers]'"
    text = " ".join(str(error).split())
    return text if isinstance(error, XsentError) else f"{type(error).__name__}: {text}"
