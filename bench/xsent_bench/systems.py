"""The systems that are compared, and one turn of a system in a fresh process: python -m xsent_bench.systems TASK.

The function that opens a system imports what it needs, so that a process holds one system and nothing else. It returns
an object with an `encode` for a list of sentences.
"""

import json
import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import cycle, islice, takewhile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from xsent.cpu import time_each
from xsent.errors import DataError
from xsent_bench import OURS
from xsent_bench.processes import answers, peak_memory, resident, say, serve_parent
from xsent_bench.texts import mixed, sentences, texts_of

if TYPE_CHECKING:
    from xsent import SentenceEncoder

logger = logging.getLogger(__name__)

BARE = "bare"
MINILM, SMALL, STATIC = "multilingual-MiniLM-L12", "all-MiniLM-L6", "potion-multilingual-128M"
BATCH = 8  # sentences at once in plain onnxruntime: the fastest of 1, 8, 16, 32, 64 and 128 here

FEWEST, MOST = 20, 1000  # sentences of a length that are timed one by one
ALONE = 200  # sentences of mixed lengths that are timed one by one
BLOCK = 1000  # sentences of a stream that are encoded at once
POINTS = 20  # of a stream at which the memory is read
# No system looks for files outside, and none starts threads of its own for its tokenizer.
ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "RAYON_NUM_THREADS": "1"}

Say = Callable[[str], None]


@dataclass(frozen=True)
class System:
    """A row of the comparison: a system, the model it runs, and how."""

    open: Callable[..., Any]
    model: str  # of another system, see `xsent_bench.peers.SHAPES`; empty for ours
    settings: str  # how it runs, for the report
    needs: Sequence[str] = ()  # packages that it needs
    threads: int = 1  # that numerical libraries may take


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

    from xsent.bundle import TOKENIZER  # here, because a bare process would load what it needs

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
        batches = [run([pieces[i] for i in order[at : at + BATCH]]) for at in range(0, len(order), BATCH)]
        return np.concatenate(batches)[np.argsort(order)]

    return SimpleNamespace(encode=encode)


def fastembed(folder: Path, **options: int) -> object:
    """Fastembed with a model on the disk, by default in its own batches."""
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
    """sentence-transformers with a backend and its options."""
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
_SORTED = f"int8, SentencePiece, batches of {BATCH} sorted by length: the fastest of several where we tried"
_ITS_OWN = "float32, its own batches of 32, which it sorts by length"
_ONE_BY_ONE = "int8, batches of 1: the fastest of several where we tried"

