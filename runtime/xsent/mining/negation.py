"""Whether two texts differ in a negation, in the nine languages.

A translation may say "unsuccessful" for "did not succeed", "hardly" for "almost never", "lack of water" for "no
water". Such words imply a negation. A text that negates and one that does not are the same if the
other has more words that imply it. Two versions of a sentence that differ in one "not" have equally many.

The words are in words.json; an asterisk stands for any letters, "_" for a space. The Japanese ones, which no spaces
separate, are regular expressions.
"""

import re
from typing import NamedTuple

from xsent.languages import likely_languages
from xsent.mining.number_words import TABLES

_WORD = re.compile(r"[^\W\d_]+")
# Contractions of "not", which make a text English, but not in "isn't it?".
_CONTRACTED = re.compile(
    r"\b(?:do|does|did|is|are|was|were|have|has|had|wo|ca|could|would|should|must|might|need|ai)n't\b"
    r"(?! (?:i|you|he|she|it|we|they|there)\?)"
)
_FRENCH = re.compile(
    r"\bn(?:e |')(?:[^\s.,;]{1,40} ){1,3}?(?:plus|personne)\b(?! que| qu'| ou moins)|\bpersonne n(?:e |')"
)
_NUMBERED = re.compile(r"\bno[.]? ?(?=[0-9])")  # No. 5, nº 5
_WHATEVER = re.compile(r"\b(?:кто|что|где|как|куда|сколько|как(?:ой|ая|ое|ие|им|ую))\w* бы (?:\w+ ){0,2}ни\b")


def _pattern(written: str) -> re.Pattern[str]:
    words = (re.escape(word).replace("_", " ").replace(r"\*", r"[^\W_]*") for word in written.split())
    return re.compile(f"(?<![^\\W_])(?:{'|'.join(words)})(?![^\\W_])")


_NEGATIVES = {language: {*words.split()} for language, words in TABLES["negative"].items()}
_NO_NEGATION = {language: _pattern(words) for language, words in TABLES["no_negation"].items()}
_IMPLIED = {language: _pattern(words) for language, words in TABLES["implied"].items()}

_KANJI = re.compile("無(?=い|かっ|く)")
_JAPANESE = {kind: re.compile(written.replace(" ", "|")) for kind, written in TABLES["japanese"].items()}


class _Negation(NamedTuple):
    negates: bool
    implied: int  # words that imply a negation


def negations_differ(first: str, second: str) -> bool:
    """Whether one of two texts in the form NFKC negates, and the other neither does nor implies it."""
    one, other = _read(first), _read(second)
    if one.negates == other.negates:
        return False
    denying, plain = (one, other) if one.negates else (other, one)
    return plain.implied <= denying.implied


def _read(text: str) -> _Negation:
    likely = likely_languages(text)
    if {"ja", "zh"}.intersection(likely):
        rest = _JAPANESE["no_negation"].sub("", _KANJI.sub("な", text))
        return _Negation(bool(_JAPANESE["negative"].search(rest)), len(_JAPANESE["implied"].findall(rest)))
    text = _WHATEVER.sub("", _NUMBERED.sub("", text.lower().replace("’", "'")))
    likely = ["en"] if _CONTRACTED.search(text) else likely
    negates, implied = False, 0
    for language in [one for one in likely if one in _NEGATIVES] or _NEGATIVES:
        rest = _NO_NEGATION[language].sub("", text)
        found = not _NEGATIVES[language].isdisjoint(_WORD.findall(rest))
        found = found or (language == "en" and bool(_CONTRACTED.search(rest)))
        negates = negates or found or (language == "fr" and bool(_FRENCH.search(rest)))
        implied = max(implied, len(_IMPLIED[language].findall(rest)))
    return _Negation(negates, implied)
