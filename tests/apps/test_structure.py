"""What is not text in files of each kind: comments, data, furigana, settings, hyphens at the ends of lines."""

import io
import re
import zipfile
from pathlib import Path

import pytest
from structures import (
    AOZORA,
    AOZORA_SHOWN,
    BASE64,
    CHATS,
    MARKDOWN,
    ORG,
    ORG_NAMES,
    ORG_SHOWN,
    PAGES,
    RST,
    RST_SHOWN,
    WRAPPED,
    Shown,
)

from xsent_apps.notes.passages import sentences_of
from xsent_apps.notes.read import read_passages


def shown(folder: Path, name: str, content: str | bytes) -> Shown:
    """The passages of a file, each with its context without the name of the file."""
    file = folder / name
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    stem = name.partition(".")[0]
    return [
        (text, context.removeprefix(stem).removeprefix(", ").removeprefix(" › "))
        for _, text, context in read_passages(file)
    ]


@pytest.mark.parametrize("kind", MARKDOWN)
def test_markdown(kind: str, tmp_path: Path) -> None:
    note, expected = MARKDOWN[kind]
    assert shown(tmp_path, "a.md", note) == expected


def test_org_and_restructured_text(tmp_path: Path) -> None:
    expected = [(text, f"{ORG_NAMES} › {context}" if context else ORG_NAMES) for text, context in ORG_SHOWN]
    assert shown(tmp_path, "a.org", ORG) == expected
    assert shown(tmp_path, "a.rst", RST) == RST_SHOWN
    wide = "======  ====\n名前    年齢\n======  ====\n太郎    20\n======  ====\n"
    assert shown(tmp_path, "a.rst", wide) == [("名前: 太郎 · 年齢: 20", "")]


def test_texts_and_pages(tmp_path: Path) -> None:
    assert shown(tmp_path, "a.txt", AOZORA) == AOZORA_SHOWN
    for text, page in PAGES.items():
        assert [found for found, _ in shown(tmp_path, "a.html", page)] == [text]
    subtitle = "WEBVTT\n\n00:01.000 --> 00:04.000\n<ruby>漢字<rt>かんじ</rt></ruby>です\n"
    assert shown(tmp_path, "a.vtt", subtitle) == [("漢字です", "")]


def test_hyphens_at_the_ends_of_lines_and_within_words(tmp_path: Path) -> None:
    note = (
        "Do\u00adnau\u200bschiff\n=====\nDisse-\nlhe que sim. Wo\u00ad\nher? "
        "Кто-\nнибудь при\u00adшёл из-\nза до-\nждя. Est-\nce vrai?\u00ad\n"
    )
    text = "Disse-lhe que sim. Woher? Кто-нибудь пришёл из-за дождя. Est-ce vrai?"
    assert shown(tmp_path, "a.txt", note) == shown(tmp_path, "a.md", note) == [(text, "Donauschiff")]
    page = (
        "<h1>Do&shy;nau<wbr>schiff</h1><p>Disse-<br>lhe que sim. Wo&shy;her? "
        "Кто-<br>нибудь при&shy;шёл из-<br>за до-<br>ждя. Est-<br>ce vrai?</p>"
    )
    assert shown(tmp_path, "a.html", page) == [(text, "Donauschiff")]


def test_lines_of_japanese_that_are_cut_at_a_margin_are_one(tmp_path: Path) -> None:
    note = "鈴木様\n拝啓。\n\n倉庫の屋根の修理について業者から見積もりが届\nきました。足場代を含\nむ。\n"
    text = "鈴木様 拝啓。 倉庫の屋根の修理について業者から見積もりが届きました。 足場代を含 む。"
    for name, content in (("a.txt", note), ("a.md", note), ("a.html", f"<p>{note}".replace("\n\n", "<p>"))):
        assert [" ".join(found for found, _ in shown(tmp_path, name, content))] == [text]
    fields = "日時：三月十二日火曜日の午前十時から正午\n場所：市民会館\n"
    assert shown(tmp_path, "a.txt", fields) == [("日時：三月十二日火曜日の午前十時から正午 場所：市民会館", "")]


def test_a_drawn_line_separates_and_underlines_only_what_fits(tmp_path: Path) -> None:
    highlights = "Travels (Moe)\n\nThe fishermen dry cod for months.\n==========\nGardens (Ray)\n\nPrune in March.\n"
    assert shown(tmp_path, "a.txt", highlights) == [
        ("Travels (Moe) The fishermen dry cod for months.", ""),
        ("Gardens (Ray) Prune in March.", ""),
    ]
    assert shown(tmp_path, "a.txt", "A whole evening\n========\nIt rained.\n") == [("It rained.", "A whole evening")]


