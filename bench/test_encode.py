"""What many sentences take, and what it takes to open an encoder."""

from collections.abc import Callable
from pathlib import Path

import pytest

from xsent.bench.peers.texts import sentences
from xsent.encoder import SentenceEncoder
from xsent.threads import available_cpus

Benchmark = Callable[..., object]


def encode_new(path: Path) -> object:
    """Open an encoder and encode a sentence."""
    return SentenceEncoder(path, threads=1).encode("Anna")


@pytest.mark.filterwarnings("ignore::xsent.options.LongSentenceWarning")
@pytest.mark.parametrize("threads", sorted({1, available_cpus()}))
def test_hundred_sentences(benchmark: Benchmark, path: Path, threads: int) -> None:
    """A hundred sentences as long as real ones, on one thread and on all."""
    benchmark(SentenceEncoder(path, threads=threads).encode, sentences(100))


def test_opening(benchmark: Benchmark, path: Path) -> None:
    """From a folder to the first vector, in a process that has all packages loaded."""
    benchmark(encode_new, path)
