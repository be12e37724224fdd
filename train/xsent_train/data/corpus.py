"""Parallel text on disk, read as a stream.

One pair a line, UTF-8, tab-separated, no header: source, language, English, translation. A line without a translation
is text for a teacher of meaning: source and English, or source, language and a sentence in it. Plain, `.gz` or `.xz`.
"""

import hashlib
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent.files.text import raw_lines

T = TypeVar("T")
logger = logging.getLogger(__name__)

ENGLISH = "en"
ALONE = " alone"  # after the language in the name of a cell whose sentences have no translation
REPORTED_LINES = 5  # bad lines named one by one before only their number is given


class Pair(NamedTuple):
    """An English sentence and its translation; or a sentence alone, in the first place whatever its language is."""

    source: str
    language: str
    english: str
    translation: str

    @property
    def alone(self) -> bool:
        """Whether it is a sentence without translation."""
        return not self.translation

    @property
    def cell(self) -> tuple[str, str]:
        """Source and language, by which pairs are sampled."""
        apart = self.alone and self.language != ENGLISH
        return self.source, self.language + ALONE if apart else self.language

    @property
    def digest(self) -> int:
        """The hash of the English side, the same for all translations of one sentence."""
        return digest(self.english)


def digest(sentence: str) -> int:
    """A stable 64-bit hash of a sentence."""
    return int.from_bytes(hashlib.blake2b(sentence.encode(), digest_size=8).digest(), "little")


def without_translation(language: str) -> bool:
    """Whether a cell of this language holds sentences without translation."""
    return language == ENGLISH or language.endswith(ALONE)


@dataclass(frozen=True)
class Corpus:
    """Files of pairs, filtered by language."""

    files: Sequence[Path]  # the files, read in this order
    languages: frozenset[str] = frozenset()  # languages to keep besides English; empty keeps all

    def __iter__(self) -> Iterator[Pair]:
        """Read all pairs; bad lines are skipped and counted. Raises DataError if a file is damaged or has no pair."""
        skipped = Counter[str]()
        for path in self.files:
            pairs = 0
            for number, line in enumerate(raw_lines(path), 1):
                pair = parse_line(line)
                if isinstance(pair, str):
                    skipped[pair] += 1
                    if skipped.total() <= REPORTED_LINES:
                        logger.warning("%s:%d: skipped, %s", path, number, pair)
                elif not self.languages or pair.language == ENGLISH or pair.language in self.languages:
                    pairs += 1
                    yield pair
            if not pairs:
                wanted = f" in {', '.join(sorted(self.languages))}" if self.languages else ""
                raise DataError(f"{path}: no usable pair{wanted}; expected source, language, English, translation")
        if skipped:
            logger.warning("skipped bad lines: %s", ", ".join(f"{n} {why}" for why, n in skipped.items()))


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of `size`."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def parse_line(line: bytes) -> Pair | str:
    """One line of a corpus as a pair, or the reason why it is none."""
    try:
        fields = line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(fields) not in (2, 3, 4):
        return f"{len(fields)} fields instead of 4, 3 or 2"
    if not all(text.strip() for text in fields):
        return "an empty field"
    if len(fields) == 2:
        fields.insert(1, ENGLISH)
    return Pair(fields[0], fields[1], fields[2], "".join(fields[3:]))


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as lines of a corpus."""
    with atomic_file(path, private=True) as file:
        file.writelines(("\t".join(pair) + "\n").encode() for pair in pairs)
