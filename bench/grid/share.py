"""Where the time of a sentence goes, and how near it comes to what the machine can do, on one thread.

python -m xsent.bench.grid.share INT8-BUNDLE [FLOAT32-BUNDLE]
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from xsent.bench.peers.peak import TURNS, fastest, float_peak, matrix_peak, share_of_peak
from xsent.bench.peers.texts import sentences
from xsent.bench.processes import answer_alone, end_with_parent
from xsent.encoder import SentenceEncoder
from xsent.tokenizer import Tokenizer

ARRAY = 2**24  # numbers in each of two arrays: 128 MiB in all, more than any cache


def tokenisation_share(bundle: Path) -> float:
    """The share of the time of sentences, as long as real ones, that cutting them into tokens takes."""
    encoder, texts = SentenceEncoder(bundle, threads=1), sentences(100)
    tokenizer = Tokenizer(encoder.bundle.tokenizer_path)
    ratios = [seconds(tokenizer.encode, texts) / seconds(encoder.encode, texts) for _ in range(TURNS + 1)]
    return median(ratios[1:])  # the first warms up


def seconds(encode: Callable[[str], object], texts: list[str]) -> float:
    """Seconds of all texts, one by one."""
    began = time.perf_counter()
    for text in texts:
        encode(text)
    return time.perf_counter() - began


def bandwidth(numbers: int = ARRAY, rounds: int = 5) -> float:
    """GiB that one thread reads from memory in a second, the best of all rounds."""
    left, right = np.ones(numbers, np.float32), np.ones(numbers, np.float32)
    return (left.nbytes + right.nbytes) / 2**30 / fastest(lambda: np.dot(left, right), rounds)


def shares(int8: Path, float32: Path | None) -> dict[str, float]:
    """The figures of an encoder.

    Args:
        int8: Its bundle in 8 bits.
        float32: That in float32, for the distance to the float peak; left out without.
    """
    figures = {"tokenisation": tokenisation_share(int8), "int8_peak": share_of_peak(int8, matrix_peak)[0]}
    if float32 is not None:
        figures["float_peak"] = share_of_peak(float32, float_peak)[0]
    return {**figures, "gib_per_second": bandwidth()}


def main() -> None:
    """Say the figures of the bundles on the command line as a line of JSON."""
    end_with_parent()
    answer_alone()
    int8, *others = (Path(name) for name in sys.argv[1:])
    sys.stdout.write(json.dumps(shares(int8, others[0] if others else None)) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
