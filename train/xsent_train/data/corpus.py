"""Text to train on, read as a stream: pairs, and the reader for lines of any kind of text.

One pair per line, UTF-8, tab-separated, no header: source, language, English, translation. A line without translation
is text to learn from a teacher: source and English, or source, language and a sentence in it. Plain, `.gz` or `.xz`.
Other kinds of text are scored pairs (`scored.py`) and queries with passages (`passages.py`).
"""

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from xsent.errors import DataError
from xsent.files.atomic import atomic_file
from xsent.files.text import raw_lines

T = TypeVar("T")
logger = logging.getLogger(__name__)

ENGLISH = "en"
ALONE = " alone"  # suffix of the language in the name of a cell of sentences without translation
REPORTED_LINES = 5  # bad lines to report one by one; of the others only the number

PAIRS, SENTENCES, SCORED, PASSAGES = "translated pairs", "sentences", "scored pairs", "questions with passages"
LAYOUTS = {  # the columns of each kind of text
    PAIRS: "source, language, English, translation",
    SENTENCES: "source, language, sentence",
    SCORED: "source, language, number, sentence, sentence, score",
    PASSAGES: "source, group, kind, language, question, passage",
}
FEWEST = 64  # lines of a language to learn from and to measure on


class Line(Protocol):
    """What all kinds of text have in common: two texts in a language."""

    @property
    def source(self) -> str:
        """The source of the text."""
        ...

    @property
    def language(self) -> str:
        """Its language."""
        ...

    @property
    def texts(self) -> tuple[str, str]:
        """The two texts that a store keeps; the second is empty if there is only one."""
        ...

    @property
    def cell(self) -> tuple[str, str]:
        """Source and language, by which it is sampled."""
        ...

    @property
    def digest(self) -> int:
        """A hash of what is the same in every language."""
        ...

    @property
    def score(self) -> float | None:
        """How similar the two texts are according to people, if known."""
        ...


L = TypeVar("L", bound=Line)


class Pair(NamedTuple):
    """An English sentence and its translation; or one sentence in any language, in the field `english`."""

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

    @property
    def texts(self) -> tuple[str, str]:
        """Both sides."""
        return self.english, self.translation

    @property
    def score(self) -> None:
        """Pairs have none."""
        return None


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
        return read(self.files, self.languages, parse_line, "pair", "source, language, English, translation")


def read(
    files: Iterable[Path], languages: frozenset[str], parse: Callable[[bytes], L | str], what: str, layout: str
) -> Iterator[L]:
    """Read the lines of files; `parse` returns a parsed line, or the reason to skip it.

    Bad lines are counted, and the first ones reported. Lines in English and in `languages` are kept; empty `languages`
    keep all. Raises DataError, which names `what` a line is and its `layout`, if a file is damaged or no line is kept.
    """
    skipped = Counter[str]()
    for path in files:
        kept, others = 0, Counter[str]()
        for number, line in enumerate(raw_lines(path), 1):
            parsed = parse(line)
            if isinstance(parsed, str):
                skipped[parsed] += 1
                if skipped.total() <= REPORTED_LINES:
                    logger.warning("%s:%d: skipped, %s", path, number, parsed)
            elif not languages or parsed.language == ENGLISH or parsed.language in languages:
                kept += 1
                yield parsed
            else:
                others[parsed.language[:20]] += 1
        if not kept:
            wanted = f" in {', '.join(sorted(languages))}" if languages else ""
            there = f"; it has {tally(others)}" if others else ""
            raise DataError(f"{path}: no usable {what}{wanted}{there}; expected {layout}")
    if skipped:
        logger.warning("skipped bad lines: %s", ", ".join(f"{n} {why}" for why, n in skipped.items()))


def tally(counts: Counter[str]) -> str:
    """The most frequent languages with their numbers of lines, for a message."""
    return ", ".join(f"{language} {count:,}" for language, count in counts.most_common(REPORTED_LINES))


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of `size`."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def parse_line(line: bytes) -> Pair | str:
    """Parse a line of a corpus into a pair, or return the reason why it is invalid."""
    fields = split_line(line, 4, 3, 2)
    if isinstance(fields, str):
        return fields
    if len(fields) == 2:
        fields.insert(1, ENGLISH)
    return Pair(fields[0], fields[1], fields[2], "".join(fields[3:]))


