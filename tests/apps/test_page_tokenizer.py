"""The browser page's own tokenizer and words, run in Node, beside SentencePiece itself and Python's."""

import json
import random
import shutil
import subprocess
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from page_modules import page_modules
from texts import OURS, SENTENCES, multilingual, train_tokenizer

from xsent.bundle import Bundle, builtin_path
from xsent.clean import remove_format
from xsent.known_words import KnownWords
from xsent.search.shared_words import shared_words
from xsent.search.store import IndexDatabase, IndexState, Passage
from xsent.similarity import unit_rows
from xsent.tokenizer import Tokenizer
from xsent.words import has_words, word_keys
from xsent_export.export import export
from xsent_export.options import ExportOptions, Precision

CLIENT = Path(__file__).parent / "page_tokenizer.mjs"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("node") is None, reason="needs node")]


def in_node(model: Path, texts: Sequence[str]) -> dict[str, Any]:
    """What the page makes of texts."""
    command = ["node", str(CLIENT), str(page_modules() / "xsent"), str(model)]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def odd_texts() -> list[str]:
    """Every character up to Hangul alone or marked, some beyond, strings of random characters, and runs of spaces."""
    chance = random.Random(2)
    named = [chr(code) for code in range(0x11000) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    beyond = [chr(code) for code in range(0x1F000, 0x1FB00)] + ["\U0001d400", "\U00020000", "\U0010ffff"]
    marks = [chr(code) for code in range(0x300, 0x370)]
    runs = [" " * n + "a" + "\u3000" * n + "b" + "\t\n" * n for n in range(1, 40)]
    blocks = ["".join(named[start : start + 40]) for start in range(0, len(named), 40)]
    drawn = named + beyond * 3 + [" "] * 2000
    mixed = ["".join(chance.choices(drawn, k=chance.randint(1, 60))) for _ in range(700)]
    marked = [chance.choice("aeionuкиがक") + "".join(chance.choices(marks, k=3)) for _ in range(300)]
    return [*blocks, *runs, *mixed, *marked, *beyond]


UNKNOWN = ["The cat sleeps. 🙂", "🙂 🙂 🙂", "კატა სძინავს", "猫が眠る", "Hello, კატა"]  # some mostly, some not
TYPED = [
    "Schluessel fuer die Tuer",
    "Perche e cosi?",
    "¿Tambien?",
    "perche\u0301",
    "MANANA",
    "Die Strasse in Köln",
    "the cat of 1999, Sato",
    "Где мой велосипед?",
    "らーめんとﾗｰﾒﾝ、ラーメン。ヽヾ ヵヶ ヷ ーヴ",
]
DIGITS = [  # numbers in all notations, and beside what is none
    "0170 1234567, +49 (0)170/123 45 67, 0049 170 1234567. (555) 123-4567; 1-555-123-4567; 8 (495) 123-45-67",
    "84951234567 17777777777 9.999.990 +49-170-1234567",
    "DE89 3704 0044 0532 0130 00 GB29 NWBK 6016 1331 9268 19 ok, ISBN 978-3-16-148410-0, 4111 1111 1111 1111",
    "1.234,56 1,234.56 1 234,56 1'234.56 1234.56 12,34,567 48,210.00 1.234 2.5 3.10 1.2.3 0.5 -5 007 12345.6.7",
    "2024-03-12T14:30:00Z 12.3.2024, 12.03.24 3/12/2024 3/25/2024 2024年3月12日 3月12日 12-Mar-2024 31.02.2024 2024/03",
    "午後2時30分; March 12, 2024; le 1er mars 2024; 12. März; 1º de março de 2024; 12 марта 2024 г. 5 out of 10",
    "25000円 2万5千円 二万五千円 3億2千万 1.5万人 120万5,000円 １０万 金弐万五千円也 六本木",
    "午後三時半 三時間 15時三十分 R6年4月1日 H.31.4.30 十五万 百万 千葉 25 milj",
    "一人 十分 1,234.5億 5千万 3.2千万",
    "1,2 Mio. € 25 тыс. руб. 25 mil euros 2 millions 25k 25К 4k €3.5m 2 M€ 25т.р. 3 mil millones 1.234 million 2-3 mln",
    "令和6年4月1日 R6.4.1 令和元年5月 平成 31 年 4 月 30 日 昭和六十四年一月七日",
    "2024年(令和6年)4月1日 二〇二四年十二月二十五日",
    "14:30 2:30 pm 2:30 P.M. 12 am 14h30 18 h 14.30 Uhr 18 Uhr 8 Uhr abends 14.30 uur 14時30分 3時間 10:00-12:00",
    "2 hours and 15 minutes, 2 Std. 15 Min. 2時間15分 2時間半 2 часа 15 минут",
    "令和元年 Backup_20240229.tar 20241301 05-Dec-25 5/dez/25 05DEC2025 5 déc. '25 15/05 1/12/3 17u20 18 ч 45 мин 21u",
    "½ cup, 2½, 1/2 cup 2 3/4 l 5/4 1/2/2024 half a cup, halbe Tasse, la media XK-42 LH-442-B 1200-435 12-14",
    "2.5 l 0,75 3.10 1.5.2 2,5. 9003 114 552 12 34 56 78 2024 12",
    "2€50 2 euros 50 2 Euro 50 Stück 4 812 руб. 50 коп. 1m50 (11) 98765-4321 (55) 1234 5678 18 час. 30 мин.",
    "9 часов вечера 2 часа дня 9 uur 's avonds 9 in the evening 8 heures du soir 2 Uhr früh 四番目 第十二章",
]


def random_numbers() -> list[str]:
    """Digits and what is between them in numbers, drawn at random."""
    chance = random.Random(3)
    signs = [*"0123456789", *"0123456789", *" .,:/-+('’) ", *"月日年万千億十二五〇円人k€h"]
    signs += [
        "12",
        "2024",
        "pm",
        " Uhr",
        " März ",
        "de",
        "令和",
        " Mio.",
        " mil",
        "05",
        "/12",
        "-dec-",
        "元",
        "ч",
        "u",
        "½",
        "half ",
        "x-",
    ]
    return ["".join(chance.choices(signs, k=chance.randint(2, 40))) for _ in range(3000)]


NOTHING = [
    "N/A",
    "k. A.",
    "[deleted]",
    "null",
    "NaN",
    "#REF!",
    "...",
    "<p>&nbsp;</p>",
    "<br/>",
    "<p>N/A</p>",
    "👍👍👍",
    "\u200b",
]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """That of the built-in model."""
    return Tokenizer(builtin_path() / "sentencepiece.model")


@pytest.fixture(scope="module")
def read(tokenizer: Tokenizer) -> tuple[list[str], dict[str, Any]]:
    """All kinds of texts, and what the page makes of them with the built-in model."""
    bundle = Bundle.open(builtin_path())
    pieces = tokenizer._processor.id_to_piece(list(range(0, tokenizer.vocab_size, 20)))
    words = [piece[1:] for piece in pieces if piece.startswith("▁")]
    made = [*multilingual(1500), *odd_texts(), " ".join(SENTENCES) * 3]
    texts = [*UNKNOWN, *NOTHING, *TYPED, *DIGITS, *random_numbers(), *bundle.golden.sentences, *words, *made]
    return texts, in_node(bundle.tokenizer_path, texts)


def test_ids_of_the_built_in_model_are_those_of_sentencepiece(
    read: tuple[list[str], dict[str, Any]], tokenizer: Tokenizer
) -> None:
    texts, answer = read
    processor = sentencepiece.SentencePieceProcessor(model_file=str(builtin_path() / "sentencepiece.model"))
    expected = processor.encode([*map(remove_format, texts)])
    assert [text for text, here, there in zip(texts, answer["ids"], expected, strict=True) if here != there] == []
    unknown = [tokenizer.mostly_unknown(np.array(tokenizer.encode(text))) for text in UNKNOWN]
    assert answer["unknown"][: len(UNKNOWN)] == unknown and {*unknown} == {True, False}


def test_words_are_those_of_python(read: tuple[list[str], dict[str, Any]], tokenizer: Tokenizer) -> None:
    texts, answer = read
    assert [text for text, here in zip(texts, answer["worded"], strict=True) if here != has_words(text)] == []
    assert [has_words(text) for text in NOTHING] == [False] * len(NOTHING)
    for text, keys, words in zip(texts, answer["keys"], answer["words"], strict=True):
        expected = [*word_keys(text)]
        # Cherokee has small letters in JavaScript and large ones in Python when case is ignored.
        assert [[key.lower() for key in word] for word in expected] == [[key.lower() for key in word] for word in keys]
        rare = {word[0].lower(): rarity for word in expected if (rarity := tokenizer.rarity(word))}
        assert {word["keys"][0]: word["rarity"] for word in words} == rare


SHARING = [  # texts, which are queries too
    "Die Suppe kocht.",
    "Die Suppenküche ist im Keller, die Suppe auf dem Herd.",
    "Is the bike insured?",
    "Bike repair in 2024",
    "Fahrrad 2024, Versicherung",
    "東京タワーに行きました。",
    "Müller",
    "Mullers Garten",
]


def test_words_say_as_much_as_in_python(tmp_path: Path, tokenizer: Tokenizer) -> None:
    database = IndexDatabase(tmp_path, write=True)
    passages = [Passage.of(b"", "", line, text, "", "") for line, text in enumerate(SHARING, 1)]
    database.save(IndexState("", 9), passages=passages)
    count = len(SHARING)
    shares = in_node(builtin_path() / "sentencepiece.model", SHARING)["shares"]
    for query, here in zip(SHARING, shares, strict=True):
        there = shared_words(database, query, [], most=99, rows=count, among=count, rarity=tokenizer.rarity)
        assert here == pytest.approx([there.get(row, 0) for row in range(count)]) and max(here) == pytest.approx(1)
    assert 0 < shares[0][1] < 1 and 0 < shares[1][0] < 1 and 0 < shares[6][7] < 1


@pytest.mark.parametrize("precision", [None, "float32", "int4-table"])
def test_words_are_as_near_as_in_python(precision: Precision | None, deep_checkpoint: Path, tmp_path: Path) -> None:
    options = ExportOptions(precision=precision, least_cosine=0.9, tolerance=20.0)  # of few pairs
    path = export(deep_checkpoint, tmp_path / "bundle", options).path if precision else builtin_path()
    bundle = Bundle.open(path)
    words = KnownWords(bundle, Tokenizer(bundle.tokenizer_path))
    texts = [*SHARING, "Bicycle", "", "...", "the", "🙂 é", *SENTENCES[:8]]
    here = in_node(bundle.tokenizer_path, texts)
    assert here["nearness"] == [pytest.approx(words.nearness(query, texts).tolist(), abs=1e-5) for query in texts]
    assert precision or here["nearness"][8][3] > 0.5  # "Bicycle", "Bike"; in small models, no piece is rare
    assert np.abs(unit_rows(words._table(np.arange(50))) - np.array(here["rows"])).max() < 1e-6


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"byte_fallback": False},
        {"add_dummy_prefix": False, "remove_extra_whitespaces": False, "normalization_rule_name": "identity"},
    ],
    ids=["ours", "without bytes", "untouched"],
)
def test_ids_of_other_unigram_models_are_those_of_sentencepiece(settings: dict[str, object], tmp_path: Path) -> None:
    model = train_tokenizer(tmp_path, SENTENCES, 700, **{**OURS, **settings})
    texts = multilingual(600)
    expected = sentencepiece.SentencePieceProcessor(model_file=str(model)).encode([*map(remove_format, texts)])
    assert in_node(model, texts)["ids"] == expected


def test_what_it_cannot_read_is_refused(tmp_path: Path) -> None:
    for settings, message in (
        ({"model_type": "bpe"}, "BPE"),
        ({"user_defined_symbols": ["<hey>"]}, "user-defined pieces"),
    ):
        model = train_tokenizer(tmp_path, SENTENCES, 700, **{**OURS, **settings})
        assert message in in_node(model, ["a"])["error"]
    model.write_bytes((builtin_path() / "sentencepiece.model").read_bytes()[:5000])
    assert "copy the whole bundle again" in in_node(model, ["a"])["error"]
