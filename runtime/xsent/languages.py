"""The language of a text, from its script and its function words, which do not depend on the subject."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from xsent.words import without_accents

FUNCTION_WORDS = Path(__file__).with_name("function_words.json")  # the page of `xsent web` reads it too

_LOOKED_AT = 1000  # characters; more do not help
# Skips the letters of DE89, 14h05 and °C, and single consonants ("T-shirt") unless an apostrophe follows ("l'eau").
_WORD = re.compile(r"[a-z]*[0-9°][a-z0-9°]*|[b-df-hj-np-tv-xz](?![^\W_]|['’])|([^\W\d_]+)")
# Scripts that only one of the model's languages uses, and scripts of other languages.
_SCRIPTS = {
    "ja": re.compile("[\u3041-\u30ff]"),
    "zh": re.compile("[\u3400-\u4dbf\u4e00-\u9fff]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
}
_SHARE = 4  # a script decides the language if more than one letter in four is in it


def language_of(text: str) -> str:
    """The code of a text's language; empty if the text has too few words or its language is not known here.

    A word of several languages counts for each by one over their number. Words may lack their accents.
    """
    likeliest = likely_languages(text)
    return likeliest[0] if len(likeliest) == 1 else ""


def likely_languages(text: str, share: float = 1.0, *, above: int = 0) -> list[str]:
    """The codes of the languages that have at least this share of the function words of the likeliest one.

    There are none if the likeliest one does not have more than `above` function words.
    """
    words = [*filter(None, _WORD.findall(text[:_LOOKED_AT].casefold()))]
    letters = "".join(words)
    if not letters.isascii():
        for language, script in _SCRIPTS.items():
            if _SHARE * len(script.findall(letters)) > len(letters):
                return [language]
    table = _languages()
    shares = defaultdict[str, float](float)
    for word in words:
        known = table.get(word, ())
        for language in known:
            shares[language] += 1 / len(known)
    most = max(shares.values(), default=0)
    return [language for language, found in shares.items() if most > above and found >= share * most]


def is_function_word(word: str, *languages: str) -> bool:
    """Whether a word, in any case and with or without its accents, is a function word of one of nine languages."""
    known = _languages().get(word.casefold(), ())
    return any(one in known for one in languages) if languages else bool(known)


@cache
def _languages() -> dict[str, tuple[str, ...]]:
    """The languages that have a function word, by the word as it is spelled and without its accents."""
    words = {one: text.split() for one, text in json.loads(FUNCTION_WORDS.read_text(encoding="utf-8")).items()}
    spelled = _by_word(words)
    return _by_word({one: map(without_accents, listed) for one, listed in words.items()}) | spelled


def _by_word(words: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for language, listed in words.items():
        for word in listed:
            found.setdefault(word, {})[language] = None
    return {word: tuple(languages) for word, languages in found.items()}
