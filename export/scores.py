"""Scores of published tests for the card of a bundle, each as a command of `xsent` prints it."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from xsent.classification.topics import COLUMNS, ENGLISH, SEEDS_NOTE, accuracy_rows, transfer_from_english
from xsent.encoder import SentenceEncoder
from xsent.errors import DataError
from xsent.evaluation.protocols import PROTOCOLS, as_stored

logger = logging.getLogger(__name__)

FOLDER = "DATA/eval"
# What may lie in a folder of tests, and the protocol that reads it.
TESTS = {
    "tatoeba": "tatoeba",
    "xsr": "xsr",
    "flores": "xsim",
    "stsb": "sts",
    "contrasts.tsv": "contrasts",
    "words.tsv": "words",
}
TOPICS = "sib200"


@dataclass(frozen=True)
class Score:
    """The result of one test: the command that prints it, its table, and what to know when comparing."""

    command: str
    rows: Sequence[Mapping[str, object]]
    note: str


def refuse_empty_tests(folder: Path) -> None:
    """Refuse a folder that has nothing to score."""
    if not any((folder / name).exists() for name in [*TESTS, TOPICS]):
        raise DataError(f"{folder}: no tests; expected a folder with one of {', '.join([*TESTS, TOPICS])}")


def scores(encoder: SentenceEncoder, folder: Path, dims: Sequence[int]) -> Iterator[Score]:
    """Score a bundle by every test in a folder that can be read, Tatoeba by each of several trained `dims` too."""
    measures: list[tuple[str, Callable[[SentenceEncoder, Path], Score]]]
    measures = [(name, partial(_protocol, task)) for name, task in TESTS.items()]
    if len(dims) > 1:
        measures.append(("tatoeba", partial(_by_dimensions, dims)))
    for name, measure in [*measures, (TOPICS, _topics)]:
        if (folder / name).exists():
            logger.info("scores: %s", name)
            try:
                yield measure(encoder, folder / name)
            except DataError as error:
                logger.warning("no score: %s", error)


def _protocol(task: str, encoder: SentenceEncoder, place: Path) -> Score:
    found = PROTOCOLS[task](encoder, place)
    return Score(f"xsent evaluate {task} {FOLDER}/{place.name}", found.rows(), found.note)


def _by_dimensions(dims: Sequence[int], encoder: SentenceEncoder, folder: Path) -> Score:
    """The means over all languages by the dimensions that are kept."""
    rows = []
    for dim in dims:
        measured = PROTOCOLS["tatoeba"](as_stored(encoder, truncate_dim=dim), folder)
        rows.append({"dimensions": dim, **measured.mean})
    command = f"xsent evaluate tatoeba {FOLDER}/tatoeba --truncate-dim DIMENSIONS"
    return Score(command, rows, "The last row of each, the mean of all languages.")


def _topics(encoder: SentenceEncoder, folder: Path) -> Score:
    command = f"xsent classify evaluate {FOLDER}/{TOPICS} --columns {','.join(COLUMNS)} --train {ENGLISH}"
    return Score(command, accuracy_rows(transfer_from_english(encoder, folder, encoder.languages)), SEEDS_NOTE)
