"""Text to train on, read as a stream: pairs, scored pairs, and queries with passages.

One pair per line, UTF-8, tab-separated, no header: source, language, English, translation. A line without translation
is text to learn from a teacher: source and English, or source, language and a sentence in it. Plain, `.gz` or `.xz`.

A scored pair is two sentences, and how similar they are according to people: source, language, number, sentence,
sentence, score. Lines with the same source and number are the same pair in several languages. The score can have any
scale; more is more similar.

A query with the passage that answers it: source, group, kind, language, query, passage. Lines with the same source and
group have the same content in several languages, so a query in one language has an answer in each of them.
"""

import hashlib
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import ClassVar, Generic, NamedTuple, TypeVar

from xsent.clean import remove_format
from xsent.errors import DataError, counted, listed
from xsent.files.atomic import atomic_file
from xsent.files.text import raw_lines

T = TypeVar("T")
logger = logging.getLogger(__name__)

ENGLISH = "en"
ALONE = " alone"  # suffix of the language in the name of a cell of sentences without translation
MOST_LANGUAGES = 20  # to list in a message
REPORTED_LINES = 5  # bad lines to report one by one; of the others only the number

PAIRS, SENTENCES, SCORED, PASSAGES = "translated pairs", "sentences", "scored pairs", "queries with passages"
LAYOUTS = {  # the columns of each kind of text
    PAIRS: "source, language, English, translation",
    SENTENCES: "source, language, sentence",
    SCORED: "source, language, number, sentence, sentence, score",
    PASSAGES: "source, group, kind, language, query, passage",
}
FEWEST = 64  # lines of a language to learn from and to measure on


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


class ScoredPair(NamedTuple):
    """Two sentences in a language, and how similar they are according to people."""

    source: str
    language: str
    number: str  # the same in every language
    first: str
    second: str
    score: float

    @property
    def cell(self) -> tuple[str, str]:
        """Source and language, by which pairs are sampled."""
        return self.source, self.language

    @property
    def digest(self) -> int:
        """The hash of source and number, the same in every language."""
        return digest(f"{self.source}\t{self.number}")

    @property
    def texts(self) -> tuple[str, str]:
        """Both sentences."""
        return self.first, self.second


class Passage(NamedTuple):
    """A query and the passage that answers it."""

    source: str
    group: str  # the same in every language
    kind: str
    language: str
    query: str
    passage: str

    @property
    def cell(self) -> tuple[str, str]:
        """Source, and language with kind, by which queries are sampled."""
        return self.source, f"{self.language} {self.kind}"

    @property
    def digest(self) -> int:
        """The hash of source and group, the same in every language."""
        return digest(f"{self.source}\t{self.group}")

    @property
    def texts(self) -> tuple[str, str]:
        """Query and passage."""
        return self.query, self.passage


Line = Pair | ScoredPair | Passage
L = TypeVar("L", bound=Line)


def digest(sentence: str) -> int:
    """A stable 64-bit hash of a sentence."""
    return int.from_bytes(hashlib.blake2b(sentence.encode(), digest_size=8).digest(), "little")


def without_translation(language: str) -> bool:
    """Whether a cell of this language holds sentences without translation."""
    return language == ENGLISH or language.endswith(ALONE)


@dataclass(frozen=True)
class TextFiles(Generic[L]):
    """Files of one kind of text, filtered by language."""

    files: Sequence[Path]  # read in this order
    languages: frozenset[str] = frozenset()  # to keep besides English; empty keeps all

    kind: ClassVar[str]  # of LAYOUTS
    what: ClassVar[str]  # a line is, in messages
    columns: ClassVar[tuple[int, ...]] = (6,)  # numbers of fields that a line may have

    @classmethod
    def parse(cls, line: bytes) -> L | str:
        """Parse a line, or return the reason why it is invalid."""
        fields = split_line(line, *cls.columns)
        return fields if isinstance(fields, str) else cls._read(fields)

    @staticmethod
    def _read(fields: list[str]) -> L | str:
        raise NotImplementedError

    def __iter__(self) -> Iterator[L]:
        """Read all lines; bad ones are skipped and counted, and the first ones reported.

        Raises DataError if a file is damaged or no line of it is kept.
        """
        skipped = Counter[str]()
        for path in self.files:
            kept, others = 0, Counter[str]()
            for number, line in enumerate(raw_lines(path), 1):
                parsed = self.parse(line)
                if isinstance(parsed, str):
                    skipped[parsed] += 1
                    if skipped.total() <= REPORTED_LINES:
                        logger.warning("%s:%d: skipped, %s", path, number, parsed)
                elif not self.languages or parsed.language == ENGLISH or parsed.language in self.languages:
                    kept += 1
                    yield parsed
                else:
                    others[parsed.language[:20]] += 1
            if not kept:
                wanted = f" in {', '.join(sorted(self.languages))}" if self.languages else ""
                there = f"; it has {tally(others)}" if others else ""
                raise DataError(f"{path}: no usable {self.what}{wanted}{there}; expected {LAYOUTS[self.kind]}")
        if skipped:
            logger.warning("skipped bad lines: %s", ", ".join(f"{n} {why}" for why, n in skipped.items()))


class Corpus(TextFiles[Pair]):
    """Files of pairs."""

    kind, what, columns = PAIRS, "pair", (4, 3, 2)

    @staticmethod
    def _read(fields: list[str]) -> Pair | str:
        if len(fields) == 2:
            fields.insert(1, ENGLISH)
        return Pair(fields[0], fields[1], fields[2], "".join(fields[3:]))


