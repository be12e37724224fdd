"""Phrases of languages in data files: each kind has all nine languages, or a reason why not."""

import json
import re
from pathlib import Path

import pytest
from pages import ROOT

from xsent.phrases import ANY, Phrases

LANGUAGES = {"en", "de", "fr", "es", "it", "pt", "nl", "ru", "ja"}
GREETINGS, REPLIES, CHAT = (
    "runtime/xsent/greetings.json",
    "apps/xsent_apps/notes/replies.json",
    "apps/xsent_apps/notes/chat.json",
)
UNSPACED = "Japanese, which writes no spaces, has a kind of its own or none of these"
MISSING = {  # kinds that lack languages, and why
    GREETINGS: {
        UNSPACED: {kind: "ja" for kind in "hellos addressees regards sent get for my".split()},
        "Only Japanese writes no spaces": {
            kind: "en de fr es it pt nl ru"
            for kind in "unspaced_hellos unspaced_addressees honorifics unspaced_regards unspaced_sent".split()
        },
        "Dutch greets with words that mean more": {
            "dears": "nl ja",
            "dears_in_sentences": "en de fr es it pt ru ja",
            "common_words": "en de fr es it pt ru ja",
        },
        "Only these greet with a title and a name": {"dears_in_lines": "en es it pt ja"},
        "Spanish wishes are regards": {"wishes": "es ja"},
        "Only these write it otherwise": {"sent_otherwise": "en fr es it pt ja"},
        "Russian writes it as a sentence of its own": {"brevity": "ru ja"},
        "Russian names have no particles": {"particles": "ru ja"},
    },
    REPLIES: {
        UNSPACED: {kind: "ja" for kind in "wrote this trouble please do_not_reply".split()},
        "Only Japanese writes no spaces": {"unspaced_wrote": "en de fr es it pt nl ru"},
        "The date comes first": {"on": "ru ja"},
        "Only Italian has a word between": {"on_the_day": "en de fr es pt nl ru ja"},
        "Russian has no article": {"the_mail": "en de fr es it pt nl ja"},
        "Either whole phrases or verbs": {
            "view_online": "fr es it pt nl ru ja",
            "view": "en de ja",
            "in_browser": "en de ja",
        },
        "It is one of the footers": {"this_is": "ru ja"},
        "Not seen yet": {"caution": "ja", "outside": "ja"},
        "Only these name the law": {"under": "en de nl ru ja"},
    },
    CHAT: {
        "A time follows the date": {"at": "ja"},
        "LINE is read in Japanese": {"saved": "en de fr es it pt nl ru", "unsent": "en de fr es it pt nl ru"},
    },
}


@pytest.mark.parametrize("file", MISSING)
def test_every_kind_has_all_languages_or_a_reason(file: str) -> None:
    kinds = json.loads((ROOT / file).read_text(encoding="utf-8"))
    missing = {kind: LANGUAGES - phrases.keys() for kind, phrases in kinds.items() if ANY not in phrases}
    reasons = {kind: {*languages.split()} for kinds in MISSING[file].values() for kind, languages in kinds.items()}
    assert {kind: languages for kind, languages in missing.items() if languages} == reasons


@pytest.mark.parametrize("file", MISSING)
def test_phrases_are_sound_and_none_is_there_twice(file: str) -> None:
    for kind, by_language in json.loads((ROOT / file).read_text(encoding="utf-8")).items():
        for language, phrases in by_language.items():
            assert phrases and len({*phrases}) == len(phrases), f"{kind} {language}"
            for phrase in phrases:
                assert not re.fullmatch(phrase, ""), f"{kind} {language} {phrase}"


def test_templates_join_the_phrases_of_all_languages_or_of_each(tmp_path: Path) -> None:
    kinds = {
        "thanks": {"en": ["thanks", "thank you"], "pl": ["dziękuję"]},
        "for": {"any": ["4"], "en": ["for"], "pl": ["za"], "de": ["für"]},
    }
    (tmp_path / "x.json").write_text(json.dumps(kinds), encoding="utf-8")
    phrases = Phrases(tmp_path / "x.json")
    assert phrases.of_all("(?P<x><thanks>)!") == "(?P<x>(?:thanks|thank you|dziękuję))!"
    assert phrases.of_each("<thanks> <for>") == ("(?:(?:thanks|thank you) (?:4|for)|(?:dziękuję) (?:4|za))")
