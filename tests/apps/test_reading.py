"""Files as passages."""

import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import raises
from reading import read, texts, written
from texts import pdf

from xsent import DataError
from xsent_apps.notes.passages import CONTEXT_LENGTH, sentences_of
from xsent_apps.notes.read import READERS, read_passages
from xsent_apps.notes.source import Source


def test_a_passage_knows_what_stands_above_it(tmp_path: Path) -> None:
    note = """\ufeff# Trip\r\nWe leave on\r\nFriday.\r\n\r\n## Wi-Fi ##\n\nblue-otter\n\nBring:\n\n- milk\n  and bread
- eggs\n\n### Empty\n## Back\nOn Sunday.\n\nHotel\n=====\nRoom 9\n## Notes\n- .\n## Todo\n- :\n"""
    assert read(tmp_path, note) == [
        (2, "We leave on Friday.", "Trip"),
        (7, "blue-otter", "Trip › Wi-Fi"),
        (11, "- milk and bread - eggs", "Trip › Wi-Fi › Bring"),
        (17, "On Sunday.", "Trip › Back"),
        (21, "Room 9", "Hotel"),
    ]
    assert texts(tmp_path, "# Call Anna\n## on Monday\n") == ["Call Anna on Monday"]  # there is nothing else
    assert texts(tmp_path, "We need:\n") == ["We need:"]
    assert read(tmp_path, "* Trip\n** Train\nAt nine.\n", "a.org") == [(3, "At nine.", "Trip › Train")]
    assert texts(tmp_path, " \n\n", "empty.txt") == []
    assert texts(tmp_path, "a\x1b[1m\r\rb\r", "mac.txt") == ["a b"]


def test_a_table_of_contents_is_no_text(tmp_path: Path) -> None:
    note = "# Trip\n\n- [Train](#train)\n  1. [At nine](#at-nine)\n\n## Train\n\n- [timetable](a.html)\n"
    assert read(tmp_path, note) == [(8, "- timetable", "Trip › Train")]


def test_a_command_stays_with_its_description(tmp_path: Path) -> None:
    note = "- List an archive:\n\n`tar tf {{a}}`\n\n"
    note += "Unpack it here.\n\n```sh\n# as root\n\ntar xf a\n```\n\nUnpack it there.\n"
    assert read(tmp_path, note) == [
        (3, "`tar tf {{a}}`", "List an archive"),
        (5, "Unpack it here. # as root tar xf a Unpack it there.", ""),
    ]


def test_japanese_neighbours_are_joined_up_to_half_as_many_characters(tmp_path: Path) -> None:
    items = [f"{number:02}番の鍵は玄関の右の棚の箱に入れてあります。" for number in range(9)]
    found = texts(tmp_path, "\n\n".join(items))
    assert [text.count("鍵") for text in found] == [4, 4, 1]


def test_short_neighbours_are_joined(tmp_path: Path) -> None:
    items = [f"- item {number} of the list" for number in range(40)]
    found = texts(tmp_path, "\n".join(items))
    assert " ".join(found) == " ".join(items) and all(150 < len(text) <= 200 for text in found[:-1])
    nested = "".join(f"- A plan with quite a long text, which is number {i}\n  - its step\n" for i in range(5))
    assert all(text.startswith("- A plan") for text in texts(tmp_path, nested))


def test_names_of_a_note_help_to_find_it_and_are_no_text(tmp_path: Path) -> None:
    note = """---\ntitle: "Bees: a start"\naliases: [hive, 'Biene']\ntags:\n  - garden\n  - "#work"\ncreated: 2024-01-01
---\nThe router.\n\n---\n\nIts cable.\n"""
    assert read(tmp_path, note) == [(9, "The router. Its cable.", "Bees: a start, hive, Biene, garden, work")]
    assert read_passages(written(tmp_path, "Visa 2024.txt", "Slip 7.")) == [(1, "Slip 7.", "Visa 2024")]
    notion = written(tmp_path, f"Visa {'0a' * 16}.md", "Slip 7.")
    assert read_passages(notion) == [(1, "Slip 7.", "Visa")]
    assert texts(tmp_path, "---\ntags: a\n") != []  # a line, and no front matter without an end
    assert read(tmp_path, "---\ntags: [a]\n---\n") == []
    assert read(tmp_path, "---\nA line.\n---\nAnother.\n") == [(4, "Another.", "A line.")]  # as in Markdown
    assert read(tmp_path, "# C#\nIt is a language.\n\n## D ##\nToo.\n") == [
        (2, "It is a language.", "C#"),
        (5, "Too.", "C# › D"),
    ]


