"""Encodings of notes."""

import json
from pathlib import Path

import pytest
from commands import Runner, raises
from reading import texts, written
from texts import MOJIBAKE

from xsent import DataError, SentenceEncoder
from xsent.files.encodings import decoded, old_encoding
from xsent_apps.notes.folder import Notes
from xsent_apps.notes.read import read_passages
from xsent_apps.notes.source import Remarks

WESTERN = [
    "Die Müllabfuhr kommt am Dienstag – für 3 €.",
    "« Où est la gare ? » L’été, créée, CAFÉ», coûte 12½ €. Villes n°s 5 et 6.",
    "¿Dónde está la estación? ¡Aquí! São José, n.º 5, rødgrød, æøå.",
    "Müll",
    "Der Preis: ƒ 5, ƒ5 oder ƒ(x). •Erstens •zweitens",
]
# Texts in other encodings, which would be nonsense as cp1252.
FOREIGN = {
    "cp1251": "Привет, где вокзал?",
    "cp1253": "Πού είναι ο σταθμός;",
    "cp1250": "Byłem wczoraj w mieście, żółw też.",
    "cp1256": "أين المحطة",
    "gbk": "车站在哪里",
    "euc-jp": "駅はどこですか",
    "shift_jis": "駅はどこですか。",
    "utf-16": "車站在哪裡",
}


def test_old_western_texts_are_known_and_nothing_else(tmp_path: Path) -> None:
    remarks = Remarks()
    for text in WESTERN:
        file = written(tmp_path, "old.txt", text.encode("cp1252"))
        assert " ".join(passage for _, passage, _ in read_passages(file, remarks)) == text
    assert remarks.guessed == {"cp1252": [file] * len(WESTERN)}
    for encoding, text in FOREIGN.items():
        assert old_encoding(text.encode(encoding)) != "cp1252", encoding
    assert texts(tmp_path, "<p>déjà vu</p>".encode("latin-1"), "a.html") == ["déjà vu"]
    for head in ("", "Content-Type: text/plain; charset=iso-8859-1\n"):  # or nothing, as many old programs say
        mail = f"From: Anna\nSubject: Tickets\n{head}\nL’été arrive, à 9 €.\n".encode("cp1252")
        assert texts(tmp_path, mail, "a.eml") == ["L’été arrive, à 9 €."]


