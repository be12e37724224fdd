"""How good bundles are, beside what they cost."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, median

from xsent.bench.grid.child import texts_of, time_each
from xsent.bench.grid.plan import size
from xsent.bench.peers.texts import mixed
from xsent.bench.results import Axis, Measurement
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, XsentError
from xsent.evaluation import tatoeba
from xsent.export.scores import ENGLISH, topic_cells
from xsent.sts import sts
from xsent.tokenizer import Tokenizer

PROTOCOLS = {"tatoeba": "tatoeba", "sib": "sib200", "sts": "stsb"}  # figure and folder
TOKENS, SECONDS = 32, 0.5


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
        folder: Has `tatoeba`, `sib200` or `stsb`, as `xsent evaluate` and `xsent classify evaluate` read them; other
            folders in it do not matter.
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
        languages = [code for code in bundle.languages if len(common) < 2 or code in common]
        axes["languages"] = ",".join(languages)
        encoder, found = SentenceEncoder(path), dict[str, float]()
        costs = {"p50_ms": milliseconds(encoder), "bytes": size(bundle).figures["bytes"]}
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
    """Accuracy of heads trained in English, the mean over the other languages; over English if there is no other."""
    others = [code for code in languages if code != ENGLISH] or [ENGLISH]
    return fmean(cell.accuracy for cell in topic_cells(encoder, folder, others))


def score_similarity(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> float:
    """Spearman's correlation with human scores × 100, the mean over the languages that there is a test of."""
    tested = [code for code in languages if (folder / f"{code}-test.csv").is_file()]
    return 100 * fmean(score.spearman for score in sts(encoder, folder, tested or None).languages)


SCORES: Mapping[str, Callable[[SentenceEncoder, Path, Sequence[str]], float]] = {
    "tatoeba": score_tatoeba,
    "sib": score_topics,
    "sts": score_similarity,
}


def milliseconds(encoder: SentenceEncoder) -> float:
    """The median time of a sentence of up to 32 tokens, tokenisation included."""
    tokenizer, tokens = Tokenizer(encoder.bundle.tokenizer_path), min(TOKENS, encoder.max_length)
    return median(time_each(encoder, texts_of(tokenizer, tokens, mixed(1000)), SECONDS))