class ScoredPairs(TextFiles[ScoredPair]):
    """Files of scored pairs."""

    kind, what = SCORED, "scored pair"

    @staticmethod
    def _read(fields: list[str]) -> ScoredPair | str:
        try:
            score = float(fields[5])
        except ValueError:
            return f"the score {fields[5][:20]!r} is not a number"
        if not math.isfinite(score):
            return f"the score {fields[5][:20]!r} is not finite"
        source, language, number, first, second = fields[:5]
        return ScoredPair(source, language, number, first, second, score)


class Passages(TextFiles[Passage]):
    """Files of queries with passages."""

    kind, what = PASSAGES, "query with a passage"

    @staticmethod
    def _read(fields: list[str]) -> Passage | str:
        if " " in fields[3]:
            return f"{fields[3][:20]!r} is not a language code"
        return Passage(*fields)


def tally(counts: Counter[str]) -> str:
    """The most frequent languages with their numbers of lines, for a message."""
    shown = [f"{language} {count:,}" for language, count in counts.most_common(MOST_LANGUAGES)]
    if len(counts) > MOST_LANGUAGES:
        shown.append(f"and {len(counts) - MOST_LANGUAGES:,} more")
    return ", ".join(shown).replace(ALONE, " without translation")


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Cut a stream into lists of `size`."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


def split_line(line: bytes, *counts: int) -> list[str] | str:
    """The fields of a line, or the reason why it is invalid, such as a number of fields that is not in `counts`."""
    try:
        text = remove_format(line.decode("utf-8"))  # as the encoder reads it
        fields = text.rstrip("\r\n").split("\t")
    except UnicodeDecodeError:
        return "not UTF-8"
    if len(fields) not in counts:
        return f"{counted(len(fields), 'field')} instead of {listed(counts, 'or')}"
    return fields if all(text.strip() for text in fields) else "an empty field"


def write_pairs(path: Path, pairs: Iterable[tuple[object, ...]]) -> None:
    """Write pairs, or other text, as lines of a corpus."""
    with atomic_file(path, private=True) as file:
        file.writelines(("\t".join(map(str, pair)) + "\n").encode() for pair in pairs)


CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")  # of a language


class OwnText(NamedTuple):
    """What is in a file."""

    kind: str  # of LAYOUTS
    languages: Counter[str]  # lines by language
    sources: list[str]


def recognise_text(path: Path, known: Sequence[str]) -> OwnText:
    """Find out what kind of text a file has, in the languages that a model knows; other lines are skipped.

    Raises DataError, which says what its columns are, if it has no such text.
    """
    if path.exists() and not path.is_file():
        raise DataError(f"{path}: not a regular file, but it is read several times; name a file")
    found, skipped = _survey(path, known)
    kinds, sources = {kind for kind, _, _ in found}, {source for _, _, source in found}
    if len(kinds) != 1 and kinds != {PAIRS, SENTENCES}:
        what = f"it mixes {' and '.join(sorted(kinds))}; use one file for each" if kinds else "no usable text"
        why = "".join(f"; {count:,} lines {reason}" for reason, count in skipped.most_common(3))
        raise DataError(f"{path}: {what}{why}; expected columns with tabs between: {'; or '.join(LAYOUTS.values())}")
    for reason, count in skipped.most_common(REPORTED_LINES):
        logger.warning("%s: skipped %s lines %s", path, f"{count:,}", reason)
    if kinds == {SENTENCES} and len(sources) > max(found.total() // 2, FEWEST):
        raise DataError(
            f"{path}: the first column differs from line to line, so it is text instead of a source; if the lines are "
            "English and a translation, add two columns before them: awk '{print \"own\\tfr\\t\" $0}'"
        )
    languages = Counter[str]()
    for (_, language, _), count in found.items():
        languages[language] += count
    if few := Counter({language: count for language, count in languages.items() if count < FEWEST}):
        logger.warning("%s: fewer than %d lines, too few to learn from: %s", path, FEWEST, tally(few))
    if not (enough := languages - few):
        raise DataError(f"{path}: too little text, {tally(few)}; expected at least {FEWEST} lines in a language")
    kind = PAIRS if PAIRS in kinds else kinds.pop()
    logger.info("%s: %s, %s", path, kind, tally(enough))
    used = dict.fromkeys(source for _, language, source in found if language in enough)
    return OwnText(kind, enough, list(used))


def _survey(path: Path, known: Sequence[str]) -> tuple[Counter[tuple[str, str, str]], Counter[str]]:
    """Lines by kind, language and source, and other lines by the reason why they cannot be used."""
    found, skipped = Counter[tuple[str, str, str]](), Counter[str]()
    for line in raw_lines(path):
        fields = split_line(line, 2, 3, 4, 6)
        if isinstance(fields, str):
            skipped[f"with {fields}"] += 1
            continue
        kind, language = _kind(fields, known)
        if language in known:
            found[kind, language, fields[0]] += 1
        elif CODE.fullmatch(language):
            skipped[f"in {language!r}, which the model does not know"] += 1
        else:
            skipped[f"with {len(fields)} columns, without a language code such as de where it should be"] += 1
    return found, skipped


def _kind(fields: Sequence[str], known: Sequence[str]) -> tuple[str, str]:
    """The kind of a line, and its language."""
    if len(fields) == 6:
        is_passage = fields[3] in known or (fields[1] not in known and CODE.fullmatch(fields[3]))
        return (PASSAGES, fields[3]) if is_passage else (SCORED, fields[1])
    if len(fields) == 4:
        return PAIRS, fields[1]
    return SENTENCES, fields[1] if len(fields) == 3 else ENGLISH