def test_a_row_of_a_table_is_a_passage(tmp_path: Path) -> None:
    table = "|Day|Course|\n|:--|---|\n|Monday|Yoga \\| Tai-Chi|\n| Friday | |\n\n| a | b |\n"
    assert read(tmp_path, table) == [
        (3, "Day: Monday · Course: Yoga | Tai-Chi", ""),
        (4, "Day: Friday", ""),
        (6, "a · b", ""),
    ]


def test_long_paragraphs_are_cut_between_sentences_and_nothing_is_lost(tmp_path: Path) -> None:
    sentences = [f"This is sentence number {number}, and it is not long." for number in range(50)]
    lines = [" ".join(sentences[first : first + 5]) for first in range(0, 50, 5)]
    passages = read_passages(written(tmp_path, "a.txt", "\n".join(lines)))
    assert all(len(text) <= 500 for _, text, _ in passages) and len(passages) == 5
    assert " ".join(text for _, text, _ in passages) == " ".join(sentences)
    for line, text, _ in passages:
        assert text.split(". ")[0] in lines[line - 1]
    assert texts(tmp_path, "x" * 3000, "b.txt") == ["x" * 3000]
    assert [len(text) for text in texts(tmp_path, "x" * 12_000, "c.txt")] == [4000, 4000, 4000]
    assert texts(tmp_path, "été".encode("utf-16"), "d.txt") == ["été"]
    assert sentences_of("Ja! Nein? 元気です。はい。") == ["Ja!", "Nein?", "元気です。", "はい。"]


def test_abbreviations_and_dates_end_no_sentence(tmp_path: Path) -> None:
    sentences = [
        "Am 3. Mai kam Dr. Weiß, z. B. mit dem Zug.",
        "On 3 May Dr. Smith came, e.g. by train.",
        "Le 3 mai M. Dupont est venu.",
        "Вчера г. Иванов приехал на поезде.",
        "El Sr. López vive en la calle Mayor.",
    ]
    text = " ".join(sentences)
    assert sentences_of(text) == sentences
    for passage in texts(tmp_path, " ".join([text] * 12), "a.txt"):
        assert len(passage) <= 500 and passage.startswith(tuple(sentences)) and passage.endswith(tuple(sentences))


