"""How good encoders are, by the runtime's protocols on published test sets, with the costs of bundles."""

import lzma
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from statistics import fmean, median

from xsent.bundle import Bundle
from xsent.classification.topics import ENGLISH, transfer_from_english
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, XsentError
from xsent.evaluation.judgements import sts
from xsent.evaluation.result import Evaluation
from xsent.evaluation.translation import space, tatoeba, xsr
from xsent.files.atomic import atomic_file
from xsent.files.text import read_lines
from xsent.open_model import SupportsEncode
from xsent_bench.bundles import at_each_depth, size
from xsent_bench.results import Axis, Measurement
from xsent_bench.systems import BLOCK, Task, run_turn

# The folder of each score; `across` searches queries by fewer layers among English by all.
FOLDERS = {"tatoeba": "tatoeba", "across": "tatoeba", "sib": "sib200", "sts": "stsb"}
FILES = {"tatoeba": "en-{}.tsv", "across": "en-{}.tsv", "sib": "{}/test.tsv", "sts": "{}-test.csv"}
TOKENS = 32  # of the sentences that are timed


def scores_in(folder: Path) -> list[str]:
    """The scores that a folder has test sets for. Raises DataError if there are none."""
    found = [name for name, place in FOLDERS.items() if (folder / place).is_dir()]
    if not found:
        names = ", ".join(sorted({*FOLDERS.values()}))
        raise DataError(f"{folder}: no test set; expected a folder with one of {names}")
    return found


def measure_quality(bundles: Sequence[Path], folder: Path, fail: Callable[[str], None]) -> Iterator[Measurement]:
    """Scores of bundles, at each of their depths, with the time of a sentence, the memory and the size.

    Each is tested in the languages that all of them have, or in its own if there are none. A score that fails is
    reported, and the others are measured.
    """
    wanted = scores_in(folder)
    common = set.intersection(*(set(Bundle.open(path).languages) for path in bundles))
    names = Counter(path.resolve().name for path in bundles)
    for bundle in (bundle for path in bundles for bundle in at_each_depth(path)):
        name = bundle.path.resolve().name
        unique = name if names[name] == 1 else str(bundle.path)
        languages = [code for code in bundle.languages if len(common) < 2 or code in common]
        axes: dict[str, Axis] = {"bundle": unique, "layers": bundle.layers, "precision": bundle.precision}
        axes["languages"] = ",".join(languages)
        encoder = SentenceEncoder(bundle.path, layers=bundle.layers)
        whole = SentenceEncoder(bundle.path)
        figures = dict[str, float]()
        for score in (score for score in wanted if score != "across" or bundle.layers < bundle.num_layers):
            try:
                figures[score] = mean_score(score, encoder, folder, languages, whole)
            except (XsentError, ValueError) as error:
                fail(f"{score} of {unique}, {bundle.layers} layers: {error}")
        length = min(TOKENS, bundle.max_length)
        settings = {"layers": bundle.layers, "threads": 1}
        turn = run_turn(Task(str(bundle.path), settings=settings, lengths=[length], stream=BLOCK))
        figures |= {"p50_ms": median(turn.ms[length]), "mib_1000": turn.memory[BLOCK]}
        yield Measurement("quality", axes, {**figures, "bytes": size(bundle).figures["bytes"]})


def mean_score(
    score: str, encoder: SupportsEncode, tests: Path, languages: Sequence[str], whole: SupportsEncode
) -> float:
    """The mean over the languages that there is a test for.

    tatoeba is P@1 towards English, which `whole` encodes for across; sib is the accuracy of heads trained in English,
    on English itself if there is no other language; sts is Spearman's correlation with human scores × 100.
    """
    folder = tests / FOLDERS[score]
    tested = [code for code in languages if (folder / FILES[score].format(code)).is_file()]
    if score == "tatoeba":
        return float(tatoeba(encoder, folder, tested or None).mean["xx_en"])  # without files it says what it expects
    if score == "across":
        return float(space(encoder, folder, tested or None, english_by=whole).mean["xx_en"])
    if score == "sts":
        return 100 * float(sts(encoder, folder, tested or None).mean["spearman"])
    return fmean(topics(encoder, folder, [code for code in tested if code != ENGLISH] or [ENGLISH]).values())


def topics(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> dict[str, float]:
    """Accuracy of heads trained on SIB-200 in English, in per cent, by language."""
    return {cell.test: cell.accuracy for cell in transfer_from_english(encoder, folder, languages)}


def by_direction(name: str, measured: Evaluation) -> dict[str, float]:
    """P@1 in both directions of every language, with names for a table."""
    both = {"xx_en": "{}→en", "en_xx": "en→{}"}
    scores = measured.scores.items()
    return {f"{name} {text.format(code)}": found[way] for code, found in scores for way, text in both.items()}


def every_score(encoder: SupportsEncode, tests: Path, small_xsr: Path, languages: Sequence[str]) -> dict[str, float]:
    """The scores of the ablation by name, in per cent.

    The languages are those other than English; XSR and STS-B are measured for the first of them.
    """
    first = languages[0]
    found = by_direction("Tatoeba", tatoeba(encoder, tests / "tatoeba", languages))
    found |= by_direction("XSR", xsr(encoder, small_xsr, [first]))
    accuracy = topics(encoder, tests / "sib200", [ENGLISH, *languages])
    found |= {f"SIB en→{language}": share for language, share in accuracy.items()}
    similar = sts(encoder, tests / "stsb", [ENGLISH, first]).scores
    return found | {f"STS {language}": 100 * figures["spearman"] for language, figures in similar.items()}


def write_small_xsr(source: Path, folder: Path, language: str, distractors: int) -> None:
    """Copy the files of XSR in a language with fewer distractors: the protocol's 200,000 take long."""
    pairs = f"en-{language}.tsv"
    candidates = f"distractors.{language}.txt.xz"
    for name in (pairs, candidates):
        if not (source / name).is_file():
            raise DataError(f"{source / name}: no such file; expected the test set of XSR")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / pairs, folder / pairs)
    lines = islice(read_lines(source / candidates), distractors)
    with atomic_file(folder / candidates) as file:
        file.write(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
