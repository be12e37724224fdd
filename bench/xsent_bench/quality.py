"""Quality of encoders by the runtime's protocols on published test sets."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from xsent.encoder import SentenceEncoder
from xsent.errors import DataError, XsentError
from xsent.evaluation.judgements import sts
from xsent.evaluation.retrieval import retrieval
from xsent.evaluation.stored import as_stored
from xsent.evaluation.topics import COLUMNS, ENGLISH, read_examples, transfer_from_english
from xsent.evaluation.translation import DIRECTIONS, space, tatoeba, xsim
from xsent.open_model import SupportsEncode
from xsent.precision import Precision, stored_as
from xsent.similarity import unit_rows
from xsent_bench.results import Measurement
from xsent_export.kept import kept_by_depth
from xsent_train.derive import checkpoint_from_bundle

DIMENSIONS = (256, 128)  # smaller ones, beside all of a bundle's
PRECISIONS: Sequence[Precision] = ("float32", "float16", "int8", "binary")

Scores = Mapping[str, Mapping[str, float]]  # figures by language


def check_tests(folder: Path) -> None:
    """Raises DataError if a folder has none of the test sets."""
    if not any((folder / name).is_dir() for name in TESTS):
        raise DataError(f"{folder}: no test set; expected a folder with one of {', '.join(TESTS)}")


def scores(encoder: SupportsEncode, tests: Path, languages: Sequence[str]) -> Iterator[Mapping[str, object]]:
    """Scores by language, for the languages that have tests; a test set that fails is reported."""
    for name, (file, measure) in TESTS.items():
        try:
            found = [code for code in languages if (tests / name / file.format(code)).is_file()]
            for code, figures in measure(encoder, tests / name, found).items() if found else ():
                yield {"language": code, **figures}
        except (XsentError, ValueError, OSError) as error:
            yield {"failed": f"{name}: {error}"}


def translations(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> Scores:
    """P@1 by cosine in per cent; with fewer layers, also towards English sentences encoded with all layers."""
    measured = tatoeba(encoder, folder, languages).scores.items()
    found = {code: {way: row[way] for way in DIRECTIONS} for code, row in measured}
    if isinstance(encoder, SentenceEncoder) and encoder.layers < encoder.bundle.num_layers:
        across = space(encoder, folder, languages, english_by=SentenceEncoder(encoder.bundle.path)).scores
        found = {code: {**row, "across": across[code]["xx_en"]} for code, row in found.items()}
    return found


def translation_errors(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> Scores:
    """Errors in per cent when parallel sentences are matched to English by cosine."""
    if {*languages} <= {ENGLISH}:
        return {}
    measured = xsim(encoder, folder, languages, margin="absolute").scores.items()
    return {code: {"flores": row["xx_en"]} for code, row in measured}


def topic_heads(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> Scores:
    """Heads trained in English: the accuracy of xsent's and of scikit-learn's, and what xsent's calls unknown."""
    ours = {cell.test: cell for cell in transfer_from_english(encoder, folder, languages)}
    theirs = topics_by_sklearn(encoder, folder, languages)
    found: dict[str, dict[str, float]] = {}
    for code, cell in ours.items():
        unknown = {name: share for name, share in (("lost", cell.lost), ("off_topic", cell.found)) if share is not None}
        found[code] = {"topics": cell.accuracy, "sklearn": theirs[code], **unknown}
    return found


def similarities(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> Scores:
    """Spearman's correlation with human scores × 100."""
    return {code: {"similarity": 100 * row["spearman"]} for code, row in sts(encoder, folder, languages).scores.items()}


def questions(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> Scores:
    """nDCG@10 × 100 of questions to passages by vectors: in one language, and to English passages."""
    names = {"ndcg": "questions", "to_en": "questions_to_en", "own": "own"}
    measured = retrieval(encoder, folder, languages).scores.items()
    return {code: {names[name]: row[name] for name in names if name in row} for code, row in measured}


TESTS: Mapping[str, tuple[str, Callable[[SupportsEncode, Path, Sequence[str]], Scores]]] = {
    # By folder: the file of a language, and the function that measures it.
    "tatoeba": ("en-{}.tsv", translations),
    "flores": ("{}.txt", translation_errors),
    "sib200": ("{}/test.tsv", topic_heads),
    "stsb": ("{}-test.csv", similarities),
    "passages": ("{}.passages.tsv", questions),
}


def topics_by_sklearn(encoder: SupportsEncode, folder: Path, languages: Sequence[str]) -> dict[str, float]:
    """Accuracy in per cent by language of one head of scikit-learn on unit vectors; cross-validation chooses its C."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GridSearchCV

    def read(file: str) -> tuple[NDArray[np.float32], list[str]]:
        examples = read_examples(folder / file, COLUMNS)
        return unit_rows(examples.encode(encoder)), examples.labels

    head = GridSearchCV(LogisticRegression(max_iter=3000), {"C": [1, 3, 10, 30, 100]}, cv=5)
    head.fit(*read(f"{ENGLISH}/train.tsv"))
    return {code: 100 * float(head.score(*read(f"{code}/test.tsv"))) for code in languages}


def measure_stored(bundle: Path, folder: Path, languages: Sequence[str]) -> Iterator[Measurement]:
    """Tatoeba with vectors of fewer dimensions and other precisions, and the bytes of a vector."""
    encoder = SentenceEncoder(bundle)
    languages = [code for code in languages if (folder / f"en-{code}.tsv").is_file()]
    dims = [encoder.dim, *(dim for dim in DIMENSIONS if dim < encoder.dim)]
    for dim, precision in product(dims, PRECISIONS):
        found = tatoeba(as_stored(encoder, precision, dim), folder, languages)
        dtype, width = stored_as(precision, dim)
        figures = {**found.mean, "vector_size": width * np.dtype(dtype).itemsize}
        yield Measurement("stored", {"dimensions": dim, "precision": precision}, figures)


def measure_kept(bundle: Path, folder: Path, languages: Sequence[str]) -> Iterator[Measurement]:
    """What 8 bits change in results, by depth; the float32 encoder has the weights of the bundle."""
    for layers, shares in kept_by_depth(bundle, checkpoint_from_bundle(bundle), folder, languages):
        yield Measurement("kept", {"layers": layers}, {f"kept_{form}": share for form, share in shares.items()})
