"""Mails and mailboxes as passages."""

import gzip
from email.message import EmailMessage
from pathlib import Path

import pytest
from commands import raises
from reading import read, texts, written

from xsent import DataError
from xsent.greetings import is_sent_from
from xsent_apps.notes.read import read_passages
from xsent_apps.notes.source import Remarks

REPLY = """Dear all,

the pipe is replaced – on Thursday.

On 23 Feb, Anna wrote:

> When?
>> Soon.

-- 
Penhallow Lettings
"""


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("name", ["a.eml", "a.txt"])
def test_mails_are_decoded_and_answers_stand_alone(tmp_path: Path, name: str, encoding: str) -> None:
    mail = EmailMessage()
    mail["From"] = "Ann Ö. <a@b.example>"
    mail["Subject"] = "Heizung – März"
    mail["To"] = "all@b.example"
    mail.set_content(REPLY, cte=encoding)
    mail.add_alternative("<p>other</p>", "html")
    answer = (1, "Dear all, the pipe is replaced – on Thursday.", "Ann Ö. › Heizung – März")
    assert read(tmp_path, mail.as_bytes(), name) == [answer]


BELOW = "{}: Anna <a@b.example>\n{}: Montag, 2. September 2024\n{}: Boris\n{}: Keys\n\nWhere are they?\n"


@pytest.mark.parametrize("head", ["-----Original Message-----\n", "________________\n", ""])
@pytest.mark.parametrize("fields", ["From Sent To Subject", "De Enviado Para Asunto"])
def test_an_answered_mail_is_left_out_and_a_forwarded_one_stays(tmp_path: Path, head: str, fields: str) -> None:
    text = "In the shed.\n\n" + head + BELOW.format(*fields.split())
    mail = "From: b\nTo: a\nSubject: {} Keys\n\n" + text
    assert texts(tmp_path, mail.format("AW:"), "a.eml") == ["In the shed."]
    assert texts(tmp_path, mail.format("WG:"), "a.eml") == ["In the shed. Where are they?"]


def test_an_answer_in_a_page_stands_alone_below_its_subject(tmp_path: Path) -> None:
    mail = "From: b\nTo: a\nSubject: Re: Keys\nContent-Type: text/html\n\n"
    mail += "<p style='display: none'>preview</p><h1>Hello</h1>In the shed."
    mail += "<div class=gmail_attr>Anna wrote:</div><blockquote type=cite>Where are they?</blockquote>"
    assert read(tmp_path, mail, "a.eml") == [(1, "In the shed.", "b › Re: Keys › Hello")]


