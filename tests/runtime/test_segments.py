"""Texts to sentences."""

import sys

import pytest
from texts import SENTENCES

from xsent.documents.encoder import sentences_of, split_sentences
from xsent.errors import MissingExtraError

TEXTS = {
    "en": ["Dr. Smith left at 3 p.m. on Monday.", "Then what?"],
    "fr": ["Voir art. 3 de la loi.", "Et après ?"],
    "de": ["Das ist z. B. ein Satz.", "Der 3. Mai war schön."],
    "es": ["¿Dónde está la Sra. García?", "¡Aquí está!"],
    "it": ["Il dott. Rossi dorme.", "Perché no?"],
    "pt": ["O Sr. Silva chegou.", "Que bom!"],
    "nl": ["Dat kost bijv. 3,50 euro.", "Is dat duur?"],
    "ru": ["Он живёт на ул. Ленина.", "Это далеко?"],
    "ja": ["これは文です。", "次の文です！"],
    **{unknown: ["One thing.", "Another thing!"] for unknown in ("", "xx")},  # by general rules
}


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_of_every_language(language: str) -> None:
    pytest.importorskip("sentencex")
    space = "" if language == "ja" else " "
    assert split_sentences(space.join(TEXTS[language]), language) == TEXTS[language]


def test_space_and_blank_lines_are_no_sentences() -> None:
    pytest.importorskip("sentencex")
    text = "  A heading\n\nA text that goes\nover two lines. The end.  \n\n"
    assert split_sentences(text, "en") == ["A heading", "A text that goes\nover two lines.", "The end."]
    assert split_sentences(" \n\n ", "en") == []


@pytest.mark.parametrize("language", ["en", "ja", "xx"])
def test_nothing_of_a_text_is_lost(language: str) -> None:
    pytest.importorskip("sentencex")
    for text in ["x" * 9001, " ".join(SENTENCES * 9), "".join(SENTENCES * 9), "\n\n".join(SENTENCES), "。" * 9000]:
        assert "".join("".join(split_sentences(text, language)).split()) == "".join(text.split())


def test_long_paragraphs_are_split_like_short_ones_and_an_open_quotation_swallows_little() -> None:
    pytest.importorskip("sentencex")
    sentences = [f"Number {number} is a number, and {number} is its name." for number in range(1000)]
    assert split_sentences(" ".join(sentences), "en") == sentences
    sentences[500] = 'He said: "Number 500 is not.'
    sentences[999] += '"'
    assert len(split_sentences(" ".join(sentences), "en")) > 900


def test_sentences_that_are_given_need_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentencex", None)
    assert sentences_of([" One. Two. ", "", " \t", "Three"], "en") == ["One. Two.", "Three"]
    assert sentences_of([], "en") == sentences_of(" ", "en") == []
    with pytest.raises(TypeError, match="got bytes in a document"):
        sentences_of([b"a"], "en")  # type: ignore[list-item]
    with pytest.raises(MissingExtraError, match=r"pip install 'xsent\[documents\]'"):
        split_sentences("A. B.", "en")
