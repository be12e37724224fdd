"""Text to piece ids."""

import unicodedata
from pathlib import Path

import pytest
from commands import raises

from xsent.clean import remove_format
from xsent.errors import BundleError
from xsent.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(mini_bundle: Path) -> Tokenizer:
    return Tokenizer(mini_bundle / "sentencepiece.model")


def test_the_model_adds_no_marks(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode("\u2028") == tokenizer.encode("\t \n") == []
    assert tokenizer.encode("Anna") + tokenizer.encode("Anna") == tokenizer.encode("Anna Anna")


def test_format_characters_are_no_part_of_a_text(tokenizer: Tokenizer) -> None:
    marked, plain = "\ufeffDie Sau\u00adna ist ge\u200böff\u2060net.\u202c", "Die Sauna ist geöffnet."
    assert tokenizer.encode(marked) == tokenizer.encode(plain)
    assert tokenizer.encode("\u200b\u200d") == []
    assert tokenizer.encode("👩\u200d👧") == tokenizer.encode("👩👧")
    assert tokenizer.encode("❤\ufe0f") != tokenizer.encode("❤")  # a piece of the vocabulary
    signs = map(chr, range(0x110000))
    names = [unicodedata.name(sign) for sign in signs if unicodedata.category(sign) == "Cf" and remove_format(sign)]
    assert all(name.startswith(("ARABIC ", "SYRIAC ", "KAITHI ", "EGYPTIAN ")) for name in names)
    for ordinary in ("Anna", "Über 漢字 ё", "é", "a\u0301", "☕\ufe0f", "\t\n\x07"):
        assert remove_format(ordinary) is ordinary


def test_what_is_no_model(tmp_path: Path) -> None:
    for name, content in (("missing", None), ("empty", b""), ("other", b"not a model")):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        raises(BundleError, f"{name}: not a SentencePiece model", Tokenizer, tmp_path / name)
