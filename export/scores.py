"""Scores of published tests for the card of a bundle, each as a command of `xsent` prints it."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xsent.classification.topics import (
    SEEDS_NOTE,
    TEST_FILES,
    TRAIN_FILES,
    Cell,
    accuracy_rows,
    read_examples,
    topic_files,
    transfer,
)
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.protocols import PROTOCOLS
from xsent.vector_form import VectorForm as Stored

logger = logging.getLogger(__name__)

ENGLISH, FOLDER = "en", "DATA/eval"
# What may lie in a folder of tests, and the protocol that reads it.
TESTS = {"tatoeba": "tatoeba", "xsr": "xsr", "flores": "xsim", "stsb": "sts", "contrasts.tsv": "contrasts"}
TOPICS = "sib200"
COLUMNS = ["category", "text"]


@dataclass(frozen=True)
class Score:
    """The result of one test.

    Attributes:
        command: What prints it.
        rows: Its table.
        note: What to know when comparing.
    """

    command: str
    rows: Sequence[Mapping[str, object]]
    note: str


def check_tests(folder: Path) -> None:
    """See whether there is something to score.

    Raises:
        DataError: There is no test in the folder.
    """
    if not any((folder / name).exists() for name in [*TESTS, TOPICS]):
        raise DataError(f"{folder}: no tests; expected a folder with one of {', '.join([*TESTS, TOPICS])}")


def scores(encoder: SentenceEncoder, folder: Path, dims: Sequence[int]) -> Iterator[Score]:
    """Score a bundle by every test that lies in a folder; one that cannot be read is warned of and left out.

    Args:
        encoder: The bundle's.
        folder: Has some of `TESTS` and `TOPICS`.
        dims: Dimensions that were trained to stand alone.
    """
    measures: list[tuple[str, Callable[[Path], Score]]] = [
        (name, partial(_protocol, encoder, task)) for name, task in TESTS.items()
    ]
    if len(dims) > 1:
        measures.append(("tatoeba", partial(_by_dimensions, encoder, dims)))
    measures.append((TOPICS, partial(_topics, encoder)))
    for name, measure in measures:
        if (folder / name).exists():
            logger.info("scores: %s", name)
            try:
                yield measure(folder / name)
            except DataError as error:
                logger.warning("no score: %s", error)


def _protocol(encoder: SentenceEncoder, task: str, place: Path) -> Score:
    found = PROTOCOLS[task](encoder, place)
    return Score(f"xsent evaluate {task} {FOLDER}/{place.name}", found.rows(), found.note)


def _by_dimensions(encoder: SentenceEncoder, dims: Sequence[int], folder: Path) -> Score:
    """The means of Tatoeba over all languages by the dimensions that are kept."""
    rows = []
    for dim in dims:
        mean = PROTOCOLS["tatoeba"](Stored(truncate_dim=dim).of(encoder), folder).rows()[-1]
        rows.append({"dimensions": dim, "xx_en": mean["xx_en"], "en_xx": mean["en_xx"]})
    command = f"xsent evaluate tatoeba {FOLDER}/tatoeba --truncate-dim DIMENSIONS"
    return Score(command, rows, "The last row of each, the mean of all languages.")


def _topics(encoder: SentenceEncoder, folder: Path) -> Score:
    """Heads trained in English, tested in every language of the bundle."""
    cells = topic_cells(encoder, folder, encoder.languages)
    command = f"xsent classify evaluate {FOLDER}/{TOPICS} --columns {','.join(COLUMNS)} --train {ENGLISH}"
    return Score(command, accuracy_rows(cells), SEEDS_NOTE)


def topic_cells(encoder: SentenceEncoder, folder: Path, languages: Sequence[str]) -> list[Cell]:
    """Heads trained on SIB-200 in English.

    Args:
        encoder: What encodes.
        folder: Has `XX/{train,test}.tsv` a language.
        languages: Codes to test in; those that there is no test of are left out.

    Raises:
        DataError: A file is missing or cannot be read.
    """
    trains, files = (topic_files(folder, pattern) for pattern in (TRAIN_FILES, TEST_FILES))
    if ENGLISH not in trains:
        raise DataError(f"{folder}: no {ENGLISH}/train.tsv to train a head on")
    tests = {code: read_examples(files[code], COLUMNS) for code in languages if code in files}
    if not tests:
        raise DataError(f"{folder}: no test.tsv of {', '.join(languages)}")
    return transfer(encoder, {ENGLISH: read_examples(trains[ENGLISH], COLUMNS)}, tests)[1]