HEADS = [
    "From: Anna|Sent: Monday|To: b|Subject: x",
    "Von: Anna|Gesendet: Montag|An: b|Betreff: x",
    "Van: Anna|Verzonden: maandag|Aan: b|Onderwerp: x",
    "De : Anna|Envoyé : lundi|À : b|Objet : x",
    "Da: Anna|Inviato: lunedì|A: b|Oggetto: x",
    "De: Anna|Enviado el: lunes|Para: b|Asunto: x",
    "De: Anna|Enviada em: segunda-feira|Para: b|Assunto: x",
    "От: Анна|Отправлено: понедельник|Кому: b|Тема: x",
    "差出人: Anna|送信日時: 月曜日|宛先: b|件名: x",
    "Date: Monday|From: Anna <a@b.example>|To: b",
]
SEPARATED = [
    *("Original Message", "Ursprüngliche Nachricht", "Oorspronkelijk bericht", "Message d'origine", "Mensaje original"),
    *("Messaggio originale", "Mensagem original", "Исходное сообщение", "元のメッセージ"),
]
WROTE = [
    "On Mon, 11 Mar 2024 at 10:15, Anna Long |<a1@b.example> wrote:",
    "Am Mo., 11. März 2024 um 10:15 Uhr schrieb |Anna <a@b.example>:",
    "Op ma 11 mrt 2024 om |10:15 schreef Anna <a@b.example>:",
    "Le lun. 11 mars 2024 à 10:15, |Anna <a@b.example> a écrit :",
    "Il giorno lun |11 mar 2024 alle ore 10:15 Anna <a@b.example> ha scritto:",
    "El lun, 11 mar 2024 a las 10:15, Anna (<a@b.example>) |escribió:",
    "Em seg., 11 de mar. de 2024 às |10:15, Anna <a@b.example> escreveu:",
    "пн, 11 мар. 2024 г. в 10:15, |Анна <a@b.example>:",
    "2024年3月11日(月) 10:15 |Anna <a@b.example>:",
    *("Anna wrote:", "Anna a écrit :", "Анна пишет:", "Annaさんは書きました："),
]
FORMS = {
    "plain": "In the shed.\n{text}\n\nWhere?",
    "line": "In the shed.\n\n________________________________\n{text}\nWhere?",
    "paragraph": "<p>In the shed.</p><div style='border: none'><p>{page}</p></div><p>Where?",
    "table": "<p>In the shed.</p><table><tr><td>{rows}</table>Where?",
    "quoted": "In the shed.\n\n{text}\n\n> Where?\n>\n> There?",
    "above": "{text}\n> Where?\n\nIn\n> There?\nthe shed.",
    "cite": "<p>{line}</p><blockquote type=cite>Where?<ul><li>There?</ul></blockquote><p>In the shed.",
    "within": "In the shed.<blockquote type=cite>{line}<br>Where?</blockquote>",
    "gmail": "In the shed.<div class=gmail_attr>{line}</div><blockquote class=gmail_quote>Where?</blockquote>",
    "inner": "In the shed.<blockquote><div>{line}</div><div>Where?</div></blockquote>",
    "bare": "In<div>{line}</div><blockquote>Where?</blockquote> the shed.",
}


def answer(form: str, text: str) -> str:
    """An answer with the mail that it answers."""
    page = text.replace("<", "&lt;")
    rows = "<tr><td>".join(line.replace(":", ":<td>", 1) for line in page.split("|"))
    body = FORMS[form].format(
        text=text.replace("|", "\n"), page=page.replace("|", "<br>"), line=page.replace("|", ""), rows=rows
    )
    kind = "html" if "<div" in body or "<p" in body or "<blockquote" in body else "plain"
    return f"From: b\nTo: a\nSubject: Re: Keys\nContent-Type: text/{kind}; charset=utf-8\n\n{body}\n"


@pytest.mark.parametrize(
    ("forms", "texts_above"),
    [
        (["plain", "line", "paragraph", "table"], HEADS),
        (["plain", "paragraph"], [f"-----{words}-----" for words in SEPARATED]),
        (["plain", "paragraph"], [f"-------- {SEPARATED[0]} --------|{head}" for head in HEADS]),
        (["quoted", "above", "cite", "within", "gmail", "bare"], WROTE),
    ],
)
def test_answered_mails_are_left_out_in_nine_languages(
    forms: list[str], texts_above: list[str], tmp_path: Path
) -> None:
    for form in forms:
        for text in texts_above:
            assert " ".join(texts(tmp_path, answer(form, text), "a.eml")) == "In the shed.", (form, text)


KEPT = {
    "Trip": ("Hello.\n\nFrom: Berlin\nTo: Hamburg\nDate: 3 May", "Hello. From: Berlin To: Hamburg Date: 3 May"),
    "Re: a": (f"-----Original Message-----\n{HEADS[0]}\n\n> Where?\n\nHere.".replace("|", "\n"), "Here."),
    "Re: b": (f"{HEADS[0]}\n\nHere.".replace("|", "\n"), "Here."),
    "Fwd: c": (f"See.\n\nBegin forwarded message:\n\n> {HEADS[0]}||Here.".replace("|", "\n> "), "See. Here."),
    "d": ("See.\n\n---------- Forwarded message ---------\nFrom: A\nDate: Monday\nSubject: x\n\nHere.", "See. Here."),
}


@pytest.mark.parametrize("subject", KEPT)
def test_what_only_looks_like_an_answered_mail_stays(subject: str, tmp_path: Path) -> None:
    body, expected = KEPT[subject]
    assert texts(tmp_path, f"From: b\nTo: a\nSubject: {subject}\n\n{body}\n", "a.eml") == [expected]