RUSSIAN = "Поезд на Казань отправляется с третьего пути."
JAPANESE = "会議は金曜日の十時からです。"
FRENCH = "La clé est sous le tapis."
UNDECLARED = [
    *((RUSSIAN, encoding, encoding) for encoding in ("cp1251", "cp866")),
    (f"╔{'═' * 60}╗\n║ {RUSSIAN} ║\n╚{'═' * 60}╝\n", "cp866", "cp866"),
    (RUSSIAN, "koi8-r", "KOI8-R"),
    (f"{'The minutes of the meeting. ' * 40}Present: Иван Петров.", "cp1251", "cp1251"),
    (RUSSIAN.upper(), "koi8-r", "KOI8-R"),
    ("Я люблю свой город.", "koi8-r", "KOI8-R"),  # as cp1251 it has a small letter, then capitals
    ("Я не хочу гостей.", "cp1251", "cp1251"),
    (JAPANESE, "shift_jis", "Shift_JIS"),
    ("議題：①番の予算のこと", "cp932", "Shift_JIS"),
    (JAPANESE, "euc_jp", "EUC-JP"),
    ("README: pump ポンプ 2024", "cp932", "Shift_JIS"),
    ("日時：金曜日\n議題：予算のこと", "euc_jp", "EUC-JP"),
    (JAPANESE, "iso2022_jp", "ISO-2022-JP"),
    *((f"{text}\n", f"utf-16-{end}", "UTF-16") for text in (RUSSIAN, JAPANESE, FRENCH) for end in ("le", "be")),
    *((f"{text}\n", f"utf-32-{end}", "UTF-32") for text in (RUSSIAN, JAPANESE, FRENCH) for end in ("le", "be")),
    *((JAPANESE, encoding, "") for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32")),
    ("L'État, « été », œuvre, n° 5 – 40 €. ¡ÇA!", "cp1252", "cp1252"),
]


@pytest.mark.parametrize(("text", "encoding", "guessed"), UNDECLARED)
def test_an_encoding_that_is_not_declared_is_told_by_the_text(text: str, encoding: str, guessed: str) -> None:
    assert decoded(text.encode(encoding)) == (text, guessed)


UNKNOWN = [
    ("Πού είναι ο σταθμός; Το κλειδί είναι κάτω από το χαλάκι.", "cp1253"),
    ("أين المحطة من فضلك", "cp1256"),
    ("המפתח נמצא מתחת לשטיח", "cp1255"),
    ("车站在哪里，请问？", "gbk"),
    ("車站在哪裡", "big5"),
    ("열쇠는 매트 아래에 있습니다", "cp949"),
    ("Zażółć gęślą jaźń", "cp1250"),
    (RUSSIAN, "iso8859-5"),
    ("Die Tür ist schön. Größe: 3 m. Überall Äpfel.", "cp850"),
    ("Die Tür ist schön. Größe: 3 m. Überall Äpfel.", "mac_roman"),
    ("Eén kopje, geïmporteerd uit België.", "mac_roman"),
]


@pytest.mark.parametrize(("text", "encoding"), UNKNOWN)
def test_a_text_in_another_encoding_is_refused_and_not_read_as_nonsense(text: str, encoding: str) -> None:
    raises(DataError, "its encoding cannot be told; convert it to UTF-8", decoded, text.encode(encoding))


DECLARED = [
    ('<meta charset="windows-1251">', RUSSIAN, "cp1251"),
    ('<?xml version="1.0" encoding="koi8-r"?>', RUSSIAN, "koi8-r"),
    ('<META content="text/html; charset=X-SJIS" http-equiv=Content-Type>', JAPANESE, "cp932"),
    ("<meta charset=euc-jp>", JAPANESE, "euc_jp"),
    ('<meta charset="iso-8859-15">', "Das Zimmer kostet 40 €.", "iso-8859-15"),
    ('<meta charset="gb2312">', "车站在哪里，请问？", "gbk"),
    ("<?xml version='1.0' encoding='ISO-8859-2'?>", "Zażółć gęślą jaźń", "iso-8859-2"),
    ("<!-- <meta charset=koi8-r> --><meta charset=greek>", "Πού είναι;", "iso-8859-7"),
    ('<meta name=description content="charset=of it"><meta charset=greek>', "Πού είναι;", "iso-8859-7"),
    # Declared wrongly.
    ('<meta charset="iso-8859-1">', RUSSIAN, "utf-8"),
    ('<meta charset="iso-8859-1">', RUSSIAN, "cp1251"),
    ('<meta charset="koi8-r">', RUSSIAN, "cp1251"),
    ('<meta charset="windows-1251">', RUSSIAN, "koi8-r"),
    ('<meta charset="shift_jis">', JAPANESE, "euc_jp"),
    ('<meta charset="utf-8">', "L’été à 9 €.", "cp1252"),
    ('<meta charset="utf-16">', "L’été à 9 €.", "utf-8"),
    ('<meta charset="none">', RUSSIAN, "koi8-r"),
]


@pytest.mark.parametrize(("declaration", "text", "encoding"), DECLARED)
def test_the_declared_encoding_of_a_page_is_used_if_it_is_true(
    declaration: str, text: str, encoding: str, tmp_path: Path
) -> None:
    page = f"{declaration}<html><body><p>{text}</p></body></html>"
    assert texts(tmp_path, page.encode(encoding), "a.html") == [text]
    kind = declaration.rpartition("charset=")[2].strip('">')
    if "<meta charset=" in declaration:
        mail = f"From: a@b.example\nSubject: b\nContent-Type: text/plain; charset={kind}\n\n{text}\n"
        assert texts(tmp_path, mail.encode(encoding), "a.eml") == [text]


def test_few_damaged_characters_of_a_declared_encoding_are_replaced() -> None:
    page = f"{JAPANESE * 20}".encode("euc_jp")
    assert decoded(page + b"\xff", "euc-jp").text == f"{JAPANESE * 20}\ufffd"
    raises(DataError, "its encoding cannot be told", decoded, "Πού είναι;".encode("cp1253"), "utf-8")


def test_words_of_texts_in_the_wrong_encoding_are_mended(run: Runner, tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    broken = [text.encode().decode("latin-1") for text in MOJIBAKE]
    for number, text in enumerate(broken):
        written(tmp_path, f"{number}.txt", text)
    notes, encoder = Notes(tmp_path), SentenceEncoder(clean=True)
    notes.update(encoder)
    for text, right in zip(broken, MOJIBAKE, strict=True):
        (hit,) = notes.search(encoder, right, 1)
        assert hit.text == text and hit.score > 1.1
    written(tmp_path, "0.txt", "Something else.")
    notes.update(encoder)  # drops the old words
    assert run("verify", notes.index)[0] == 0
    (line,) = run("notes", tmp_path, MOJIBAKE[1], "--json", "--clean", "-n", 1)[1].splitlines()
    assert json.loads(line)["text"] == broken[1]  # none of its characters ends a line
