"""How a text is written (its width, about how many words it has, the scripts of its letters), and in which language."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from functools import lru_cache
from typing import NamedTuple

from xsent.errors import require_extra

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

LOOKED_AT = 100  # characters of a side that its language is told from; more cost time and decide nothing

# The languages that a text may turn out to be in, beside the one it claims. Were they all that the identifier knows,
# short sentences would go to small relatives of their language: Spanish to Galician, Chinese to Wu.
RIVALS = frozenset(
    "ar bg bn ca cs da de el en es fa fi fr he hi hr hu id it ja ko nl no pl pt ro ru sk sv th tr uk ur vi zh".split()
)


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
    """Tells languages apart by py3langid, whose model is a part of its package; a MissingExtraError without it."""

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


def unchecked(languages: Iterable[str]) -> list[str]:
    """Those of some languages that the identifier does not know."""
    others = {language for language in languages if base_code(language) not in RIVALS}
    known = Identifier().languages if others else frozenset[str]()
    return sorted(language for language in others if base_code(language) not in known)
