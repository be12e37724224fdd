"""How good encoders are, by the runtime's protocols on published test sets; of bundles, beside what they cost."""

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
from xsent_bench.bundles import at_each_depth
from xsent_bench.grid import size
from xsent_bench.results import Axis, Measurement
from xsent_bench.turn import BLOCK, Task, run_turn

# Figure and folder; `across` is what fewer layers ask and all answer.
PLACES = {"tatoeba": "tatoeba", "across": "tatoeba", "sib": "sib200", "sts": "stsb"}
TOKENS = 32  # of the sentences that are timed


def tests_in(folder: Path) -> list[str]:
    """The figures that a folder has the test sets of; that it has none is a DataError."""
    found = [name for name, place in PLACES.items() if (folder / place).is_dir()]
    if not found:
        raise DataError(f"{folder}: no test set; expected a folder with one of {', '.join(sorted({*PLACES.values()}))}")
    return found


def measure_quality(bundles: Sequence[Path], folder: Path, fail: Callable[[str], None]) -> Iterator[Measurement]:
    """Scores of bundles, at each of their depths, with the time of a sentence, the memory and the size.

    Each is tested in the languages that all of them have, or in its own if there is none. Of the folder `tatoeba`,
    `sib200` and `stsb` are read, as `xsent evaluate` and `xsent classify evaluate` do; what fails is told.
    """
    wanted = tests_in(folder)
    common = set.intersection(*(set(Bundle.open(path).languages) for path in bundles))
    names = Counter(path.resolve().name for path in bundles)
    for bundle in (bundle for path in bundles for bundle in at_each_depth(path)):
        name = bundle.path.resolve().name
        named = name if names[name] == 1 else str(bundle.path)
        axes: dict[str, Axis] = {"bundle": named, "layers": bundle.layers, "precision": bundle.precision}
        languages = [code for code in bundle.languages if len(common) < 2 or code in common]
        axes["languages"] = ",".join(languages)
        encoder, whole = (SentenceEncoder(bundle.path, layers=layers) for layers in (bundle.layers, None))
        found, costs = dict[str, float](), cost(bundle)
        for test in (test for test in wanted if test != "across" or bundle.layers < bundle.num_layers):
            try:
                found[test] = mean_score(test, encoder, folder, languages, whole)
            except (XsentError, ValueError) as error:
                fail(f"{test} of {named}, {bundle.layers} layers: {error}")
        yield Measurement("quality", axes, {**found, **costs})


def cost(bundle: Bundle) -> dict[str, float]:
    """The time of a sentence, the memory and the size of a bundle at its depth."""
    length, settings = min(TOKENS, bundle.max_length), {"layers": bundle.layers, "threads": 1}
    turn = run_turn(Task(str(bundle.path), settings=settings, lengths=[length], stream=BLOCK))
    costs = {"p50_ms": median(turn.ms[length]), "mib_1000": turn.memory[BLOCK]}
    return {**costs, "bytes": size(bundle).figures["bytes"]}


def mean_score(
    test: str, encoder: SupportsEncode, tests: Path, languages: Sequence[str], whole: SupportsEncode
) -> float:
    """The mean over the languages that there is a test of.

    Of P@1 towards English, which `whole` encodes for `across`; of the accuracy of heads trained in English, over
    English itself if there is no other; or of Spearman's correlation with human scores × 100.
    """
    pattern, folder = {"sib": "{}/test.tsv", "sts": "{}-test.csv"}.get(test, "en-{}.tsv"), tests / PLACES[test]
    tested = [code for code in languages if (folder / pattern.format(code)).is_file()]
    if test == "tatoeba":
        return float(tatoeba(encoder, folder, tested or None).mean["xx_en"])  # with none it says what it expects
    if test == "across":
        return float(space(encoder, folder, tested or None, english_by=whole).mean["xx_en"])
    if test == "sts":
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
    """Every protocol, as the ablation reports them: a number by name, in per cent.

    Of the languages, which are those beside English, XSR and STS-B are for the first one alone.
    """
    first, found = languages[0], by_direction("Tatoeba", tatoeba(encoder, tests / "tatoeba", languages))
    found |= by_direction("XSR", xsr(encoder, small_xsr, [first]))
    accuracy = topics(encoder, tests / "sib200", [ENGLISH, *languages])
    found |= {f"SIB en→{language}": share for language, share in accuracy.items()}
    similar = sts(encoder, tests / "stsb", [ENGLISH, first]).scores
    return found | {f"STS {language}": 100 * figures["spearman"] for language, figures in similar.items()}


def write_small_xsr(source: Path, folder: Path, language: str, distractors: int) -> None:
    """Copy the files of XSR in a language, with so many of the distractors: the protocol's 200,000 take long."""
    for name in (f"en-{language}.tsv", f"distractors.{language}.txt.xz"):
        if not (source / name).is_file():
            raise DataError(f"{source / name}: no such file; expected the test set of XSR")
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / f"en-{language}.tsv", folder / f"en-{language}.tsv")
    lines = islice(read_lines(source / f"distractors.{language}.txt.xz"), distractors)
    with atomic_file(folder / f"distractors.{language}.txt.xz") as file:
        file.write(lzma.compress("".join(f"{line}\n" for line in lines).encode()))
