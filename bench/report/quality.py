"""How good bundles are, beside what they cost."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from xsent.backends import default_backend, open_backend
from xsent.bench.grid.plan import size
from xsent.bench.latency import some_ids, timed
from xsent.bench.quality import text_similarity, topics
from xsent.bench.results import Axis, Measurement
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation import tatoeba

PROTOCOLS = {"tatoeba": "tatoeba", "sib": "sib200", "sts": "stsb"}  # figure and folder
TOKENS, TIMES = 32, 200


def check_tests(folder: Path) -> list[str]:
    """The figures that a folder has the test sets of.

    Raises:
        DataError: It has none.
    """
    found = [name for name, place in PROTOCOLS.items() if (folder / place).is_dir()]
    if not found:
        raise DataError(f"{folder}: no test set; expected a folder with one of {', '.join(PROTOCOLS.values())}")
    return found


def measure_quality(bundles: Sequence[Path], folder: Path) -> Iterator[Measurement]:
    """Scores of bundles with the time of a sentence and the size of each, one bundle after the other.

    Args:
        bundles: Their folders.
        folder: Has `tatoeba`, `sib200` or `stsb`, see `xsent.bench.quality`; other folders in it do not matter.

    Raises:
        XsentError: A bundle or a test set is missing or damaged.
    """
    wanted = check_tests(folder)
    names = Counter(path.resolve().name for path in bundles)
    for path in bundles:
        bundle, name = Bundle.open(path), path.resolve().name
        named = name if names[name] == 1 else str(path)
        axes: dict[str, Axis] = {"bundle": named, "layers": bundle.num_layers, "precision": bundle.precision}
        costs = {"p50_ms": milliseconds(bundle), "bytes": size(bundle).figures["bytes"]}
        yield Measurement("quality", axes, {**scores(SentenceEncoder(path), folder, wanted), **costs})


def scores(encoder: SentenceEncoder, folder: Path, wanted: Sequence[str]) -> Mapping[str, float]:
    """The mean over the languages that the encoder was trained for and that there is a test of.

    Args:
        encoder: What is measured.
        folder: Has the test sets.
        wanted: Figures: tatoeba (towards English), sib (from English to others), sts.
    """
    found = {}
    others = [language for language in encoder.languages if language != "en"]
    if "tatoeba" in wanted:
        found["tatoeba"] = tatoeba(encoder, folder / PROTOCOLS["tatoeba"]).xx_en
    if "sib" in wanted:
        place = folder / PROTOCOLS["sib"]
        tested = [language for language in others if (place / language / "test.tsv").is_file()] or ["en"]
        found["sib"] = fmean(topics(encoder, place, tested).accuracy.values())
    if "sts" in wanted:
        place = folder / PROTOCOLS["sts"]
        files = [file for code in encoder.languages if (file := place / f"{code}-test.csv").is_file()]
        if files:
            found["sts"] = fmean(text_similarity(encoder, file) for file in files)
    return found


def milliseconds(bundle: Bundle) -> float:
    """The median time of a sentence of up to 32 tokens, its tokens given, on one thread."""
    embed = open_backend(default_backend(), bundle).embed
    length = min(TOKENS, bundle.max_length)
    sentences = [some_ids(bundle.vocab_size, length, seed) for seed in range(TIMES)]
    for ids in sentences[:20]:
        timed(embed, ids)
    return 1000 * median(timed(embed, ids) for ids in sentences)
