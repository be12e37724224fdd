"""What a file of pairs holds for a language that an encoder is to learn, and for those that it knows already."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from xsent.errors import DataError
from xsent.train.data.corpus import ENGLISH, Corpus, Pair
from xsent.train.data.preparation import TrainingPairs

TEXT = 50_000  # sentences that the vocabulary grows from
KEPT = 200_000  # sentences of the old languages that must be cut as before
HELD_OUT = 1000  # pairs an old language

T = TypeVar("T")


class Sample(Generic[T]):
    """The items of the smallest ranks of a stream: with hashes for ranks, a sample that is the same in every run."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._items: dict[int, T] = {}

    def add(self, rank: int, item: T) -> None:
        """Take an item, or replace that of the same rank."""
        self._items[rank] = item
        if len(self._items) >= 2 * self._limit:
            self._trim()

    def items(self) -> list[T]:
        """What was sampled, by rank."""
        self._trim()
        return list(self._items.values())

    def _trim(self) -> None:
        self._items = dict(sorted(self._items.items(), key=lambda entry: entry[0])[: self._limit])


@dataclass(frozen=True)
class Newcomer:
    """Text for a new language beside old ones."""

    text: list[str]  # sentences of the new language to train on
    kept: list[str]  # sentences of the old languages, English among them
    held_out: list[Pair]  # pairs of the old languages that share no English sentence with those to train on


def count_pairs(path: Path, language: str) -> int:
    """How many pairs a file has in a language; a DataError where it has none, or cannot be read."""
    counts = Counter(pair.language for pair in Corpus([path]))
    if not counts[language]:
        there = ", ".join(f"{code} {count:,}" for code, count in counts.most_common(20))
        raise DataError(f"{path}: no pair in {language!r}; it has {there}")
    return counts[language]


def read_newcomer(path: Path, language: str, known: Sequence[str], held_out_share: float) -> Newcomer:
    """Read a file of pairs once and keep bounded samples of it; languages neither new nor known are left out."""
    pairs = TrainingPairs(Corpus([path], frozenset([language, *known])), held_out_share)
    text = Sample[str](TEXT)
    kept = {code: Sample[str](KEPT // len(known)) for code in known}
    held_out = {code: Sample[Pair](HELD_OUT) for code in known}
    for pair in pairs.corpus:
        digest = pair.digest
        if not pairs.held_out(pair):
            kept[ENGLISH].add(digest, pair.english)
            if pair.alone:
                continue
            (text if pair.language == language else kept[pair.language]).add(digest, pair.translation)
        elif pair.language != language and not pair.alone:
            # By the bits that decide what is held out: the first ones are so in every training, whatever its share.
            held_out[pair.language].add(digest & 0xFFFFFFFF, pair)
    return Newcomer(
        text.items(),
        [sentence for sample in kept.values() for sentence in sample.items()],
        [pair for sample in held_out.values() for pair in sample.items()],
    )
