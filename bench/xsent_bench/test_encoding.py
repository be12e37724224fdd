"""The time of encoding, for pytest-benchmark: one sentence by its tokens, many, and opening; by layers.

`pytest bench` in the repository, `pytest --pyargs xsent_bench` where it is installed. It measures the built-in
bundle, or those in the variable XSENT_BUNDLES, separated as in PATH, at each of their depths.
"""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, counted
from xsent.tokenizer import Tokenizer
from xsent_bench import LENGTHS
from xsent_bench.results import named, system_name
from xsent_bench.texts import mixed, sentences, texts_of
from xsent_bench.turns import Task, run_turn

Benchmark = Callable[..., object]


def given() -> dict[str, Path]:
    """The bundles to measure by name."""
    paths = [Path(name) for name in os.environ.get("XSENT_BUNDLES", "").split(os.pathsep) if name]
    return named(paths or [builtin_path()])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One benchmark for each bundle and depth, named after the depth, and after the bundle if there are several."""
    try:
        bundles = given()
        depths = [(system, layers) for system, path in bundles.items() for layers in sorted(Bundle.open(path).depths)]
    except BundleError as error:
        raise pytest.UsageError(str(error)) from error
    ids = [
        counted(layers, "layer") if len(bundles) == 1 else system_name({"system": system, "layers": layers})
        for system, layers in depths
    ]
    metafunc.parametrize(("system", "layers"), depths, ids=ids, scope="session")


@pytest.fixture(scope="session")
def encoder(system: str, layers: int) -> SentenceEncoder:
    """An encoder of one sentence at a time."""
    return SentenceEncoder(given()[system], layers=layers, threads=1)


@pytest.fixture(scope="session")
def process(system: str, layers: int) -> dict[str, float]:
    """The start and the memory of a fresh process: pytest itself takes tens of megabytes."""
    return run_turn(Task(str(given()[system]), settings={"layers": layers})).process


@pytest.mark.parametrize(
    "tokens",
    [
        pytest.param(n, id=f"{n} tokens", marks=pytest.mark.benchmark(group=f"one sentence of {n} tokens"))
        for n in LENGTHS
    ],
)
def test_one_sentence(benchmark: Benchmark, encoder: SentenceEncoder, tokens: int) -> None:
    """One sentence, from text to vector."""
    if tokens > encoder.max_length:
        pytest.skip(f"takes at most {encoder.max_length} tokens")
    benchmark(encoder.encode, *texts_of(tokens, encoder.count_tokens, mixed(1000), 1))


@pytest.mark.benchmark(group="tokenisation of 32 tokens")
def test_tokenizer(benchmark: Benchmark, encoder: SentenceEncoder) -> None:
    """Only tokenisation, of 32 tokens."""
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    benchmark(tokenizer.encode, *texts_of(32, encoder.count_tokens, mixed(1000), 1))


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.parametrize(
    "threads",
    [
        pytest.param(
            n, id=counted(n, "thread"), marks=pytest.mark.benchmark(group=f"100 sentences on {counted(n, 'thread')}")
        )
        for n in sorted({1, available_cpus()})
    ],
)
def test_hundred_sentences(benchmark: Benchmark, system: str, layers: int, threads: int) -> None:
    """A hundred sentences as long as real ones, on one thread and on all."""
    benchmark(SentenceEncoder(given()[system], layers=layers, threads=threads).encode, sentences(100))


@pytest.mark.benchmark(group="from a folder to the first vector")
def test_opening(benchmark: Benchmark, system: str, layers: int) -> None:
    """From a folder to the first vector, in a process that has all packages loaded."""
    path = given()[system]
    benchmark(lambda: SentenceEncoder(path, layers=layers, threads=1).encode("Anna"))
