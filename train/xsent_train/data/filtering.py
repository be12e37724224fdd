"""Which pairs of a corpus are a sentence and its translation in the languages they claim (mao2021, section 4)."""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from xsent.backends.threads import ordered_map
from xsent.errors import XsentError
from xsent.files.text import raw_lines
from xsent_train.data.corpus import Pair, chunks, parse_line
from xsent_train.data.languages import Identifier, base_code, read_script

LEFT_OUT = "left out"  # a pair in a language that was not asked for
NO_CODE = "no language code in the second field"  # most likely columns in another order
CHUNK = 1000  # lines that a process judges at a time

_CODE = re.compile(r"[A-Za-z]{2,3}([-_][A-Za-z0-9]{2,8})*")


class Reason(StrEnum):
    """Why a pair is removed; the rules are tried in this order."""

    IDENTICAL = "identical"
    LENGTH = "length"
    RATIO = "ratio"
    SCRIPT = "script"
    LANGUAGE = "wrong language"


@dataclass(frozen=True)
class Rules:
    """What a pair must be like to be kept."""

    # words that a side has at least; see `xsent_train.data.languages.Writing` for scripts without spaces
    min_words: int = 1
    max_words: int = 100  # words that a side has at most
    max_ratio: float = 2.5  # how many times as wide as the other a side may be
    # share of a side's letters that are in a script of its language, at least. Manuals in Chinese are full of English
    # names: what this finds is text that is not translated at all.
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
    """What becomes of a line."""

    language: str  # of the translation; empty if the line is bad
    reason: str  # why it goes: a `Reason`, what is bad about the line, or `LEFT_OUT`; empty if it stays


def judge(
    source: str | Path, rules: Rules, languages: frozenset[str] = frozenset(), *, processes: int = 1
) -> Iterator[tuple[bytes, Verdict]]:
    """Judge the lines of a corpus, see `raw_lines`, in order, in memory that does not depend on its size.

    Only pairs of the `languages`, and English alone, are judged, others left out; none means all. Each of so many
    processes has a model of its own; 1 is this one. Yields each line as it is in the file, and its verdict.
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