SIGNATURES = [
    "-" * 30 + "\n高橋一郎\n東京都千代田区1-1\nTEL: 03-0000-1234\n" + "-" * 30,
    "━" * 20 + "\nみどり株式会社 高橋\ntakahashi@midori.example\n" + "━" * 20,
    "*-*-" * 5 + "\nAnna Long\nhttps://a.example\n",
    "_" * 12 + "\n\nAnna Long\nTel. +49 (0)30 123 45-67\n",
]
NO_SIGNATURES = ["-" * 30 + "\nThe shed has two doors.", "=" * 12 + "\n" + "See a@b.example.\n" * 11, "-" * 30]


def test_a_signature_below_a_line_of_signs_is_left_out(tmp_path: Path) -> None:
    for end in [*SIGNATURES, *NO_SIGNATURES]:
        found = " ".join(texts(tmp_path, f"From: b\nTo: a\nSubject: Keys\n\nIn the shed.\n\n{end}\n", "a.eml"))
        assert (found == "In the shed.") == (end in SIGNATURES or end == "-" * 30) and found.startswith("In the shed.")


def test_a_signature_below_a_sign_off_is_left_out(tmp_path: Path) -> None:
    text = "From: b\nTo: a\nSubject: Keys\n\nIn the shed.\n\nViele Grüße\n"
    for end, expected in {
        "Petra Ott\n\nOtt GmbH\nVertrieb | Tel. 0711 998877 | www.ott.example": "",
        "i. A. Petra Ott\n\nOtt GmbH & Co. KG\nTel.: +49 711 998877-12 | Fax: +49 711 998877-99 | petra@ott.example\n\n"
        "Geschäftsführer: Karl Ott, Eva Ott, Registergericht Stuttgart HRA 12345, USt-IdNr. DE123456789": "",
        "Petra Ott\nАссистент отдела продаж\nтел.: 0711 998877, доб. 14\ne-mail: ott@a.example": "",
        "Petra Ott\nAssistante\nTél : 0711 998877\n\nDe : Anna <a@b.example>\nEnvoyé : lundi\nObjet : x\n\nWhere?": "",
        "Petra Ott\nUfficio tecnico\nVia Roma, 12 - 37121 Verona (VR)\nTel. 0711 998877": "",
        "Petra Ott\nCabinet Ott – SARL au capital de 8 000 €\n12 bis, rue Haute\nTél. : 0711 998877": "",
        "Petra\nPS: Neue Nummer: 0711 998877": " Petra PS: Neue Nummer: 0711 998877",
        "Petra": " Petra",
        "0711 998877": " 0711 998877",
        "Petra\n\nPS: You find me under 0711 998877.": " Petra PS: You find me under 0711 998877.",
    }.items():
        assert " ".join(texts(tmp_path, text + end, "a.eml")) == f"In the shed. Viele Grüße{expected}"


def test_what_a_program_made_of_links_and_pictures_is_left_out(tmp_path: Path) -> None:
    text = "See the offer 17<https://safe.example/?url=https%3A%2F%2Fa.example&x=1>, or <https://b.example>.\n"
    text += "[cid:image001.png@01DA74B2.5E0C1D70]\n[image: a.png]\nAsk c@d.example<mailto:c@d.example>, if a<b [c].\n"
    mail = f"From: b\nTo: a\nSubject: Desks\n\n{text}"
    assert " ".join(texts(tmp_path, mail, "a.eml")) == (
        "See the offer 17, or <https://b.example>. Ask c@d.example, if a<b [c]."
    )


def test_odd_mails_are_read(tmp_path: Path) -> None:
    html = "From: a\nSubject: b\nTo: c\nContent-Type: text/html; charset=none\n\n<p>café<blockquote>was forwarded"
    assert texts(tmp_path, html, "a.eml") == ["café was forwarded"]
    assert texts(tmp_path, "From: a\nTo: b\nSubject: c\n\n> only\n> quoted", "b.txt") == ["only quoted"]
    assert texts(tmp_path, "From: Monday\nUntil: Friday\n", "c.txt") == ["From: Monday Until: Friday"]
    assert texts(tmp_path, b"\xff\0", "d.eml") != ["x"]  # read somehow, without an error


