"""Turns as measurements."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import median

import numpy as np

from xsent.bench.grid.cells import Turn
from xsent.bench.grid.child import BLOCK
from xsent.bench.results import Axis, Measurement

PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}
STEADY = 50_000  # sentences of a stream, below which its growth is rows of the table that are read for the first time


def latencies(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Iterator[Measurement]:
    """The figures of each length: percentiles over all sentences of all turns, rates as the median turn's.

    A percentile beyond which there would be no whole sentence is left out.
    """
    for tokens in turns[0].ms:
        every = [one.ms[tokens] for one in turns]
        together = [ms for one in every for ms in one]
        shares = {name: share for name, share in PERCENTILES.items() if (100 - share) * len(together) >= 100}
        figures = {name: percentile(together, share) for name, share in shares.items()}
        by_turn = {name: [percentile(ms, share) for ms in every] for name, share in shares.items()}
        rates = [one.rates[tokens] for one in turns]
        figures |= {"sentences_per_second": median(rates), "tokens_per_second": tokens * median(rates)}
        by_turn |= {"sentences_per_second": rates, "tokens_per_second": [tokens * rate for rate in rates]}
        yield Measurement("latency", {**axes, "tokens": tokens}, figures, by_turn)


def percentile(values: Sequence[float], share: float) -> float:
    """A percentile of some times."""
    return float(np.percentile(values, share))


def start(axes: Mapping[str, Axis], turns: Sequence[Turn]) -> Measurement:
    """The first vector of a process."""
    by_turn = {"first_ms": [one.first_ms for one in turns], "first_mib": [one.first_mib for one in turns]}
    return Measurement("start", axes, {name: median(values) for name, values in by_turn.items()}, by_turn)


def memory(axes: Mapping[str, Axis], turn: Turn) -> Measurement:
    """The memory over a stream, with the slope of its second half if it is long enough to be steady by then."""
    shown = {number: mib for number, mib in turn.memory.items() if number in (BLOCK, max(turn.memory))}
    figures = {"mib_1": turn.first_mib, **{f"mib_{number}": mib for number, mib in shown.items()}}
    half = [(number, mib) for number, mib in turn.memory.items() if number >= max(turn.memory) / 2]
    if max(turn.memory) >= STEADY:
        (first, before), (last, after) = half[0], half[-1]
        figures["slope_mib"] = (after - before) / (last - first) * 10_000
    return Measurement("memory", axes, {**figures, "peak_mib": turn.peak_mib})