def test_what_a_page_shows_is_read(tmp_path: Path) -> None:
    page = """<!doctype html><html><head><title>My page</title>
<style>p { color: red }</style><script>var hidden = "<p>no</p>";</script></head>
<body><nav><ul><li>Home</ul></nav><div class="toc"><p>Cats</div><div id=cookies><p>We use <b>cookies</div>
<h1>Cats &amp; dogs</h1><p>They <b>sleep</b>
all day.</p>
<ul><li>first<li>second</ul>the end
<table><tr><th>Day<th>Course<tr><td>Monday<td><p>Yoga</p></table>
<dl><dt>Fee<dd>Nine euros<dt>Dogs?<dd>Yes.</dl><footer>Privacy</footer>"""
    assert read(tmp_path, page, "a.html") == [
        (4, "They sleep all day. - first - second the end", "My page › Cats & dogs"),
        (7, "Day: Monday · Course: Yoga", "My page › Cats & dogs"),
        (8, "- Fee: Nine euros - Dogs? Yes.", "My page › Cats & dogs"),
    ]
    table = "<table><tr><th>Name<th>Phone<th>Task<tr><td>Ben<td><td>Cash</table>"
    assert read(tmp_path, table, "a.html") == [(1, "Name: Ben · Task: Cash", "")]
    spanned = """<table><tr><th>Use<th>Time<th>Fee<tr><th rowspan=2>Skip<td>7 days<td>35
<tr><td>30 days<td>98<tr><td colspan=2 rowspan=9>Crane<td>412
<tr><td>98</table><p>So.<table><tr><td>End</table>"""
    assert read(tmp_path, spanned, "a.html") == [
        (1, "Use: Skip · Time: 7 days · Fee: 35", ""),
        (2, "Use: Skip · Time: 30 days · Fee: 98", ""),
        (2, "Use: Crane · Fee: 412", ""),
        (3, "Use: Crane · Fee: 98", ""),
        (3, "So.", ""),
        (3, "End", ""),
    ]
    bold = "<table><tr><td><p><b>Duty</b></p><td> <strong>Week</strong><tr><td>Stairs<td>odd"
    bold += "<tr><td><b>Snow</b><td><b>even</b></table>"
    bold += "<table><tr><td><b>News</b><tr><td>It snows.</table><table><tr><td><b>End</b><td><b>5</b></table>"
    assert texts(tmp_path, bold, "a.html") == [
        "Duty: Stairs · Week: odd",
        "Duty: Snow · Week: even",
        "News",
        "It snows.",
        "End · 5",
    ]
    inner = "<table><tr><td>Hello<tr><td><table><tr><th>Item<th>Fee<tr><td>Drill<td>129</table><tr><td>Bye.</table>"
    assert texts(tmp_path, inner, "a.html") == ["Hello", "Item: Drill · Fee: 129", "Bye."]
    layout = "<table><tr><td><h1>News</h1><p>It rains.</p></td><td><table><tr><td>a<td>b</table></table>"
    assert read(tmp_path, layout, "a.html") == [(1, "It rains.", "News"), (1, "a · b", "News")]
    unclosed = "<p>one</p>two" + "<a b" * 100_000  # in time that does not grow with the square
    assert texts(tmp_path, unclosed, "c.html") == ["one two"]
    assert texts(tmp_path, "<b>" * 100_000 + "deep" + "</i>" * 100_000, "d.html") == ["deep"]
    assert texts(tmp_path, "<p>broken <b <p> &#xZZ; </</p>", "b.HTM")