def test_only_what_is_too_long_or_too_deep_of_a_mail_is_lost(tmp_path: Path) -> None:
    word = "=?utf-8?q?caf=C3=A9?="
    mail = f"From: Anna <a@b.example>\nTo: b\nSubject: {f'{word} ' * 9000}\n\nIt rains.\n"
    (_, subject, context), (_, text, _) = read(tmp_path, mail, "a.eml")
    assert (text, context) == ("It rains.", f"Anna › {'café' * 49}caf…") and len(subject) > 300
    mail = "From: a\nTo: b\nSubject: c\nContent-Type: text/plain; charset=punycode\n\nIt rains-.\n"
    assert texts(tmp_path, mail, "a.eml") == ["It rains-."]  # in no encoding
    parts = [f'Content-Type: multipart/mixed; boundary="{depth}"\n\n--{depth}\n' for depth in range(99)]
    for depth in (15, 99):
        mail = f"From: a\nTo: b\nSubject: c\n{''.join(parts[:depth])}\nIt rains.\n"
        assert any("It rains." in text for text in texts(tmp_path, mail, "a.eml"))


def test_a_mailbox_is_many_mails(tmp_path: Path) -> None:
    box = "From a@b.example Mon\nFrom: Anna <a@b.example>\nSubject: Keys\nTo: c\n\nIn the shed.\n>From there on.\n\n"
    box += "From c@b.example Tue\nFrom: Boris\nSubject: Re: Keys\nTo: a\n\nThanks.\n"
    expected = [(2, "In the shed. From there on.", "Keys (Anna)"), (10, "Thanks.", "Re: Keys (Boris)")]
    for name, content in (("a.mbox", box.encode()), ("a.mbox.gz", gzip.compress(box.replace("\n", "\r\n").encode()))):
        assert read(tmp_path, content, name) == expected


def multipart(kind: str, *parts: str, boundary: str = "b") -> str:
    """A part that consists of others."""
    inner = "".join(f"--{boundary}\n{part}\n" for part in parts)
    return f'Content-Type: multipart/{kind}; boundary="{boundary}"\n\n{inner}--{boundary}--\n'


def part(kind: str, text: str, more: str = "") -> str:
    """A part with a text."""
    return f"Content-Type: {kind}\n{more}\n{text}\n"


