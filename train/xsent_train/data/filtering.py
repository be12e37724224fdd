"""Which pairs of a corpus are a sentence and its translation in the languages they claim (mao2021, section 4).

A text is measured by how it is written (its width, about how many words it has, the scripts of its letters), and by the
language that py3langid takes it for.
"""

import multiprocessing
import os
import re
import signal
import threading
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from copy import copy
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from xsent.backends.threads import ordered_map
from xsent.errors import XsentError, require_extra
from xsent.files.text import raw_lines
from xsent_train.data.corpus import Pair, chunks, parse_line

LEFT_OUT = "left out"  # a pair in a language that was not asked for
NO_CODE = "no language code in the second field"  # most likely columns in another order
CHUNK = 1000  # lines that a process judges at a time

_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


# Scripts are named as Unicode names their characters; a language may be written in several.
_LANGUAGES_OF = {
    "LATIN": "af az br bs ca cs cy da de en eo es et eu fi fo fr fy ga gd gl ha hr ht hu id ig is it jv ku la lb lt lv "
    "mg ms mt nb nl nn no oc pl pt ro rw sk sl sn so sq sr st sv sw tl tr uz vi wa xh yo zu",
    "CYRILLIC": "az ba be bg kk ky mk mn ru sr tg tt uk uz",
    "ARABIC": "ar ary arz az fa ku ps sd ug ur",
    "CJK": "ja wuu yue zh",
    "IDEOGRAPHIC": "ja wuu yue zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "DEVANAGARI": "hi mr ne sa",
    "ARMENIAN": "hy",
    "BENGALI": "as bn",
    "ETHIOPIC": "am",
    "GEORGIAN": "ka",
    "GREEK": "el",
    "GUJARATI": "gu",
    "GURMUKHI": "pa",
    "HEBREW": "he yi",
    "KANNADA": "kn",
    "KHMER": "km",
    "LAO": "lo",
    "MALAYALAM": "ml",
    "MYANMAR": "my",
    "ORIYA": "or",
    "SINHALA": "si",
    "TAMIL": "ta",
    "TELUGU": "te",
    "THAI": "th",
    "TIBETAN": "bo dz",
}
SCRIPTS: dict[str, frozenset[str]] = {
    language: frozenset(script for script, languages in _LANGUAGES_OF.items() if language in languages.split())
    for language in sorted({language for languages in _LANGUAGES_OF.values() for language in languages.split()})
}

LOOKED_AT = 100  # characters of a side that the identifier reads; more cost time and decide nothing

# The languages that a text may turn out to be in, besides the one it claims. With all that the identifier knows, short
# sentences would go to small relatives of their language: Spanish to Galician, Chinese to Wu.
RIVALS = frozenset(
    "ar bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja ko nl no pl pt ro ru sk sv th tr uk ur vi zh".split()
)


class Reason(StrEnum):
    """Why a pair is removed; the rules are tried in this order."""

    IDENTICAL = "identical"
    LENGTH = "length"
    RATIO = "ratio"
    SCRIPT = "script"
    LANGUAGE = "wrong language"


@dataclass(frozen=True)
class Rules:
    """The limits for a pair to be kept."""

    # words that a side has at least; see `Writing` for scripts without spaces
    min_words: int = 1
    max_words: int = 100  # words that a side has at most
    max_ratio: float = 2.5  # how many times as wide as the other a side may be
    # share of a side's letters that are in a script of its language, at least. Manuals in Chinese are full of English
    # names: this limit finds text that is not translated at all.
    min_script: float = 0.2
    # how many times as probable as the claimed language another may be. Well above 1, because the claim itself is
    # evidence, and most of it where a text is short.
    max_odds: float = 5.0

    def __post_init__(self) -> None:
        if not 1 <= self.min_words <= self.max_words:
            raise ValueError(f"min words {self.min_words}, max words {self.max_words}: expected 1 <= min <= max")
        for name in ("max_ratio", "max_odds"):
            if not getattr(self, name) >= 1:
                raise ValueError(f"{name.replace('_', ' ')} {getattr(self, name)}: expected 1 or more")
        if not 0 <= self.min_script <= 1:
            raise ValueError(f"min script {self.min_script}: expected a share from 0 to 1")


