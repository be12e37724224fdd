"""The results of a run that never was: numbers that can be checked by hand."""

from xsent_bench.results import Measurement, Results

LAYERS = (0, 1, 2, 3, 4, 6)
LENGTHS = (32, 8, 256)


def made_up_results() -> Results:
    """A run with something in every group: a sentence takes 0.05 ms, and 0.01 ms a layer and token."""
    return Results(
        "xsent-bench --out x<1>",
        {"processor": "Abacus <3>", "cpus": 2, "governor": "", "versions": {"python": "3.11"}, "threads": {}},
        [*costs(), *others()],
        ["Weights are random."],
        ["onnx of LaBSE: pip install 'xsent[peers]'"],
    )


def costs() -> list[Measurement]:
    found = []
    for layers in LAYERS:
        ours = {"system": "xsent", "layers": layers}
        for tokens in LENGTHS:
            ms = 0.05 + 0.01 * layers * tokens
            figures = {"p50_ms": ms, "p95_ms": 2 * ms, "p99_ms": 3 * ms}
            figures |= {"sentences_per_second": 1000 / ms, "tokens_per_second": 1000 * tokens / ms}
            axes = {**ours, "precision": "int8", "backend": "onnx", "threads": 1, "tokens": tokens}
            found.append(Measurement("latency", axes, figures))
        for precision, mib in (("int8", 70), ("float32", 180)):
            axes = {**ours, "precision": precision, "backend": "onnx"}
            figures = {"mib_1": mib + layers, "mib_1000": mib + 3 + layers, "peak_mib": mib + 9}
            found.append(Measurement("process", axes, {"first_ms": 140 + layers, **figures}))
            if layers == LAYERS[-1]:
                latency = {**axes, "threads": 1, "tokens": 32}
                found += [Measurement("latency", latency, {"p50_ms": 9.0})] * (precision == "float32")
        found.append(Measurement("size", {**ours, "precision": "int8"}, {"bytes": 26e6 + 2e6 * layers}))
    return found


def others() -> list[Measurement]:
    """Systems with their scores, and vectors as they are stored."""
    found = []
    for name, layers, ms, xx_en in (*(("xsent", n, 0.1 + n, 90.0 + n / 2) for n in LAYERS), ("slow", "–", 9.0, 92.5)):
        axes = {"system": name, "layers": layers}
        costs = {"first_ms": 150, "mib_1000": 80, "ms_32_words": ms, "batched_per_second": 1000 / ms, "bytes": 20e6}
        found.append(Measurement("systems", {**axes, "model": "a model"}, costs))
        for language, more in (("en", 5), ("fr", 1), ("de", -1)):
            scores = {"topics": 80.0 + more, "sklearn": 75.0 + more, "similarity": 70.0 + more}
            scores |= {"questions": 60.0 + more, "lost": 5.0 - more, "off_topic": 50.0}
            if language != "en":
                scores |= {"xx_en": xx_en + more, "en_xx": xx_en, "flores": 0.5, "questions_to_en": 55.0}
                scores |= {} if layers in (LAYERS[-1], "–") else {"across": 91.5}
            found.append(Measurement("scores", {**axes, "language": language}, scores))
    random = {"system": "onnxruntime", "layers": "–", "model": "MiniLM, random weights: cost only"}
    found.append(Measurement("systems", random, {"first_ms": 300, "ms_32_words": 0.05}))
    for precision, size in (("float32", 1536), ("int8", 384)):
        figures = {"xx_en": 94.1, "en_xx": 94.2, "vector_size": size}
        found.append(Measurement("stored", {"dimensions": 384, "precision": precision}, figures))
    found += [Measurement("kept", {"layers": n}, {"kept_bundle": 97.0, "kept_bundle_worst": 96.0}) for n in LAYERS]
    return found