HEAD = "From: a@b.example\nSubject: Pump\n"
PAGE = part("text/html", "<p>The pump is loud.</p>")
ROOF = "From: c@b.example\nSubject: Roof\n\nIt leaks.\n"
ATTACHED = "Content-Disposition: attachment\n"
CODED = "Content-Transfer-Encoding: base64\n"
PICTURE = part("image/png", "iVBORw0=", f"{CODED}Content-Disposition: inline; filename=a.png\n")
MORE = "Plain forms of a page lack some of it, or say what is in it with other words and signs."
MAIL_PARTS = {
    "a blank plain form": (multipart("alternative", part("text/plain", " "), PAGE), "The pump is loud."),
    "a no-break space": (
        multipart("alternative", part("text/plain; charset=utf-8", "\xa0"), PAGE),
        "The pump is loud.",
    ),
    "a stub": (
        multipart("alternative", part("text/plain", "This mail needs a program that shows HTML."), PAGE),
        "The pump is loud.",
    ),
    "a whole plain form": (
        multipart("alternative", part("text/plain", f"{MORE}\nAsk."), part("text/html", f"<h1>{MORE}</h1><p>Ask.")),
        f"{MORE} Ask.",
    ),
    "a page that is a stub": (
        multipart("alternative", part("text/plain", f"{MORE} " * 5), part("text/html", "Click to open your mail.")),
        " ".join([MORE] * 5),
    ),
    "a signature": (
        part(
            "text/plain",
            "-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\nLoud.\n- -- \nAnna\n"
            "-----BEGIN PGP SIGNATURE-----\niQEzBA\n-----END PGP SIGNATURE-----",
        ),
        "Loud.",
    ),
    "a page with pictures": (
        multipart("alternative", part("text/plain", ""), multipart("related", PAGE, PICTURE, boundary="c")),
        "The pump is loud.",
    ),
    "text around a picture": (
        multipart("mixed", part("text/plain", "Before."), PICTURE, part("text/plain", "After.")),
        "Before. After.",
    ),
    "an attached mail": (
        multipart("mixed", part("text/plain", "See below."), part("message/rfc822", ROOF)),
        "See below. | Roof (c@b.example): It leaks.",
    ),
    "an attached mail in base64": (
        multipart("mixed", part("message/rfc822", "RnJvbTogYwpTdWJqZWN0OiBSb29mCgpJdCBsZWFrcy4K", CODED)),
        "Roof (c): It leaks.",
    ),
    "an attached file of a mail": (
        multipart("mixed", part("application/octet-stream; name=a.eml", "U3ViamVjdDogUm9vZgoKSXQgbGVha3MuCg==", CODED)),
        "Roof: It leaks.",
    ),
    "a digest": (multipart("digest", f"\n{ROOF}"), "Roof (c@b.example): It leaks."),
    "a digest of Mailman": (
        multipart(
            "mixed",
            part(
                "text/plain",
                "Send submissions to list@b.example",
                "Content-Description: Roofs Digest, Vol 4, Issue 1\n",
            ),
            part("text/plain", "1. Roof (c)", "Content-Description: Today's Topics (1 message)\n"),
            multipart("digest", f"\n{ROOF}", boundary="c"),
            part("text/plain", "Roofs mailing list", "Content-Description: Digest Footer\n"),
        ),
        "Roof (c@b.example): It leaks.",
    ),
    "a text that is attached to another": (
        multipart(
            "mixed",
            part("text/plain", "See below."),
            part("text/plain", "x", ATTACHED),
            part("text/plain", f"{'_' * 40}\nlist@b.example\n"),
        ),
        "See below.",
    ),
    "a text that is only attached": (
        multipart("mixed", part("text/plain", "See it.", ATTACHED)),
        "See it.",
    ),
    "an invitation": (
        multipart("alternative", part("text/plain", "On Monday."), part("text/calendar", "BEGIN:VCALENDAR")),
        "On Monday.",
    ),
    "no boundary": ("Content-Type: multipart/mixed\n\nThe pump is loud.\n", "The pump is loud."),
    "lines that begin with a space": (
        part("text/plain; format=flowed; delsp=yes", "The pump  \n is  \n loud."),
        "The pump is loud.",
    ),
    "lines of Japanese that begin with a space": (
        part("text/plain; charset=utf-8; format=flowed; delsp=yes", "猫は \n 一日に \n 二回。"),
        "猫は一日に二回。",
    ),
    "lines of Japanese": (
        part("text/plain; charset=utf-8; format=flowed; delsp=yes", "猫は一日に \n二回。\n\n-- \nx"),
        "猫は一日に二回。",
    ),
}


@pytest.mark.parametrize("kind", MAIL_PARTS)
def test_all_text_of_a_mail_is_read(kind: str, tmp_path: Path) -> None:
    content, expected = MAIL_PARTS[kind]
    found = read(tmp_path, HEAD + content, "a.eml")
    inner = [(context.partition("Pump")[2].removeprefix(" › "), text) for _, text, context in found]
    assert " | ".join(f"{title}: {text}" if title else text for title, text in inner) == expected


def test_a_part_that_cannot_be_read_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    greek = b"\xd0\xef\xfd \xe5\xdf\xed\xe1\xe9;"
    parts = multipart("mixed", part("text/plain", "See below."), part("text/plain", "GREEK"))
    content = (HEAD + parts).encode().replace(b"GREEK", greek)
    remarks = Remarks()
    file = written(tmp_path, "a.eml", content)
    assert [text for _, text, _ in read_passages(file, remarks)] == ["See below."]
    unknown = "not UTF-8 (byte 0xd0 at 1), and its encoding cannot be told; convert it to UTF-8"
    assert remarks.lost == {file: [unknown]}
    box = b"From a Mon Mar 4 10:00:00 2024\nSubject: a\n\n%s\n\nFrom b Mon Mar 4 10:00:00 2024\nSubject: b\n\nx\n"
    file = written(tmp_path, "a.mbox", box % greek)
    remarks = Remarks()
    assert [(line, text) for line, text, _ in read_passages(file, remarks)] == [(7, "x")]
    assert remarks.lost == {file: [f"the email at line 2: {unknown}"]}
    raises(
        DataError,
        r"a\.mbox: the email at line 2: not UTF-8",
        texts,
        tmp_path,
        box.partition(b"From b")[0] % greek,
        "a.mbox",
    )
    secret = HEAD + part("application/pkcs7-mime", "MIIB", CODED)
    raises(DataError, r"a\.eml: its text is encrypted; save it decrypted", texts, tmp_path, secret, "a.eml")
    raises(DataError, r"a\.eml: not UTF-8", texts, tmp_path, HEAD.encode() + b"\n" + greek, "a.eml")