def test_drawn_lines_are_no_text(tmp_path: Path) -> None:
    letter = "━━━━━━━━\n■【1】お知らせ■━━━━\n━━━━━━━━\n休館です。\n\n◆◇◆◇\n\n"
    letter += "----- Signed -----\n______ / Anna /\n~~ ~~ ~~\n+----+---+\n"
    assert shown(tmp_path, "a.txt", letter) == [("■【1】お知らせ■ 休館です。 Signed / Anna /", "")]
    assert shown(tmp_path, "a.md", "| a | b |\n|-----|:-----|\n| ______ | 5 -- 6 |\n") == [("b: 5 -- 6", "")]


def test_separators_of_lines_end_lines(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("House\u2028\u2028Roof:\u2028• call Ann\u2029Well\n", encoding="utf-8")
    assert [passage[:2] for passage in read_passages(tmp_path / "a.txt")] == [(1, "House"), (1, "• call Ann Well")]


def test_letters_of_a_terminal_are_read_once(tmp_path: Path) -> None:
    page = "N\bNA\bAM\bME\bE\n\n_\bc_\bp  copies \x1b[31ma file\x1b[0m.\n"
    assert shown(tmp_path, "a.txt", page) == [("NAME cp  copies a file.", "")]


def test_buttons_and_links_to_share_are_left_out(tmp_path: Path) -> None:
    page = """<p>Compost needs air.</p><p><a class="btn btn-primary" href=/s>Subscribe now</a></p>
<div class="sharedaddy sd-sharing-enabled"><h3>Share this:</h3><ul><li><a class="sd-button">Print</a></ul></div>
<div role=banner>Home</div><ul class="flat-list buttons"><li><a href=/x>reply</a></ul>
<ul class="post share"><li><a href=/f>On Facebook</a></ul><h3 id=share></h3>
<div id="jp-relatedposts"><h3>Related</h3></div><p><a href="/c.html#top">Up</a></p>
<p><a href=/b class=buttonwood-trees>Buttonwood</a> is hard.</p>"""
    assert shown(tmp_path, "a.html", page) == [("Compost needs air. Buttonwood is hard.", "")]
    chat = """<div class="userpic_wrap"><div class=userpic>A</div></div><div class=from_name>Anna</div><div
class="reply_to details">In reply to <a>this message</a></div><div class=text>The pump is loud.</div><div
class="media clearfix media_photo"><div class=title>Sticker</div>Not included</div><ol><li>Mine too.
<a class="comment-reply-link">Reply</a></li></ol><div id=respond><p>Required fields are marked</p></div>"""
    assert shown(tmp_path, "a.html", chat) == [("Anna The pump is loud. - Mine too.", "")]
    saved = """<div id="cookie-law-info-bar">We use cookies.<a>Yes</a></div><div id="onetrust-consent-sdk">Yes</div>
<div class="toc-macro rbtoc1">Heat</div><a class="wprm-recipe wprm-recipe-jump">Jump to recipe</a><p>Heat it<sup
class="noprint Inline-Template">[<i>citation needed</i>]</sup>. See <a href=/p class=blueprints>how</a>.</p>
<aside class=note>Wait.</aside><aside id=secondary class="widget-area">Recent posts</aside>"""
    assert shown(tmp_path, "a.html", saved) == [("Heat it. See how. Wait.", "")]
    word = """<p class=MsoToc1><a href="#_T">1 Quiet</a></p><h1>1 Quiet</h1><p>Two hours per day, un-<br>
til ten<a href="#_ftn1"><span class=MsoFootnoteReference>[1]</span></a>.</p><p class=MsoFootnoteText><a
name="_ftn1"><span class=MsoFootnoteReference>[1]</span></a> No drums.</p>"""
    assert shown(tmp_path, "a.html", word) == [("Two hours per day, until ten. No drums.", "1 Quiet")]
    book = """<p>彼は<ruby>激怒<rp>（</rp><rt>げきど</rt><rp>）</rp></ruby>した。［＃「激怒」に傍点］
<a href="#a" epub:type="noteref">1</a></p>"""
    assert shown(tmp_path, "a.html", book) == [("彼は激怒した。", "")]
    docs = """<p>Ten<a id=ftnt_ref1>[1]</a> days<a id="cmnt_ref1">[a]</a>.</p><div class=ad-container>Ad</div>
<p><a id="ftnt1">[1]</a> Or so.</p><div role=complementary>Related</div><div class=ads-r-us>Adds.</div>"""
    assert shown(tmp_path, "a.html", docs) == [("Ten days. Or so. Adds.", "")]
    thread = """<dl class=postprofile><dd>Posts: 1207</dl><h3>Re: Noise</h3><p>It squeaks.</p><div id=sig2>Ride on</div>
<h3>Re: Noise</h3><p>Grease it.</p><div class=pagination>Page 1 of 1</div>"""
    assert shown(tmp_path, "a.html", thread) == [("It squeaks.", "Re: Noise"), ("Grease it.", "Re: Noise")]
    wiki = """<div id=siteNotice>Give!</div><h1>Mill</h1><div id=siteSub>From a wiki</div><ul class="mw-portlet
mw-portlet-lang"><li><a hreflang=de>Deutsch</a></ul><ul><li
class="lang-item lang-item-12"><a hreflang=fr>Français</a></ul><p>It is <code
class="language-python lang-py">off</code>.</p>"""
    assert shown(tmp_path, "a.html", wiki) == [("It is off.", "Mill")]
    assert shown(tmp_path, "a.html", "<h2>II<br/>The fog</h2><p>It came.</p>") == [("It came.", "II The fog")]


@pytest.mark.parametrize("kind", CHATS)
def test_every_message_of_a_chat_is_a_sentence(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    chat, messages = CHATS[kind]
    found = shown(tmp_path, "a.txt", chat)
    assert all(len(text) <= 200 for text, _ in found)
    if "prose" in kind:
        assert [text for text, _ in found] == [" ".join(chat.split())]
    else:
        assert sum(len(sentences_of(text)) for text, _ in found) == messages
        assert "\u200e" not in "".join(text for text, _ in found)


@pytest.mark.parametrize(
    ("notice", "added"),
    [
        (
            "12-03-2024 10:20 - Berichten zijn end-to-end versleuteld.",
            "12-03-2024 10:21 - Joris heeft de groep gemaakt|12-03-2024 10:25 - Femke: <Media weggelaten>|"
            "12-03-2024 10:31 - +31 6 1: Dit bericht is verwijderd|"
            "12-03-2024 10:40 - Femke: A.jpg (bestand bijgevoegd)",
        ),
        (
            "[12.03.24, 10:20:11] Haus: \u200eNachrichten sind Ende-zu-Ende-verschlüsselt.",
            "\u200e[12.03.24, 10:21:11] Jo: \u200eBild weggelassen|"
            "[12.03.24, 10:21:19] Jo: Diese Nachricht wurde gelöscht.",
        ),
        (
            "2024/03/12 10:20 - メッセージと通話はエンドツーエンドで暗号化されています。",
            "2024/03/12 10:21 - 花子: このメッセージは削除されました|"
            "2024/03/12 10:21 - 花子: <メディアは含まれていません>",
        ),
    ],
)
def test_what_programs_add_to_a_chat_is_left_out(notice: str, added: str, tmp_path: Path) -> None:
    written = "12.03.2024, 10:50 - Jo: The pump is loud: call Ann (today).\n12.03.2024, 10:51 - Jo: a.jpg is old.\n"
    chat = "\n".join([notice, *added.split("|"), written])
    assert " ".join(text for text, _ in shown(tmp_path, "a.txt", chat)).split() == written.split()
    log = "12.03.2024, 10:50 - Pump started\n"  # of no chat
    line = "[LINE] 花子とのトーク履歴\n保存日時：2024/03/12 10:20\n\n2024/03/11(月)\n18:05\t花子\t[スタンプ]\n"
    line += "18:06\t花子\t鍵は[箱]の中\n18:07\t太郎\t☎ 通話時間 1:23\n18:08\t花子がメッセージの送信を取り消しました\n"
    assert " ".join(text for text, _ in shown(tmp_path, "a.txt", line)).split() == [
        "2024/03/11(月)",
        "18:06",
        "花子",
        "鍵は[箱]の中",
    ]
    assert shown(tmp_path, "a.txt", log) == [(log.strip(), "")]


def test_messages_are_whole_and_long_ones_are_cut(tmp_path: Path) -> None:
    pytest.importorskip("sentencex")
    long = "This is a sentence. " * 30
    chat = f"[12.03.24, 18:05] Anna: Hi. Look:\n[12.03.24, 18:06] Ben: Yes.\nGood.\n[12.03.24, 18:07] Anna: {long}\n"
    (first, _), *rest = shown(tmp_path, "a.md", chat)
    assert first == "[12.03.24, 18:05] Anna: Hi. Look:\n[12.03.24, 18:06] Ben: Yes. Good."
    assert sentences_of(first) == first.split("\n") and len(rest) == 2
    assert sentences_of(rest[0][0])[0] == "[12.03.24, 18:07] Anna: This is a sentence."


@pytest.mark.parametrize("head", ["1\n", "WEBVTT\n\n", "\ufeff1\n", "WEBVTT\nKind: captions\nLanguage: de\n\n"])
def test_subtitles_that_are_saved_as_text(head: str, tmp_path: Path) -> None:
    cues = "00:00:01,000 --> 00:00:04,000\n<i>Guten Tag</i>\n\n2\n00:00:05,000 --> 00:00:06,000\nund Willkommen\n"
    assert shown(tmp_path, "a.txt", head + cues) == [("Guten Tag und Willkommen", "")]


CLIPPINGS = """\ufeffThe Hill (Nan Ash)
- Your Highlight on page 14 | Location 203-205 | Added on Sunday, 5 May 2024 21:14:33

To know grows.
==========
\ufeffDer Weg (Ott, Eva)
- Ihr Lesezeichen auf Seite 90 | Position 1370 | Hinzugefügt am Dienstag, 7. Mai 2024 08:01:00


==========
\ufeffDer Weg (Ott, Eva)
- Ihre Notiz auf Seite 88 | Position 1342 | Hinzugefügt am Dienstag, 7. Mai 2024 07:55:10

Die Brücke
# und die Fähre
==========
\ufeffDer Weg (Ott, Eva)
- Ihre Markierung auf Seite 99 | Position 1400 | Hinzugefügt am Dienstag, 7. Mai 2024 09:00:00

Der Fluss steigt.
==========
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_clipping_of_a_kindle_is_below_its_book(end: str, tmp_path: Path) -> None:
    assert shown(tmp_path, "a.txt", CLIPPINGS.replace("\n", end)) == [
        ("To know grows.", "The Hill (Nan Ash)"),
        ("Die Brücke # und die Fähre", "Der Weg (Ott, Eva)"),
        ("Der Fluss steigt.", "Der Weg (Ott, Eva)"),
    ]
    other = "Shopping\n- milk | oat\n\nVery\nsoon.\n----------\nEnd.\n"
    assert shown(tmp_path, "a.txt", other) == [("Shopping - milk | oat Very soon.", ""), ("End.", "")]


def test_data_is_no_passage_and_long_words_are(tmp_path: Path) -> None:
    token = BASE64[:90]
    address = f"https://a.example/{BASE64}"
    for note, text in (
        (f"One.\n{BASE64}\nTwo.", "One. Two."),
        (f"One.\n\n-----BEGIN-----\n{WRAPPED}-----END-----\n", "One. BEGIN END"),
        (f"One.\ndata:image/png;base64,{WRAPPED}Two.", "One. Two."),
        (
            f'One.\n<img\n src="data:image/png;base64,{BASE64}"\n alt="A red\n bicycle">\nTwo.',
            "One. A red bicycle Two.",
        ),
        (f"One {token} two.", f"One {token} two."),
        (f"One {address} two.", f"One {address} two."),
        ("a" * 400, "a" * 400),
        ("The metadata:image/png, is text.", "The metadata:image/png, is text."),
    ):
        assert [found for found, _ in shown(tmp_path, "a.txt", note)] == [text]


def test_lines_keep_their_numbers(tmp_path: Path) -> None:
    word = "word " * 60
    note = f"+++\ntitle = 'a'\n+++\n<!-- a\nb -->\n{word}termi-\nnation {word}.\n{word}.\n\n"
    (tmp_path / "a.md").write_text(f"{note}data:image/png;base64,{WRAPPED}\nEnd.\n")
    found = read_passages(tmp_path / "a.md")
    assert [passage.line for passage in found] == [6, 7, 8, 16]
    (tmp_path / "b.md").write_text("<ruby>\n漢字<rt>\nかんじ\n</rt>\n</ruby>\n\n# End\n\nText.\n")
    assert read_passages(tmp_path / "b.md")[-1].line == 9
    assert found[0].text.endswith("termination") and found[1].text.startswith("word")


def test_numbers_and_abbreviations_end_no_sentence() -> None:
    for text in (
        "Die Wohnung liegt im 3. Stock links.",
        "Am 3. Mai kam Dr. Weiß, z. B. mit Prof. Ott und Dipl.-Ing. Weber.",
        "1. Buy milk and bread.",
    ):
        assert sentences_of(f"{text} Danach war Ruhe.")[0] == text
    assert sentences_of("He is 5. They left.") == ["He is 5.", "They left."]


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DOCX = f"""<w:document xmlns:w="{WORD}"><w:body><w:p><w:r><w:ruby><w:rt><w:r><w:t>かんじ</w:t></w:r></w:rt>
<w:rubyBase><w:r><w:t>漢字</w:t></w:r></w:rubyBase></w:ruby></w:r><w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="Verzeichnis1"/></w:pPr><w:r><w:t>secret 9</w:t></w:r></w:p></w:body></w:document>"""
STYLES = (
    f"""<w:styles xmlns:w="{WORD}"><w:style w:styleId="Verzeichnis1"><w:name w:val="toc 1"/></w:style></w:styles>"""
)
SPACES = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text"))
ODT = f"""<office:document-content {SPACES}><office:body><office:text><text:table-of-content><text:p>secret</text:p>
</text:table-of-content><text:p><text:ruby><text:ruby-base>漢字</text:ruby-base><text:ruby-text>かんじ</text:ruby-text></text:ruby>
<text:hidden-text>secret</text:hidden-text><office:binary-data>{BASE64}</office:binary-data></text:p></office:text></office:body>
</office:document-content>"""


@pytest.mark.parametrize(
    ("name", "part", "content"), [("a.docx", "word/document.xml", DOCX), ("a.odt", "content.xml", ODT)]
)
def test_texts_of_word_processors(name: str, part: str, content: str, tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr(part, content)
        archive.writestr("word/styles.xml", STYLES)
    assert shown(tmp_path, name, file.getvalue()) == [("漢字", "")]


def test_hyphens_and_notes_of_word_are_read(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    text = (
        "<w:t>Die U</w:t><w:noBreakHyphen/><w:t>Bahn im Ver</w:t><w:softHyphen/><w:t>ein</w:t>"
        "<w:footnoteReference w:id='2'/><w:endnoteReference w:id='1'/><w:footnoteReference w:id='9'/><w:t> fährt.</w:t>"
        "<w:moveFrom><w:r><w:t>moved</w:t></w:r></w:moveFrom>"
        "<w:r><w:rPr><w:vanish w:val='0'/></w:rPr><w:t> Oft.</w:t></w:r>"
        "<w:txbxContent><w:p><w:r><w:t>Frei.</w:t></w:r></w:p></w:txbxContent>"
    )
    note = "<w:{0}s xmlns:w='{1}'><w:{0} w:id='{2}'><w:p><w:r><w:t>{3}</w:t></w:r></w:p></w:{0}></w:{0}s>"
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr(
            "word/document.xml",
            f"<w:document xmlns:w='{WORD}'><w:body><w:p><w:r>{text}</w:r></w:p></w:body></w:document>",
        )
        archive.writestr("word/footnotes.xml", note.format("footnote", WORD, 2, "Seit 1902."))
        archive.writestr("word/endnotes.xml", note.format("endnote", WORD, 1, "Bis heute."))
    assert shown(tmp_path, "a.docx", file.getvalue()) == [
        ("Die U-Bahn im Verein fährt. Oft. Seit 1902. Bis heute. Frei.", "")
    ]


def test_notes_of_writer_are_below_their_sentence_or_heading(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    body = "<text:note-citation>1</text:note-citation><text:note-body><text:p>{}</text:p></text:note-body>"
    note = f"<text:note>{body}</text:note>"
    heading = f"<text:h text:outline-level='1'>Notice{note.format('See the law.')}</text:h>"
    sentence = f"<text:p>It takes three months{note.format('Or one.')} to leave.</text:p>"
    with zipfile.ZipFile(file := io.BytesIO(), "w") as archive:
        archive.writestr(
            "content.xml", re.sub("<text:table-of.*(?=</office:text>)", heading + sentence, ODT, flags=re.DOTALL)
        )
    assert shown(tmp_path, "a.odt", file.getvalue()) == [
        ("See the law. It takes three months to leave. Or one.", "Notice")
    ]