SYSTEMS: Mapping[str, System] = {  # no name has a comma, which separates them in `--only`
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


@dataclass(frozen=True)
class Task:
    """What a process measures."""

    folder: str  # of the model
    system: str = OURS  # one of `SYSTEMS`
    settings: Mapping[str, str | int] = field(default_factory=dict)  # of ours: layers, backend, threads
    lengths: Sequence[int] = ()  # tokens of the sentences that are timed; for ours alone
    seconds: float = 0.5  # for each length, half of them one by one
    sentences: int = 0  # of mixed lengths to encode at once
    stream: int = 0  # sentences over which the memory is watched


@dataclass
class Turn:
    """The figures of one process."""

    first_ms: float = 0.0  # from the start of the process to its first vector
    first_mib: float = 0.0  # its memory after the first vector
    ms: dict[int, list[float]] = field(default_factory=dict)  # of each sentence, by its tokens
    rates: dict[int, float] = field(default_factory=dict)  # sentences a second, of many at once, by their tokens
    latency_ms: float = 0.0  # of a sentence of mixed lengths, the median
    sentences_per_second: float = 0.0  # of mixed lengths, at once
    memory: dict[int, float] = field(default_factory=dict)  # MiB by the sentences encoded
    peak_mib: float = 0.0


def run_turn(task: Task) -> Turn:
    """Measure in a fresh process. Raises DataError with the last message of a process that fails."""
    turn = Turn()
    began = time.perf_counter()
    # One thread for numerical libraries, except where a system leaves sentences to them; ours has threads of its own.
    threads = SYSTEMS[task.system].threads
    for said in answers("xsent_bench.systems", [json.dumps(asdict(task))], threads=threads, environment=ENVIRONMENT):
        if "first_mib" in said:
            turn.first_ms = 1000 * (time.perf_counter() - began)
        if "tokens" in said:
            turn.ms[said["tokens"]] = said["ms"]
            turn.rates[said["tokens"]] = said["rate"]
        elif "after" in said:
            turn.memory[said["after"]] = said["mib"]
        else:
            vars(turn).update(said)
    return turn


def take_turns(tasks: dict[str, Task], found: Mapping[str, list[Turn]], fail: Say) -> None:
    """Run one turn of each task by name; one that fails is reported with `fail` and removed from the tasks."""
    for name in list(tasks):
        logger.info("%s", name)
        try:
            found[name].append(run_turn(tasks[name]))
        except (DataError, OSError) as error:
            fail(f"{name}: {error}")
            del tasks[name]


def measure_task(task: Task) -> None:
    """In a child: measure a system, and say its figures."""
    encoder = SYSTEMS[task.system].open(Path(task.folder), **task.settings)
    encoder.encode(sentences(1))
    seen = [resident()]
    say({"first_mib": seen[0]})
    for facts in _by_length(encoder, task) if task.lengths else ():
        say(facts)
    if task.sentences:
        say(_of_mixed_lengths(encoder, task.sentences))
    for after, mib in _watch_memory(encoder, task.stream):
        seen.append(mib)
        say({"after": after, "mib": mib})
    say({"peak_mib": max(*seen, peak_memory())})


def _by_length(encoder: "SentenceEncoder", task: Task) -> Iterator[dict[str, object]]:
    """Milliseconds of sentences one by one, and their rate a second when they are encoded at once."""
    source = mixed(sys.maxsize)
    half = task.seconds / 2
    for tokens in (tokens for tokens in task.lengths if tokens <= encoder.max_length):
        texts = texts_of(tokens, encoder.count_tokens, source)
        times = time_each(encoder.encode, texts, least=FEWEST, most=MOST, seconds=half)
        began = time.perf_counter()
        until = takewhile(lambda _: time.perf_counter() <= began + half, cycle(texts))  # noqa: B023  used up right here
        rate = sum(1 for _ in encoder.encode_iter(until)) / (time.perf_counter() - began)
        yield {"tokens": tokens, "ms": [round(1000 * taken, 5) for taken in times], "rate": rate}


def _of_mixed_lengths(encoder: Any, number: int) -> dict[str, float]:  # noqa: ANN401  any object with an encode
    """One sentence after the other, then all at once."""
    texts = sentences(max(number, ALONE))
    encoder.encode(texts[:FEWEST])  # warms up
    times = time_each(lambda text: encoder.encode([text]), texts[:ALONE], least=ALONE)
    began = time.perf_counter()
    encoder.encode(texts[:number])
    rate = number / (time.perf_counter() - began)
    return {"latency_ms": 1000 * float(np.median(times)), "sentences_per_second": rate}


def _watch_memory(encoder: Any, number: int) -> Iterator[tuple[int, float]]:  # noqa: ANN401  any object with an encode
    """The memory in MiB after 1,000 sentences, and at points of a stream of `number`."""
    source = mixed(number)
    done = 0
    every = max(BLOCK, number // POINTS // BLOCK * BLOCK)
    while block := list(islice(source, BLOCK)):
        encoder.encode(block)
        done += len(block)
        if done == BLOCK or done % every == 0 or done == number:
            yield done, resident()


if __name__ == "__main__":
    serve_parent()
    measure_task(Task(**json.loads(sys.argv[1])))