ENCODED_HEADS = {
    "From: =?utf-8?b?w4Q=?= <a@b.example>\nSubject: a =?iso-8859-1?q?=E9?= b\n": "Ä › a é b",
    'From: "=?utf-8?q?=C3=84?=, B" <a@b.example>\nSubject: =?utf-8?b?0JLRgdGC?=\n =?utf-8?b?0YDQtdGH0LA=?=\n': (
        "Ä, B › Встреча"
    ),
    "From: a\nSubject: =?utf-8?b?0JLR?= =?utf-8?b?gdGC0YDQtdGH0LA=?=\n": "a › Встреча",  # cut within a letter
    "From: a\nSubject: =?x-sjis?b?lKo=?= =?none?q?x=20y?= =?utf-8?b?eg?= =?utf-8?b?e?=\n": "a › 八x yze",
    "From: a\nSubject: C:\\users =?utf-8?q?=C3=A9\n": "a › C:\\users =?utf-8?q?=C3=A9",
}


@pytest.mark.parametrize("head", ENCODED_HEADS)
def test_fields_in_words_are_decoded(head: str, tmp_path: Path) -> None:
    assert read(tmp_path, f"{head}\nx", "a.eml") == [(1, "x", ENCODED_HEADS[head])]


@pytest.mark.parametrize(("charset", "text"), [("cp1251", "Встреча"), ("iso2022_jp", "会議のお知らせ"), ("utf-8", "é")])
def test_fields_and_texts_that_are_not_encoded_are_read(charset: str, text: str, tmp_path: Path) -> None:
    mail = f"From: {text} <a@b.example>\nSubject: {text} 1\n\n{text}\n".encode(charset)
    assert read(tmp_path, mail, "a.eml") == [(1, text, f"{text} › {text} 1")]


def test_only_a_sender_and_a_date_begin_a_mail_of_a_mailbox(tmp_path: Path) -> None:
    text = "From the shop I bring paint.\n\nFrom Monday on the office is closed.\n\nFrom Tue on: not.\n\nThe shed."
    for first, second in (
        ("From a@b.example Tue Mar 12 10:00:00 2024", "From b@b.example Tue Mar 12 11:00:00 2024"),
        ("From 1793@xxx Tue Mar 12 10:00:00 +0000 2024", "From - Tue Mar 12 11:00:00 2024"),
        ("From a at b.example  Tue Mar 12 10:00:00 2024", "From MAILER-DAEMON Tue Mar 12 11:00 2024"),
        ("From a@b.example 2024-03-12 10:00:00+01:00", "From b@b.example Tue, 12 Mar 2024 10:00:00 +0100"),
    ):
        box = f"{first}\nFrom: a\nSubject: Paint\n\n{text}\n\n{second}\nX-Status: 1\nSubject: Pump\n\nIt is loud.\n"
        expected = [(2, text.replace("\n\n", " "), "Paint (a)"), (14, "It is loud.", "Pump")]
        assert read(tmp_path, box, "a.mbox") == expected
        assert read(tmp_path, box, "b.txt") == expected  # an archive of a mailing list


