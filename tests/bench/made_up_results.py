"""The results of a run that never was: numbers that can be checked by hand."""

import json
from pathlib import Path

from xsent_bench.results import Measurement, Results

LAYERS = (0, 1, 2, 3, 4, 6)
LENGTHS = (8, 32, 256)


def made_up_results() -> Results:
    """A run with something in every group: a sentence takes 0.05 ms, and 0.01 ms a layer and token."""
    return Results(
        "xsent-bench --out x<1>",
        {"processor": "Abacus <3>", "cpus": 2, "governor": "", "versions": {"python": "3.11"}, "threads": {}},
        [*costs(), *others()],
        ["Weights are random.", "peer fastembed: batches of 256."],
        ["onnx of LaBSE: pip install 'xsent[peers]'"],
    )


def read_results(path: Path) -> Results:
    """What `Results.write` wrote."""
    raw = json.loads(path.read_bytes())
    assert raw.pop("format_version") == 1
    return Results(**{**raw, "measurements": [Measurement(**row) for row in raw["measurements"]]})


def costs() -> list[Measurement]:
    """What our own bundles cost."""
    found = []
    for layers in LAYERS:
        for tokens in LENGTHS:
            ms = 0.05 + 0.01 * layers * tokens
            figures = {"p50_ms": ms, "p95_ms": 2 * ms, "p99_ms": 3 * ms}
            figures |= {"sentences_per_second": 1000 / ms, "tokens_per_second": 1000 * tokens / ms}
            axes = {"layers": layers, "precision": "int8", "backend": "onnx", "threads": 1, "tokens": tokens}
            found.append(Measurement("latency", axes, figures))
        for precision, mib in (("int8", 70), ("float32", 180)):
            axes = {"layers": layers, "precision": precision, "backend": "onnx"}
            figures = {"mib_1": mib + layers, "mib_1000": mib + 3 + layers, "mib_100000": mib + 5 + layers}
            found.append(Measurement("memory", axes, {**figures, "slope_mib": 0.01, "peak_mib": mib + 9}))
            found.append(Measurement("start", axes, {"first_ms": 140 + layers, "first_mib": mib}))
        found.append(Measurement("size", {"layers": layers, "precision": "int8"}, {"bytes": 26e6 + 2e6 * layers}))
    return found


def others() -> list[Measurement]:
    """Everything else."""
    share = {"tokenisation": 0.03, "int8_peak": 0.55, "float_peak": 0.2, "gib_per_second": 12.5}
    found = [Measurement("share", {"layers": 2}, share)]
    for layers, seconds, mib in ((0, 0.1, 500), (1, 0.6, 1000), (6, 1.2, 1500)):
        costs = {"step_seconds": seconds, "pairs_per_second": 128 / seconds, "peak_mib": mib}
        found.append(Measurement("training", {"layers": layers, "batch": 128, "device": "CPU"}, costs))
    for name, layers, ms, size in (("builtin", 0, 0.05, 26e6), ("builtin", 2, 0.69, 30e6), ("other", 2, 0.8, 40e6)):
        across = {} if layers else {"across": 91.5}
        worth = {"sib": 60 + 5 * layers, "sts": 70 + layers, "p50_ms": ms, "bytes": size}
        worth = {"tatoeba": 90.0 + layers, **across, **worth}
        found.append(Measurement("quality", {"bundle": name, "layers": layers, "precision": "int8"}, worth))
    for system, model, rate, first in (("xsent", "builtin", 3000, 150), ("fastembed", "MiniLM", 260, 300)):
        turn = {"sentences_per_second": rate, "first_ms": first}
        found.append(Measurement.of_turns("peers", {"system": system, "model": model}, [turn]))
    return found
