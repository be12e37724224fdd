"""How good bundles are, beside what they cost."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from xsent.backends import default_backend, open_backend
from xsent.bench.grid.plan import size
from xsent.bench.latency import some_ids, timed
from xsent.bench.quality import text_similarity, topics
from xsent.bench.results import Axis, Measurement
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, XsentError
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


def measure_quality(bundles: Sequence[Path], folder: Path, fail: Callable[[str], None]) -> Iterator[Measurement]:
    """Scores of bundles with the time of a sentence and the size of each, one bundle after the other.

    Args:
        bundles: Their folders. Each is tested in the languages that all of them have, or in its own if there is none.
        folder: Has `tatoeba`, `sib200` or `stsb`, see `xsent.bench.quality`; other folders in it do not matter.
        fail: Is told which test of a bundle failed, and why.

    Raises:
        XsentError: A bundle is missing or damaged, or there are no tests.
    """
    wanted = check_tests(folder)
    common = set.intersection(*(set(Bundle.open(path).languages) for path in bundles))
    names = Counter(path.resolve().name for path in bundles)
    for path in bundles:
        bundle, name = Bundle.open(path), path.resolve().name
        named = name if names[name] == 1 else str(path)
        axes: dict[str, Axis] = {"bundle": named, "layers": bundle.num_layers, "precision": bundle.precision}
        costs = {"p50_ms": milliseconds(bundle), "bytes": size(bundle).figures["bytes"]}
        languages = [code for code in bundle.languages if len(common) < 2 or code in common]
        axes["languages"] = ",".join(languages)
        encoder, found = SentenceEncoder(path), dict[str, float]()
        for test in wanted:
            try:
                found[test] = SCORES[test](encoder, folder / PROTOCOLS[test], languages)
            except (XsentError, ValueError) as error:
                fail(f"{test} of {named}: {error}")
        yield Measurement("quality", axes, {**found, **costs})


def score_tatoeba(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> float:
    """P@1 towards English, the mean over the languages that there is a test of."""
    tested = [code for code in languages if (folder / f"en-{code}.tsv").is_file()]
    return tatoeba(encoder, folder, tested or None).xx_en  # with none it says what it expects


def score_topics(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> float:
    """Accuracy of a head trained in English, the mean over the other languages; over English if there is no other."""
    others = [code for code in languages if code != "en" and (folder / code / "test.tsv").is_file()]
    return fmean(topics(encoder, folder, others or ["en"]).accuracy.values())


def score_similarity(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> float:
    """Spearman's correlation with human scores × 100, the mean over the languages.

    Raises:
        DataError: There is no test of any.
    """
    files = [file for code in languages if (file := folder / f"{code}-test.csv").is_file()]
    if not files:
        raise DataError(f"{folder}: no LANG-test.csv of {', '.join(languages)}")
    return fmean(text_similarity(encoder, file) for file in files)


SCORES: Mapping[str, Callable[[SentenceEncoder, Path, Sequence[str]], float]] = {
    "tatoeba": score_tatoeba,
    "sib": score_topics,
    "sts": score_similarity,
}


def milliseconds(bundle: Bundle) -> float:
    """The median time of a sentence of up to 32 tokens, its tokens given, on one thread."""
    embed = open_backend(default_backend(), bundle).embed
    length = min(TOKENS, bundle.max_length)
    sentences = [some_ids(bundle.vocab_size, length, seed) for seed in range(TIMES)]
    for ids in sentences[:20]:
        timed(embed, ids)
    return 1000 * median(timed(embed, ids) for ids in sentences)
