"""The time of encoding, for pytest-benchmark: one sentence by its tokens, many, and opening; by layers.

`pytest bench` in the repository, `pytest --pyargs xsent_bench` where it is installed. It measures the built-in
bundle, or those in the variable XSENT_BUNDLES, separated as in PATH, at each of their depths.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle, builtin_path
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError
from xsent.tokenizer import Tokenizer
from xsent_bench import LENGTHS
from xsent_bench.texts import mixed, sentences, texts_of
from xsent_bench.turns import Task, run_turn

Benchmark = Callable[..., object]


def given() -> dict[int, Path]:
    """The bundle of each depth."""
    paths = [Path(name) for name in os.environ.get("XSENT_BUNDLES", "").split(os.pathsep) if name]
    return {depth: path for path in paths or [builtin_path()] for depth in Bundle.open(path).depths}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One benchmark for each depth; those of one depth are a group."""
    try:
        numbers = sorted(given())
    except BundleError as error:
        raise pytest.UsageError(str(error)) from error
    groups = [pytest.param(number, marks=pytest.mark.benchmark(group=f"{number} layers")) for number in numbers]
    metafunc.parametrize("layers", groups, scope="session")


@pytest.fixture(scope="session")
def encoder(layers: int) -> SentenceEncoder:
    """An encoder of one sentence at a time."""
    return SentenceEncoder(given()[layers], layers=layers, threads=1)


@pytest.mark.parametrize("tokens", LENGTHS)
def test_one_sentence(benchmark: Benchmark, encoder: SentenceEncoder, tokens: int) -> None:
    """One sentence, from text to vector."""
    if tokens > encoder.max_length:
        pytest.skip(f"takes at most {encoder.max_length} tokens")
    benchmark(encoder.encode, *texts_of(tokens, encoder.count_tokens, mixed(1000), 1))


def test_tokenizer(benchmark: Benchmark, encoder: SentenceEncoder) -> None:
    """Only tokenisation, of 32 tokens."""
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    benchmark(tokenizer.encode, *texts_of(32, encoder.count_tokens, mixed(1000), 1))


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
@pytest.mark.parametrize("threads", sorted({1, available_cpus()}))
def test_hundred_sentences(benchmark: Benchmark, layers: int, threads: int) -> None:
    """A hundred sentences as long as real ones, on one thread and on all."""
    benchmark(SentenceEncoder(given()[layers], layers=layers, threads=threads).encode, sentences(100))


def test_opening(benchmark: Any, layers: int) -> None:  # noqa: ANN401  pytest-benchmark's fixture
    """From a folder to the first vector, in a process that has all packages loaded.

    `extra_info` has the start and the memory of a fresh process: pytest itself takes tens of megabytes.
    """
    path = given()[layers]
    benchmark(lambda: SentenceEncoder(path, layers=layers, threads=1).encode("Anna"))
    benchmark.extra_info.update(run_turn(Task(str(path), settings={"layers": layers})).process)