class PairFilter:
    """Judges pairs one by one."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        # A corpus often has the translations of an English sentence one after the other.
        self._odds = lru_cache(maxsize=1024)(Identifier().odds)

    def __call__(self, pair: Pair) -> Reason | None:
        """The first rule that a pair breaks; None if it may stay."""
        rules = self._rules
        if pair.english.strip().casefold() == pair.translation.strip().casefold():
            return Reason.IDENTICAL
        language = base_code(pair.language)
        sides = [(pair.english, language)] if pair.alone else [(pair.english, "en"), (pair.translation, language)]
        found = [read_script(text) for text, _ in sides]
        words, widths = [text.words for text in found], [text.width for text in found]
        if not rules.min_words <= min(words) or not max(words) <= rules.max_words:
            return Reason.LENGTH
        if max(widths) > rules.max_ratio * min(widths):
            return Reason.RATIO
        if any(text.share(language) < rules.min_script for text, (_, language) in zip(found, sides, strict=True)):
            return Reason.SCRIPT
        if any(self._odds(text, language) > rules.max_odds for text, language in sides):
            return Reason.LANGUAGE
        return None


_pair_filter = cache(PairFilter)  # one a process: the model takes a second to load


class Verdict(NamedTuple):
    """The decision about a line."""

    language: str  # of the translation; empty if the line is bad
    reason: str  # why it is removed: a `Reason`, the fault of the line, or `LEFT_OUT`; empty if it stays


def judge(
    source: str | Path, rules: Rules, languages: frozenset[str] = frozenset(), *, processes: int = 1
) -> Iterator[tuple[bytes, Verdict]]:
    """Judge the lines of a corpus, see `raw_lines`, in order, in memory that does not depend on its size.

    Only pairs of the `languages`, and English alone, are judged, others left out; none means all. Each of the
    `processes` has a model of its own; 1 is this process. Yields each line as it is in the file, and its verdict.
    """
    work = partial(_verdicts, rules, languages)
    cut = chunks(raw_lines(source), CHUNK)
    first = list(islice(cut, processes))  # a small file is not worth many processes
    cut = chain(first, cut)
    if len(first) < 2:
        for lines in cut:
            yield from zip(lines, work(lines), strict=True)
        return
    # Fresh processes: one forked from a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(len(first), context, initializer=_follow_parent) as pool:

        def judged(lines: list[bytes]) -> tuple[list[bytes], list[Verdict]]:
            return lines, pool.submit(work, lines).result()

        try:
            for lines, verdicts in ordered_map(judged, cut, len(first)):
                yield from zip(lines, verdicts, strict=True)
        except BrokenProcessPool as error:
            raise XsentError("a filter process died, perhaps for want of memory; take fewer --processes") from error


def _verdicts(rules: Rules, languages: frozenset[str], lines: list[bytes]) -> list[Verdict]:
    verdicts = []
    for line in lines:
        pair = parse_line(line)
        if isinstance(pair, str):
            verdicts.append(Verdict("", pair))
        elif not _CODE.fullmatch(pair.language):
            verdicts.append(Verdict("", NO_CODE))
        elif languages and pair.language not in languages | {"en"}:
            verdicts.append(Verdict(pair.language, LEFT_OUT))
        else:
            verdicts.append(Verdict(pair.language, _pair_filter(rules)(pair) or ""))
    return verdicts


def _follow_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it is gone, also when it was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None  # this runs in processes of a pool alone

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class Tally:
    """How many lines of a corpus got each verdict."""

    def __init__(self) -> None:
        self.bad = Counter[str]()  # lines that hold no pair, by their fault
        self.left_out = 0  # pairs in languages that were not asked for
        self._languages = defaultdict[str, Counter[str]](Counter)  # of the judged pairs by reason; "" are those kept

    def add(self, verdict: Verdict) -> None:
        """Count a line."""
        if not verdict.language:
            self.bad[verdict.reason] += 1
        elif verdict.reason == LEFT_OUT:
            self.left_out += 1
        else:
            self._languages[verdict.language][verdict.reason] += 1

    @property
    def judged(self) -> Counter[str]:
        """Reasons of the judged pairs of all languages."""
        return sum(self._languages.values(), Counter())

    def rows(self) -> list[dict[str, object]]:
        """A row for each language, the largest first, and one for all."""
        largest = sorted(self._languages.items(), key=lambda item: (-item[1].total(), item[0]))
        return [
            {
                "language": language,
                "pairs": reasons.total(),
                "kept": reasons[""],
                "kept %": 100 * reasons[""] / max(reasons.total(), 1),
                **{reason.value: reasons[reason] for reason in Reason},
            }
            for language, reasons in [*largest, ("total", self.judged)]
        ]

    def notes(self) -> list[str]:
        """The counts that are not in the rows, a line each."""
        notes = [f"bad lines, {reason}: {count:,}" for reason, count in self.bad.most_common()]
        if self.left_out:
            notes.append(f"pairs in other languages, left out: {self.left_out:,}")
        others = {language for language in self._languages if base_code(language) not in RIVALS}
        known = Identifier().languages if others else frozenset[str]()
        if names := sorted(language for language in others if base_code(language) not in known):
            notes.append(f"unknown to the language identifier, so not checked for their language: {', '.join(names)}")
        return notes


class Writing(NamedTuple):
    """A text, measured."""

    # its columns without spaces. A Chinese character, a kana or a Hangul syllable takes two, any other character one;
    # so measured, a sentence is about as long as its translation in any of these scripts.
    width: int
    # about how many words it has. Where no spaces stand between words, four columns of double width make one, and a
    # text has at least a word in ten columns (Thai).
    words: int
    letters: Mapping[str, int]  # columns of letters by script

    def share(self, language: str) -> float:
        """Share of the letters that are in a script of the language, 0 to 1; 1 if its scripts are not known."""
        if language not in SCRIPTS:
            return 1.0
        total = sum(self.letters.values())
        return sum(self.letters.get(script, 0) for script in SCRIPTS[language]) / total if total else 0.0


def read_script(text: str) -> Writing:
    """Measure a text."""
    width = double = 0
    letters: Counter[str] = Counter()
    for character, count in Counter(text).items():
        columns, script = _describe(character)
        width += columns * count
        if columns == 2:
            double += columns * count
        if script:
            letters[script] += columns * count
    return Writing(width, max(len(text.split()), double // 4, width // 10), letters)


@lru_cache(maxsize=1 << 14)
def _describe(character: str) -> tuple[int, str]:
    """Columns and script of a character; the script is empty if it is no letter."""
    if character.isspace():
        return 0, ""
    columns = 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
    if not character.isalpha():
        return columns, ""
    plain = unicodedata.normalize("NFKC", character)[0]  # full-width, superscript and the like
    return columns, re.split("[ -]", unicodedata.name(plain, "UNKNOWN"))[0]


class Identifier:
    """Tells languages apart by py3langid, whose model is a part of its package. Raises MissingExtraError without it."""

    def __init__(self) -> None:
        with require_extra("train"):
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        self._all = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._rivals = copy(self._all)  # shares the model; a few languages take less time than all
        self._rivals.set_languages(RIVALS)
        self.languages = frozenset[str](self._all.labels)

    def odds(self, text: str, language: str) -> float:
        """How many times as probable as `language` the most probable language is, 1 if it is `language` or unknown."""
        if language not in self.languages:
            return 1.0
        identifier = self._rivals if language in RIVALS else self._all
        if identifier.classify(text[:LOOKED_AT])[0] == language:  # most are: no need to rank
            return 1.0
        probabilities: dict[str, float] = dict(identifier.rank(text[:LOOKED_AT]))
        return max(probabilities[rival] for rival in RIVALS) / max(probabilities[language], 1e-30)


def base_code(language: str) -> str:
    """A language code without script and region: pt of pt-BR."""
    return language.replace("_", "-").split("-")[0].lower()