def test_a_pdf_has_pages(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    shown = enumerate(("The cat sub-\nlets.", "", "It is Anglo-\nSaxon."), 1)
    pages = [f"Statutes\n\n{text}\nPage {n} of 3" for n, text in shown]
    file = pdf("The cat sleeps.", "", "The dog barks.")
    assert read(tmp_path, file, "a.pdf") == [(1, "The cat sleeps.", ""), (3, "The dog barks.", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypdfium2.PdfTextPage.get_text_range", lambda self: pages.pop(0))
        assert read(tmp_path, file, "a.pdf") == [(1, "The cat sublets.", ""), (3, "It is Anglo-Saxon.", "")]
        patch.undo()
        patch.setattr("xsent_apps.notes.read.MOST_BYTES", 15)  # one page may be repeated
        longer = r"a\.pdf: its pages have over 15 characters; save the text in parts"
        raises(DataError, longer, texts, tmp_path, file, "a.pdf")


def test_lines_at_the_edges_of_printed_pages_are_left_out(tmp_path: Path) -> None:
    page = "Lease of Elm Street\n\n{}\n\n            Page {} of 3\n"
    text = "\f".join(page.format(*each) for each in (("Elm Street is long.", 1), ("The rent is due.", 2), ("Bye.", 3)))
    assert texts(tmp_path, text, "a.txt") == ["Elm Street is long.", "The rent is due.", "Bye."]
    assert texts(tmp_path, "Page 1 of 3\nPage 2 of 3\n", "a.txt") == ["Page 1 of 3 Page 2 of 3"]


def test_marks_of_a_pdf_are_headings_and_its_lines_are_no_markdown(tmp_path: Path) -> None:
    pytest.importorskip("pypdfium2")
    page = "Contents\r\n1. Trip . . . . . 1\r\n1. Our  Trip\r\n# apt install\r\n---\r\n"
    page += "\uf0b7 We haupt\ufffes\u00e4chlich walk."
    place = SimpleNamespace(get_index=lambda: 0)
    mark = SimpleNamespace(get_dest=lambda: place, get_title=lambda: "Our trip?", level=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pypdfium2.PdfTextPage.get_text_range", lambda self: page)
        patch.setattr("pypdfium2.PdfDocument.get_toc", lambda self: [mark])
        found = read(tmp_path, pdf("x"), "a.pdf")
    assert found == [(1, "Contents", ""), (1, "# apt install • We haupts\u00e4chlich walk.", "1. Our  Trip")]


def test_packed_texts_are_read(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(b"# Trip\n\nAt nine."), "a.md.gz") == [(3, "At nine.", "Trip")]


def test_subtitles_have_no_times(tmp_path: Path) -> None:
    srt = "\ufeff1\r\n00:00:01,500 --> 00:00:04,000\r\n<i>We open\r\nthe hive.</i>\r\n\r\n2\r\n"
    srt += "00:00:05,000 --> 00:00:06,000\r\n{\\an8}1984\r\n"
    assert read(tmp_path, srt, "a.srt") == [(3, "We open the hive. 1984", "")]
    vtt = "WEBVTT\nKind: captions\n\nNOTE by hand\n\nintro\n"
    vtt += "00:01.000 --> 00:04.000 align:start\n<v Anna>Hello <00:02.000>you\n"
    assert texts(tmp_path, vtt, "a.vtt") == ["Anna: Hello you"]
    rolling = "00:01.000 --> 00:02.000\nWe <c>open</c>\n\n00:02.000 --> 00:02.010\nWe open\n\n"
    rolling += "00:02.010 --> 00:04.000\nWe open\nthe hive &amp; wait.\n\n"
    rolling += "00:04.000 --> 00:05.000\nQuiet!\n\n00:05.000 --> 00:06.000\nWe open\n"
    assert texts(tmp_path, f"WEBVTT\n\n{rolling}", "a.vtt") == ["We open the hive & wait. Quiet! We open"]
    heard = "[tense\nmusic] Who is (perhaps)\n\n00:02.000 --> 00:03.000\n(door opens)\n- [Ann:] there? ♪ a[i] ♪\n\n"
    heard += "00:03.000 --> 00:04.000\n(It is me.)\n（拍手）\n\n00:04.000 --> 00:05.000\n- [ __ ]\n"
    assert texts(tmp_path, f"WEBVTT\n\n00:01.000 --> 00:02.000\n{heard}", "a.vtt") == [
        "Who is (perhaps) - there? a[i] (It is me.)"
    ]
    assert texts(tmp_path, "1\n00:00:01,000 --> 00:00:02,000\nHello&#10;there.\n", "a.srt") == ["Hello there."]
    endless = f"1\n00:00:01,000 --> 00:00:02,000\nWe wait &#{'9' * 5000}; for you.\n"
    assert texts(tmp_path, endless, "a.srt") == ["We wait \ufffd for you."]
    named = "00:01.000 --> 00:02.000\nAnna: We met\n\n00:02.000 --> 00:03.000\nAnna: by the harbour, at six,\n\n"
    named += "00:03.000 --> 00:04.000\nAnna: and left.\n\n00:04.000 --> 00:05.000\nBen: Left?\n"
    assert texts(tmp_path, f"WEBVTT\n\n{named}", "a.vtt") == [
        "Anna: We met by the harbour, at six, and left. Ben: Left?"
    ]
    voices = "a/1-0\n00:01.000 --> 00:02.000\n<v Ott, Eva (IT)>The hall was</v>\n\na/1-1\n00:02.000 --> 00:03.000\n"
    voices += "<v Ott, Eva (IT)>sold.</v>\n\na/2-0\n00:03.000 --> 00:04.000\n<v.loud Ben O'Neill>When?</v>\n"
    assert texts(tmp_path, f"WEBVTT\n\n{voices}", "a.vtt") == ["Ott, Eva (IT): The hall was sold. Ben O'Neill: When?"]
    cut = f"1\n00:00:01,000 --> 00:00:02,000\n{'I see. ' * 27}\n\n2\n00:00:02,000 --> 00:00:03,000\nThe key is\n\n"
    cut += "3\n00:00:03,000 --> 00:00:04,000\nin the shed.\n"
    assert texts(tmp_path, cut, "a.srt")[1:] == ["The key is in the shed."]
    both = "1\n00:00:01,000 --> 00:00:02,000\n手紙は下に\n隠してあった。\nThe letter\nwas below.\n\n"
    both += "2\n00:00:03,000 --> 00:00:04,000\nだれが？"
    assert texts(tmp_path, both, "a.srt") == ["手紙は下に隠してあった。 The letter was below. だれが？"]


WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
STYLES = f'<w:styles xmlns:w="{WORD}"><w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style></w:styles>'
DOCX = f"""<w:document xmlns:w="{WORD}"><w:body>
<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Trip</w:t></w:r></w:p>
<w:p><w:r><w:t>We lea</w:t></w:r><w:r><w:t>ve</w:t><w:br/><w:t>soon.</w:t><w:delText>never</w:delText></w:r></w:p>
<w:sdt><w:sdtContent><w:p><w:pPr><w:numPr/></w:pPr><w:r><w:t>milk</w:t></w:r></w:p></w:sdtContent></w:sdt>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>Day</w:t></w:r></w:p></w:tc></w:tr>
<w:tr><w:tc><w:p><w:r><w:t>Monday</w:t></w:r></w:p></w:tc></w:tr></w:tbl></w:body></w:document>"""
NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "text", "table")
)
ODT = f"""<office:document-content {NAMES}><office:body><office:text>
<text:h text:outline-level="1">Trip</text:h><text:p>We <text:span>leave</text:span><text:s/>soon.
<office:annotation>x</office:annotation></text:p>
<text:list><text:list-item><text:p>milk</text:p></text:list-item></text:list>
<table:table><table:table-row><table:table-cell><text:p>Day</text:p></table:table-cell></table:table-row>
<table:table-row><table:table-cell><text:p>Monday</text:p></table:table-cell></table:table-row></table:table>
</office:text></office:body></office:document-content>"""
ODT_END = ODT.rpartition("</table:table>")[2]


def office(**parts: str) -> bytes:
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        for part, content in parts.items():
            archive.writestr(part.replace("__", "/") + ".xml", content)
    return file.getvalue()


def test_texts_of_word_processors_are_read(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    for name, content in (
        ("a.docx", office(word__document=DOCX, word__styles=STYLES)),
        ("a.odt", office(content=ODT)),
    ):
        found = [(text, context) for _, text, context in read(tmp_path, content, name)]
        assert found == [("We leave soon. - milk", "Trip"), ("Day: Monday", "Trip")]
    heading = DOCX[DOCX.index("<w:body>") : DOCX.index("<w:p><w:r>")]
    title = heading.replace("berschrift1", "T") + heading.removeprefix("<w:body>")
    styles = STYLES.replace("</w:styles>", '<w:style w:styleId="T"><w:name w:val="Title"/></w:style></w:styles>')
    titled = office(word__document=DOCX.replace(heading, title.replace("Trip", "Plans", 1)), word__styles=styles)
    assert read(tmp_path, titled, "a.docx")[0][1:] == ("We leave soon. - milk", "Plans › Trip")
    assert len(texts(tmp_path, office(word__document=DOCX), "b.docx")) == 2
    other = STYLES.replace("heading 1", "Quote")
    assert len(texts(tmp_path, office(word__document=DOCX, word__styles=other), "b.docx")) == 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("xsent_apps.notes.read._MOST_TAGS", 9)  # a tag takes more memory than its bytes
        many = r"a\.odt: its content\.xml has over 9 tags; save the text in parts"
        raises(DataError, many, texts, tmp_path, office(content=ODT), "a.odt")
    unseen = ODT.replace("<text:list>", "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:list>")
    assert texts(tmp_path, office(content=unseen), "a.odt") == ["We leave soon. - milk", "Day: Monday"]
    deep = ODT.replace("<office:text>", "<a>" * 100_000).replace("</office:text>", "</a>" * 100_000)
    assert texts(tmp_path, office(content=deep), "a.odt") == ["We leave soon. - milk", "Day: Monday"]


def test_cells_that_span_rows_and_columns_keep_the_others_in_theirs(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")

    def word(text: str, more: str = "") -> str:
        return f"<w:tc><w:tcPr>{more}</w:tcPr><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:tc>"

    def writer(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    covered = "<table:covered-table-cell/>"
    tables = {
        "a.docx": (
            [*map(word, ("Use", "Time", "Fee"))],
            [word("Skip", '<w:vMerge w:val="restart"/>'), word("7 days"), word("35")],
            [word("", "<w:vMerge/>"), word("30 days"), word("98")],
            [word("Crane", '<w:gridSpan w:val="2"/>'), word("412")],
        ),
        "a.odt": (
            [*map(writer, ("Use", "Time", "Fee"))],
            [writer("Skip", 'table:number-rows-spanned="2"'), writer("7 days"), writer("35")],
            [covered, writer("30 days"), writer("98")],
            [writer("Crane", 'table:number-columns-spanned="2"'), covered, writer("412")],
        ),
    }
    for name, rows in tables.items():
        if name == "a.docx":
            table = "".join(f"<w:tr>{''.join(row)}</w:tr>" for row in rows)
            document = f'<w:document xmlns:w="{WORD}"><w:body><w:tbl>{table}</w:tbl></w:body></w:document>'
            content = office(word__document=document)
        else:
            table = "".join(f"<table:table-row>{''.join(row)}</table:table-row>" for row in rows)
            content = office(content=f"{ODT.partition('<text:h')[0]}<table:table>{table}</table:table>{ODT_END}")
        assert texts(tmp_path, content, name) == [
            "Use: Skip · Time: 7 days · Fee: 35",
            "Use: Skip · Time: 30 days · Fee: 98",
            "Use: Crane · Fee: 412",
        ]


def test_a_table_in_a_table_is_read_once(tmp_path: Path) -> None:
    pytest.importorskip("defusedxml")
    cell = lambda content: f"<w:tr><w:tc>{content}</w:tc></w:tr>"  # noqa: E731
    paragraph = lambda text: f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"  # noqa: E731
    inner = f"<w:tbl>{cell(paragraph('Day'))}{cell(paragraph('Monday'))}</w:tbl>"
    outer = f"<w:tbl>{cell(paragraph('Our plan') + inner + paragraph('is new.'))}</w:tbl>"
    document = f'<w:document xmlns:w="{WORD}"><w:body>{outer}{paragraph("It rains.")}</w:body></w:document>'
    assert texts(tmp_path, office(word__document=document), "a.docx") == [
        "Our plan is new.",
        "Day: Monday",
        "It rains.",
    ]


@pytest.mark.parametrize("suffix", sorted({*READERS} - {".docx", ".odt", ".pdf", ".eml"}))
def test_every_kind_is_empty_or_refused_in_one_line(tmp_path: Path, suffix: str) -> None:
    assert read_passages(written(tmp_path, f"a{suffix}", "")) == []


LARGE = 40_000_000  # bytes that little unpacks to
BAD: dict[str, tuple[bytes | Callable[[], bytes], str]] = {
    "binary.txt": (b"MZ\0\x01", "contains binary data, not text"),
    "cut.md": ("Käse und Brötchen für alle".encode() + b"\xc3", r"not UTF-8 \(byte 0xc3 at 30\)"),
    "image.html": (b"\x89PNG\r\n\x1a\n", r"not UTF-8 \(byte 0x89 at 1\)"),
    "odd.html": (b"<p>a</p><![foo[ bar", r"not a readable \.html file \(.+\)"),
    "broken.pdf": (pdf("x")[:200], r"not a readable \.pdf file \(.+\)"),
    "text.docx": (b"I am no archive", r"not a readable \.docx file \(.+\)"),
    "plain.txt.gz": (b"plain", ""),
    "cut.txt.gz": (gzip.compress(b"text")[:-9], ""),
    "large.txt.gz": (lambda: gzip.compress(b"x" * LARGE), "its text has over 30,000,000 bytes"),
    "large.docx": (lambda: office(word__document=" " * LARGE), "its word/document.xml has over 30,000,000 bytes"),
    "entity.odt": (office(content=f'<!DOCTYPE a [<!ENTITY b "bb">]>{ODT}'), r"not a readable \.odt file \(DTD"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_is_one_line_with_its_name(name: str, tmp_path: Path) -> None:
    for needed in ("pypdfium2", "defusedxml"):
        pytest.importorskip(needed)
    content, message = BAD[name]
    with pytest.raises(DataError, match=f"{name}: {message}") as caught:
        read_passages(written(tmp_path, name, content() if callable(content) else content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize(
    "error", [MemoryError(), RecursionError("too\ndeep"), AssertionError(), KeyError("a"), OSError()]
)
def test_any_failure_is_one_line_with_the_name(
    error: Exception, late: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Iterator[tuple[int, str]]:
        yield 1, "A line."
        raise error

    def read(content: bytes) -> Source:
        return Source(fail() if late else [*fail()], [])  # late: once the lines are made into passages

    monkeypatch.setitem(READERS, ".org", read)
    with pytest.raises(
        DataError, match=r"a\.org: (not a readable \.org file|cannot be read|not enough memory)"
    ) as caught:
        read_passages(written(tmp_path, "a.org", "* Trip"))
    assert "\n" not in str(caught.value)


def test_headings_names_and_contexts_have_a_length(tmp_path: Path) -> None:
    words = "word " * 999
    ((_, text, context),) = read(tmp_path, f"# {words[:199]}\nIt rains.\n")
    assert (text, context) == ("It rains.", words[:199])
    *whole, (_, text, context) = read(tmp_path, f"# {words}\n\nIt rains.\n")
    assert context == f"{words[:199]}…" and text == "It rains."
    assert " ".join(text for _, text, _ in whole).split() == words.split()  # nothing is lost
    assert {context for _, _, context in whole} == {context}
    assert read(tmp_path, f"---\ntitle: {words}\n---\nIt rains.\n") == [(4, "It rains.", f"{words[:199]}…")]
    assert read(tmp_path, f"|{words}|{'x' * 999}|\n|---|\n|a|b|\n") == [(3, f"{words[:199]}…: a · {'x' * 199}…: b", "")]
    ((_, _, context),) = read_passages(written(tmp_path, "b.md", f"---\ntags: [{'tag, ' * 999}]\n---\nIt rains.\n"))
    assert len(context) <= CONTEXT_LENGTH and context.startswith("b, tag, tag, ") and context.endswith("tag,…")


def test_half_characters_and_signs_that_a_terminal_obeys_are_no_text(tmp_path: Path) -> None:
    mail = b"From: a\nTo: b\nSubject: c\nContent-Type: text/plain; charset=unicode_escape\n\nA \\ud800 b.\n"
    assert read(tmp_path, mail, "a.eml") == [(1, "A   b.", "a › c")]
    assert read(tmp_path, "---\ntitle: a\x1b[1m\n---\nIt rains.\n") == [(4, "It rains.", "a")]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    raises(DataError, r"gone.txt: cannot be read \(No such file or directory\)", read_passages, tmp_path / "gone.txt")
