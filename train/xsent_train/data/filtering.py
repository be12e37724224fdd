"""Filter pairs that are not a sentence and its translation in the languages they claim (mao2021, section 4).

The rules: both sides are in their languages (by py3langid), their lengths are similar, and there are no duplicates.
docs/guides/train.md shows how to apply other rules with OpusFilter.
"""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from copy import copy
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from xsent.errors import require_extra
from xsent_train.data.corpus import CODE, ENGLISH, Corpus, Pair, digest

NO_CODE = "no language code in the second field"  # most likely the columns are in another order

# How many times wider than the other one side may be. A Chinese character, a kana or a Hangul syllable is as wide as
# two other characters, so a sentence is about as wide as its translation in any script.
MAX_RATIO = 2.5
PAIRS_LOOKED_AT = 200
LOOKED_AT = 100  # characters of a side that the identifier reads; more take time but do not help
# How many times as probable as the claimed language another may be. Well above 1, because the claim itself is evidence,
# and most of the evidence for a short text.
MAX_ODDS = 5.0
# The languages that a text may turn out to be in, besides the claimed one. With all that the identifier knows, short
# sentences would be assigned to small relatives of their language: Spanish to Galician, Chinese to Wu.
RIVALS = frozenset(
    "ar bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja ko nl no pl pt ro ru sk sv th tr uk ur vi zh".split()
)


class Reason(StrEnum):
    """Why a pair is removed; rules are applied in this order."""

    IDENTICAL = "identical"
    RATIO = "ratio"
    DUPLICATE = "duplicate"
    LANGUAGE = "wrong language"


class Verdict(NamedTuple):
    """The decision about a line."""

    language: str  # of the translation; empty for a bad line
    reason: str  # for removal: a `Reason`, or what is wrong with the line; empty if kept


class PairFilter:
    """Judges the pairs of a corpus one after another; keeps a hash of each to find duplicates.

    Raises MissingExtraError if py3langid is not installed.
    """

    def __init__(self) -> None:
        self._seen = set[int]()
        # Translations of the same English sentence are often next to each other in a corpus.
        self._odds = lru_cache(maxsize=1024)(Identifier().odds)

    def judge(self, line: bytes) -> Verdict:
        """The verdict on the next line of the corpus."""
        pair = Corpus.parse(line)
        if isinstance(pair, str):
            return Verdict("", pair)
        if not CODE.fullmatch(pair.language):
            return Verdict("", NO_CODE)
        return Verdict(pair.language, self._reason(pair) or "")

    def _reason(self, pair: Pair) -> Reason | None:
        """The first rule that a pair breaks; a sentence without translation is judged on its own."""
        language = base_code(pair.language)
        sides = [(pair.english, language)] if pair.alone else [(pair.english, ENGLISH), (pair.translation, language)]
        texts = [" ".join(text.casefold().split()) for text, _ in sides]
        widths = [width(text) for text in texts]
        if texts[0] == texts[-1] and not pair.alone:
            return Reason.IDENTICAL
        if max(widths) > MAX_RATIO * min(widths):
            return Reason.RATIO
        key = digest("\t".join([pair.language, *texts]))
        if key in self._seen:
            return Reason.DUPLICATE
        self._seen.add(key)
        if any(self._odds(text, language) > MAX_ODDS for text, language in sides):
            return Reason.LANGUAGE
        return None


def seem_swapped(pairs: Iterable[Pair]) -> bool:
    """Whether most of the first pairs have English as the translation, and another language in its place."""
    odds = Identifier().odds
    looked_at = list(islice((pair for pair in pairs if not pair.alone), PAIRS_LOOKED_AT))
    swapped = [odds(pair.translation, ENGLISH) <= 1 and odds(pair.english, ENGLISH) > MAX_ODDS for pair in looked_at]
    return 2 * sum(swapped) > len(swapped)


def tally(verdicts: Counter[Verdict]) -> list[dict[str, object]]:
    """One row per language, the largest first, and one for the total."""
    languages = defaultdict[str, Counter[str]](Counter)
    for (language, reason), count in verdicts.items():
        if language:
            languages[language][reason] += count
            languages["total"][reason] += count
    largest = sorted(languages.items(), key=lambda item: (item[0] == "total", -item[1].total(), item[0]))
    return [
        {
            "language": language,
            "pairs": reasons.total(),
            "kept": reasons[""],
            "kept %": 100 * reasons[""] / reasons.total(),
            **{reason.value: reasons[reason] for reason in Reason},
        }
        for language, reasons in largest
    ]


def width(text: str) -> int:
    """The number of terminal columns of a text, without spaces."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text if not letter.isspace())


class Identifier:
    """Identifies languages with py3langid, which includes its model. Raises MissingExtraError if not installed."""

    def __init__(self) -> None:
        with require_extra("train"):
            from py3langid.langid import MODEL_FILE, LanguageIdentifier
        self._all = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._rivals = copy(self._all)  # shares the model, but takes less time for fewer languages
        self._rivals.set_languages(RIVALS)
        self.languages = frozenset[str](self._all.labels)

    def odds(self, text: str, language: str) -> float:
        """How many times as probable as `language` the best rival is; 1 if `language` is the best or unknown."""
        if language not in self.languages:
            return 1.0
        identifier = self._rivals if language in RIVALS else self._all
        if identifier.classify(text[:LOOKED_AT])[0] == language:  # usually, and then ranking is not needed
            return 1.0
        probabilities: dict[str, float] = dict(identifier.rank(text[:LOOKED_AT]))
        return max(probabilities[rival] for rival in RIVALS) / max(probabilities[language], 1e-30)


def base_code(language: str) -> str:
    """A language code without script and region: pt for pt-BR."""
    return language.replace("_", "-").split("-")[0].lower()