SAVED = {
    "Subject: Notice\nContent-Type: text/plain; charset=utf-8\n": True,
    "From: a@b.example\nSubject: Notice\n": True,
    "Return-Path: <a@b.example>\nSubject: Notice\n": True,
    "From:\tAnna\nSent:\tMonday\nTo:\tBert\nSubject:\tNotice\n": True,
    "From: Berlin\nTo: Hamburg\n": False,
    "Subject: Maths\nDate: 3 May\n": False,
    "Note: the pump\nPlace: cellar\n": False,
    "From: Monday\nSubject: none\n": False,
    "Content-Type: text/html\nDate: 3 May\n": False,
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("head", SAVED)
def test_a_mail_that_is_saved_as_a_text_is_known_by_its_fields(head: str, encoding: str, tmp_path: Path) -> None:
    (text,) = texts(tmp_path, f"{head}\nIt is loud.\n".encode(encoding), "a.txt")
    assert (text == "It is loud.") == SAVED[head] and text.endswith("It is loud.")


def test_a_page_that_a_browser_saved_as_a_mail_is_read(tmp_path: Path) -> None:
    saved = "From: <Saved by Blink>\nSubject: Pump\nMIME-Version: 1.0\n" + multipart("related", PAGE, PICTURE)
    assert texts(tmp_path, saved, "a.html") == ["The pump is loud."]


TOP = "In the shed.\n\n{}\n\n Where are the keys?\n"
ANNOUNCED = [
    "Em terça-feira, 12 de março de 2024, 09:14:03 WET, Teresa Lobo <t@a.example> escreveu:",
    "No dia 12/03/2024, às 09:14, Teresa Lobo <t@a.example> escreveu:",
    "    On Tuesday, March 12, 2024, 09:14:03 AM,\n Anna <anna@a.example> wrote:  ",
]
TEAMS = "\n".join(
    ["_" * 80, "Microsoft Teams-vergadering", "Klik hier<https://teams.microsoft.com/l/meetup-join/19>", "_" * 80]
)
FOOTERS = [
    "View in browser",
    "Visualizza questa e-mail nel browser\nОткрыть в браузере",
    "Ver en el navegador\nIm Browser ansehen",
    "Voir la version en ligne dans le navigateur\nBekijk deze mail in je browser",
    "—\nReply to this email directly or view it on GitHub.\nYou are receiving this because you were mentioned.",
    "Newsletter abmelden",
    "##- Por favor, escriba su respuesta encima de esta línea -##\nEste correo electrónico es un servicio de Muebles.",
    "Diese E-Mail ist ein Service von Möbel. Bereitgestellt durch Zendesk\nThis email is a service from Desks.",
    "To unsubscribe from this list, click here.\nTo subscribe or unsubscribe via the Web, visit",
    "Vous recevez cet e-mail parce que vous êtes inscrit.\nSe désabonner",
    TEAMS,
    f"{TEAMS}\nBis morgen.",
    "CAUTION: This email originated from outside of the organization. Do not click links.",
    "[EXTERNAL] This message comes from outside.",
    "Achtung: Diese Nachricht kommt von einem externen Absender.",
    "This e-mail and any attachments are confidential and\nintended solely for the addressee. If it is not for you,\n"
    "delete it.",
    "Ce message est confidentiel et destiné exclusivement à son destinataire.",
    "Diese E-Mail kann vertrauliche Informationen enthalten. Wenn Sie nicht der Empfänger sind, löschen Sie sie.",
    "本メールには機密情報が含まれており、受信者以外の使用を禁じます。",
    "本メールには機密情報が含まれる場合があります。誤って受信された場合は削除してください。",
    "De conformidad con el Reglamento (UE) 2016/679, sus datos son tratados por Fincas López.",
    "Ai sensi del D.Lgs. 196/2003 si informa che i dati sono riservati.",
    "De informatie in dit bericht is uitsluitend bestemd voor de geadresseerde.",
    "Wird diese E-Mail nicht richtig dargestellt? Hier im Browser öffnen",
    "Wenn diese E-Mail nicht richtig angezeigt wird, klicken Sie bitte hier.",
    "Si vous ne visualisez pas cet e-mail, consultez-le dans votre navigateur.",
    "Não consegue ver este e-mail? Veja no navegador",
    "Если письмо отображается некорректно, откройте его в браузере",
    "Bitte antworten Sie nicht auf diese automatisch erzeugte E-Mail.\nMerci de ne pas répondre à ce message.",
    "Por favor, no responda a este mensaje.\nSi prega di non rispondere a questa e-mail.",
    "Esta é uma mensagem automática, não responda.\nDit is een automatisch bericht.",
    "Это письмо сформировано автоматически.\n※本メールは自動送信されています。",
    "Bitte denken Sie an die Umwelt, bevor Sie diese E-Mail ausdrucken.",
    "Denk aan het milieu voordat u deze e-mail print.",
    "Pensez à l'environnement avant d'imprimer ce message.\nAntes de imprimir, pense no meio ambiente.",
    "Пожалуйста, подумайте об окружающей среде, прежде чем распечатывать это письмо.",
]


CONFIDENTIAL = ("The offer in this mail is confidential.", "The outside of the shed needs paint.")


def test_a_mail_below_its_announcement_and_footers_are_left_out(tmp_path: Path) -> None:
    for below in [*map(TOP.format, ANNOUNCED), *(f"In the shed.\n\n{footer}\n" for footer in FOOTERS)]:
        found = " ".join(texts(tmp_path, f"From: b\nTo: a\nSubject: Re: Keys\n\n{below}", "a.eml"))
        assert found.removesuffix(" —").removesuffix(" Bis morgen.") == "In the shed.", below
    for kept in (
        "On Monday Anna wrote:\n\nWhere?",
        "Abmelden bitte bis Freitag.",
        "Lees de gids voor de browser.",
        "In Firefox or any other browser",
        "You are receiving guests.",
        "Wenn Sie die Mail öffnen, sehen Sie den Link im Browser.",
        "Merci d'imprimer le rapport sur l'environnement avant lundi.",
        "Non rispondere a questa domanda.",
        "このメールに返信してください。",
        "To unsubscribe a member, open the list.",
        *CONFIDENTIAL,
    ):
        found = " ".join(texts(tmp_path, f"From: b\nTo: a\nSubject: Keys\n\nHello.\n\n{kept}\n", "a.eml"))
        assert found == f"Hello. {kept.rpartition(chr(10))[2]}"


SENT_FROM = [
    *("Sent from my iPhone", "Sent from my toaster", "Sent with Proton Mail secure email.", "Get Outlook for Android"),
    *("Gesendet von meinem Handy", "Von meinem iPhone gesendet", "Gesendet mit der GMX Mail App"),
    "Diese Nachricht wurde von meinem Android-Mobiltelefon mit GMX Mail gesendet.",
    *("Get Outlook for Android", "Obtenir Outlook pour iOS", "Obter o Outlook para iOS"),
    *("Envoyé de mon iPhone", "Envoyé depuis mon téléphone portable", "Enviado desde mi iPhone"),
    *("Enviado do meu iPhone", "Enviado a partir do meu telemóvel"),
    *("Inviato da iPhone", "Inviato dal mio telefono", "Verzonden vanaf mijn iPhone"),
    *("Verstuurd vanaf mijn mobiel", "Отправлено с iPhone", "Отправлено из мобильной Почты Mail", "iPhoneから送信"),
    "Envoyé de mon appareil Android avec Courriel K-9 Mail. Veuillez excuser ma brièveté.",
    "Verstuurd vanaf mijn Android apparaat met K-9 Mail. Excuseer mijn beknoptheid.",
    *(
        "Простите за краткость, создано в K-9 Mail.",
        "Отправлено из мобильной Яндекс.Почты",
        "Yahoo!メールアプリから送信",
    ),
    *("Android端末からK-9 Mailで送信しました。簡単なメールで失礼します。", "Outlook voor Android downloaden"),
]
WRITTEN = [
    *("Von meinem Arzt habe ich nichts gehört.", "von meinem Chef kam eine Absage", "Sent to the office on Monday"),
    *("Enviado de Lisboa ontem à noite", "Inviato da Marco ieri sera", "Sent from the office, we think, by Anna"),
]


def test_lines_that_mail_programs_add_are_left_out() -> None:
    assert [line for line in [*SENT_FROM, *WRITTEN] if is_sent_from(line)] == SENT_FROM
