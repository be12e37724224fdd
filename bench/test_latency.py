"""What one sentence takes, by its tokens."""

from collections.abc import Callable

import pytest

from xsent.bench.grid import LENGTHS
from xsent.bench.grid.child import text_of
from xsent.bench.peers.texts import mixed
from xsent.encoder import SentenceEncoder
from xsent.tokenizer import Tokenizer

Benchmark = Callable[..., object]


@pytest.mark.parametrize("tokens", LENGTHS)
def test_one_sentence(benchmark: Benchmark, encoder: SentenceEncoder, tokens: int) -> None:
    """A sentence of so many tokens, from text to vector."""
    if tokens > encoder.max_length:
        pytest.skip(f"takes at most {encoder.max_length} tokens")
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    text = text_of(lambda text: len(tokenizer.encode(text)), tokens, mixed(1000))
    benchmark(encoder.encode, text)


def test_tokenizer(benchmark: Benchmark, encoder: SentenceEncoder) -> None:
    """The part of it that cuts 32 tokens out of a text."""
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    text = text_of(lambda text: len(tokenizer.encode(text)), 32, mixed(1000))
    benchmark(tokenizer.encode, text)