def split_line(line: bytes, *counts: int) -> list[str] | str:
    """The fields of a line, or the reason why it is invalid, such as a number of fields that is not in `counts`."""
    try:
        fields = line.decode("utf-8").rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(fields) not in counts:
        *others, last = map(str, counts)
        return f"{len(fields)} fields instead of {' or '.join(filter(None, (', '.join(others), last)))}"
    return fields if all(text.strip() for text in fields) else "an empty field"


def write_pairs(path: Path, pairs: Iterable[tuple[object, ...]]) -> None:
    """Write pairs, or other text, as lines of a corpus."""
    with atomic_file(path, private=True) as file:
        file.writelines(("\t".join(map(str, pair)) + "\n").encode() for pair in pairs)


class OwnText(NamedTuple):
    """What is in a file."""

    kind: str  # of LAYOUTS
    languages: Counter[str]  # lines by language
    sources: list[str]


def recognise_text(path: Path, known: Sequence[str]) -> OwnText:
    """Find out what kind of text a file has, in the languages that a model knows; other lines are skipped.

    Raises DataError, which says what its columns are, if it has no such text.
    """
    found, skipped, sources = _survey(path, known)
    kinds = {kind for kind, _ in found}
    if len(kinds) != 1 and kinds != {PAIRS, SENTENCES}:
        what = f"it mixes {' and '.join(sorted(kinds))}; use one file for each" if kinds else "no usable text"
        why = "".join(f"; {count:,} lines {reason}" for reason, count in skipped.most_common(3))
        raise DataError(f"{path}: {what}{why}; expected {'; or '.join(LAYOUTS.values())}")
    for reason, count in skipped.most_common(REPORTED_LINES):
        logger.warning("%s: skipped %s lines %s", path, f"{count:,}", reason)
    if kinds == {SENTENCES} and len(sources) > max(found.total() // 2, FEWEST):
        raise DataError(
            f"{path}: the first column differs from line to line, so it is text instead of a source; if the lines are "
            "English and a translation, add two columns before them, such as: sed 's/^/own\tfr\t/'"
        )
    languages = Counter[str]()
    for (_, language), count in found.items():
        languages[language] += count
    if few := Counter({language: count for language, count in languages.items() if count < FEWEST}):
        logger.warning("%s: fewer than %d lines, too few to learn from: %s", path, FEWEST, tally(few))
    if not (enough := languages - few):
        raise DataError(f"{path}: too little text, {tally(few)}; expected at least {FEWEST} lines in a language")
    kind = PAIRS if PAIRS in kinds else kinds.pop()
    logger.info("%s: %s, %s", path, kind, tally(enough))
    return OwnText(kind, enough, list(sources))


def _survey(path: Path, known: Sequence[str]) -> tuple[Counter[tuple[str, str]], Counter[str], Counter[str]]:
    """Lines by kind and language, lines that are neither by reason, and lines by source."""
    found, skipped, sources = Counter[tuple[str, str]](), Counter[str](), Counter[str]()
    for line in raw_lines(path):
        fields = split_line(line, 2, 3, 4, 6)
        if isinstance(fields, str):
            skipped[f"with {fields}"] += 1
            continue
        kind, language = _kind(fields, known)
        if language in known:
            found[kind, language] += 1
            sources[fields[0]] += 1
        elif re.fullmatch(r"[a-z]{2,3}(-\w+)?", language):
            skipped[f"in {language!r}, which the model does not know"] += 1
        else:
            skipped[f"with {len(fields)} columns, without a language where it should be"] += 1
    return found, skipped, sources


def _kind(fields: Sequence[str], known: Sequence[str]) -> tuple[str, str]:
    """The kind of a line, and its language."""
    if len(fields) == 6:
        return (PASSAGES, fields[3]) if fields[1] not in known or fields[3] in known else (SCORED, fields[1])
    if len(fields) == 4:
        return PAIRS, fields[1]
    return SENTENCES, fields[1] if len(fields) == 3 else ENGLISH
