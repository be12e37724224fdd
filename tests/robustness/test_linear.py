"""Time and memory of all parsers grow with the length of a text, whatever is repeated in it, and however deep."""

import gc
import io
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from indexes import Replay
from texts import pdf

from xsent import DataError, build_index
from xsent.clean import clean_text
from xsent.cli.rows import _BREAKS
from xsent.mining.opposites import opposed
from xsent.mining.paraphrases import difference
from xsent.mining.quantities import differ, quantities
from xsent.search.shared_words import shared_words
from xsent.search.store import IndexDatabase
from xsent.search.windows import windows_of
from xsent.words import joined_keys
from xsent_apps.notes import page
from xsent_apps.notes.read import READERS, read_passages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the peak of memory is read from /proc")

FEW, MANY = 2_500, 10_000
MOST_RATIO = 6  # 4 in linear time, 16 in quadratic
LEAST_SECONDS = 0.005  # less is noise
MOST_SECONDS = 10  # for many
MOST_MEMORY = 100 << 20


class Repeated(NamedTuple):
    """A text in which a mark comes many times."""

    mark: str
    start: str = ""
    middle: str = ""
    end: str = ""  # as often as the mark
    every: int = 1  # it comes so many times less often, as it is long or slow

    def text(self, count: int) -> str:
        """The whole."""
        count //= self.every
        return self.start + self.mark * count + self.middle + self.end * count

    def __str__(self) -> str:
        return " ".join(f"{part[:40]!r}"[1:-1] for part in (self.start, self.mark, self.middle, self.end) if part)


def marks(*each: str, start: str = "", middle: str = "", every: int = 1) -> list[Repeated]:
    """Every mark repeated alone, and all of them together."""
    alone = [Repeated(mark, start, middle, every=every) for mark in each]
    return [*alone, Repeated("".join(each), start, middle, every=every * len(each))]


# Within lines, and whole lines.
MARKDOWN = [
    *marks("#", "# ", ">", "> ", "-", "- ", "*", "* ", "=", "`", "~", "|", "| ", r"\|", "[", "- [", "- [](#", ":"),
    *marks(" ", "\t", ".", ". ", "! ", "。", "1. ", "a", "a ", "_", "é", "\0", middle="x"),
    *marks("# a\n", "###### a\n\nb\n", "a\n===\n", "a:\n\n", "- a:\n", "- a\n", "  - a\n", "> a\n", "a\n", every=2),
    *marks("---\n", "\n", "a\n\n", "|a|\n|---|\n", "|a|\n", "```\n", "```\na\n", "`a`\n\n", "- [a](#a)\n", every=2),
    Repeated("a", start="# ", middle="\n", end="\n\nb"),
    Repeated("a ", start="---\ntitle: ", middle="\n---\n", end="# b\nc\n", every=2),
    Repeated("a, ", start="---\ntags: [", middle="]\n---\n", end="# b\nc\n", every=2),
    Repeated("- a\n", start="---\ntags:\n", middle="---\n", end="# b\nc\n", every=2),
    Repeated("a", start="|", middle="|\n|---|\n", end="|b|\n", every=2),
    Repeated("a", start="", middle=":\n\n", end="- b\n"),
    Repeated("|a", middle="|\n|---|\n", end="|b"),
    Repeated("--- \n", start="---\na: b\n"),
    Repeated("{", end="}\n"),
    Repeated("[", start="+++\na = ", middle="\n", end="]\n+++\nb\n"),
    Repeated("a = [1]\n", start="+++\n", middle="+++\nb\n"),
    *marks("`", "`` ", "` ``", "a`b\n\n", "~~~~ ", "````\n", "- ```\n", "\\", every=2),
    *marks("<!--", "<!-- -->", "%%", "%% ", "%%\n", "{/*", "{::comment}", "{% comment %}", ":LOGBOOK:\n", every=4),
    *(Repeated("<!-- %% \n\n", end=end, every=4) for end in ("-->", "%%", "{% endcomment %}")),
    *marks("[a]: # ", "[a]: #\n", "a:: b\n", ":::\n", "{: ", "{%", "a ^", "> [!a", "    a\n\n", every=2),
    *marks("<rt>", "<rt>a", "<ruby>", "{漢|", "{漢|か", "｜漢\n", "漢《か\n", "［＃", every=4),
    *marks(
        "data:", "data:image/png;", "data:image/png;base64,", "![](data:image/png,a", "[a]: data:image/png,", every=2
    ),
    *marks("<img data:image/png,", "aB1/", f"{'aB1/' * 20}\n", f"{'aB1/' * 20}\n\n", every=4),
    *marks("a-\n", "a-\nb ", "a-b-\nc", "> a-\n", "a\u00ad\n", "a-\n1 ", "a-\n* ", every=2),
    Repeated("a" * 50 + "-\n", every=10),
    *marks("[a](", "![](", "[a](<", "[[a", "[[a|b]]", "![[a#", "[a][b] ", "[a]: a.b\n", "[^a", "<a@", every=2),
    *marks("**a ", "__a ", "~~a ", "==a ", "*a ", "_a ", "<b ", "<b a=", "<style ", "<style>", "&a", "&#1", every=4),
    *marks("#+BEGIN_QUERY\n", "■あ\n", "【あ", "☐ ☑ a\n", "```tasks\n", "![image ", "![[image ", every=4),
    Repeated("1 ", "![image ", "](a)"),
    *marks("{{<", "{{% ", "{{query ", "((", "a {#a", "){:a", r"\_", "<a>", every=2),
]
TEXT = [
    *marks("- b|c\n\n", "|", "a\n", "=" * 10 + "\n", start="a\n- ", every=2),
    *marks("- b|\n\nc\n" + "=" * 10 + "\nd\n", "|", start="a\n- b|c\n\nd\n" + "=" * 10 + "\n", every=4),
    *marks("漢《か》\n", "［＃", "｜", "《\n", "》", every=2),
    Repeated("-" * 20 + "\n【テキスト中に現れる記号について】\n", every=10),
]
ORG = [
    *marks("*", "* a\n", "* ", "** a\nb\n", "* :a", "* [#A] ", "* COMMENT\n", "[[a", "[[a][b]]", every=2),
    *marks(":a:\n", ":END:\n", ":a:\n:END:\n", "#+a: b\n", "#+title: b\n", ": a\n", "CLOCK: [", every=2),
    *marks("#+begin_src\n", "#+end_src\n", "#+begin_src\n#+end_src\n", "#+begin_a\n", "|-", "|-+\n", "[fn:a", every=2),
    *marks("=a ", "~a", "*a ", " /a", "<<a", "<<a>>", "=a= ", every=2),
    Repeated("#+begin_src\n", end="#+end_src\n", every=2),
    Repeated(":a:\n", end=":END:\n", every=2),
]
RST = [
    *marks(
        "=",
        "= ",
        "a\n=\n",
        "a\n===\n",
        "===\n",
        "===\na\n===\n",
        ".. \n",
        ".. a\n",
        ".. a::\n",
        ".. note:: a\n",
        every=2,
    ),
    *marks(
        "  :a:\n",
        ".. a::\n  :b:\n",
        "a::\n",
        "a::\n\n  b\n",
        ":a:`",
        "`a <",
        "`a <b>`_",
        "|a",
        "``a",
        "**a ",
        "a_ ",
        "`a`_ ",
        "[a]_",
        "+--",
        "+--+\n",
        every=2,
    ),
    *marks("== ", "== ==\n", "== ==\na\n", "== ==\na b\n== ==\n\n", " ", "\t", middle="x"),
    Repeated("a\n", "".join(f"a\n{sign * 3}\n" for sign in "=-~^"), every=2),
]
SUBTITLES = marks(
    "<v ", "<v.a", "<v a>", "<a", "<a>", "<", "{", "{\\", "{\\a}", "a", start="00:00:01,000 --> 00:00:02,000\n"
)
SUBTITLES += [Repeated("<rt>a", "00:00:01,000 --> 00:00:02,000\n")]
SUBTITLES += marks("1", "1:", "00:00:01,000 --> 0\na\n\n", " ", "\n", middle="x", every=2)

BLOCKS = ["rt", "rb", "li", "dd", "td", "h1", "p", "title", "script", "b", "br"]
assert {*page._ENDED_BY_THE_NEXT, *page._HEADINGS, *page._WITHIN_CELLS, *page.INLINE_TAGS}.issuperset(BLOCKS[:7])
HTML = [
    *marks(*(f"<{tag}>a" for tag in BLOCKS), start="<li>", every=4),
    *(Repeated(f"<{tag}>", "<table><tr>", "x", f"</{tag}>", every=2) for tag in ("div", "table", "b")),
    Repeated("<blockquote>", middle="x", end="</blockquote>", every=2),
    *marks("<dd> ", "<b> ", "</p>", start="<li>", every=2),
    Repeated("<p>", middle="x", end="</b>", every=2),
    *marks("<", "</", "<a ", "<a b", "<a b='", "<!--", "<!", "<?", "<a b=c ", "&", "&#", "&#1;", "&lt", "&a", "]"),
    *marks("1", "0", start="&#"),
    *marks("a-\n", "a-\nb ", "<img alt=a src=data:,>", start="<p>", every=2),
    *marks("<!-- -->", "<script>", "</script", "<![if ", "<![cdata[", "<!doctype", start="<p>"),
    *marks("display:", "class ", "hidden ", start="<p style='", middle="'>x"),
]

HEAD = "From: a\nTo: b\nSubject: c\n"
IN_FIELDS = ["<", "a:", "=?utf-8?q?a?= ", "(", '"', "\\", ",", ";", "a@b, ", "; a=b", "; a*1=b", "[", " ", "é", "\n b"]
FIELDS = ["From: ", "Subject: ", "Content-Type: text/plain", "Content-Type: multipart/mixed; boundary=b"]
FIELDS += ["Content-Disposition: ", "Content-Transfer-Encoding: "]
CHARSETS = ["punycode", "idna", "utf-7", "unicode_escape", "gb18030", "iso2022_jp", "none"]
LINES = [">\n", "> a\n", "1 wrote:\n", "\n", "--\n", "Re: c\n", "-----\n", "From: a\n", "a: c\n", " ", "a"]
MULTIPART = "Content-Type: multipart/mixed; boundary=b"
MAIL = [
    *(Repeated(mark, f"To: b\nDate: d\n{field}", "\n\n") for field in FIELDS for mark in IN_FIELDS),
    *(Repeated("a-", f"{HEAD}Content-Type: text/plain; charset={charset}\n\n") for charset in CHARSETS),
    *marks(*LINES, "a<mailto:", "a<tel:b>", "[cid:", "[image: ", "[image: a.png", start=f"{HEAD}\n", every=2),
    *marks("-" * 10 + "\n", "-" * 10 + "\na@b\n", "- ", start=f"{HEAD}\n", every=4),
    Repeated("<p>a@b wrote:", f"{HEAD}Content-Type: text/html\n\n<blockquote>" + "<b>" * 99, every=4),
    Repeated("\n", f"{HEAD}\nx\n", end=">\n"),
    Repeated("1 a:\n", f"{HEAD}\nx\n", end=">\n"),
    Repeated("a ", f"{HEAD}\n1 ", ":\n", end=">\n"),
    Repeated("X: a\n"),
    Repeated("From: a\n", every=10),
    Repeated("--b\n\n", f"{HEAD}{MULTIPART}\n\n", every=10),
    Repeated(f"--b\n{MULTIPART}\n\n", f"{HEAD}{MULTIPART}\n\n", every=4),
    Repeated("a\n", HEAD + "".join(f"{MULTIPART}{depth}\n\n--b{depth}\n" for depth in range(300))),
    Repeated("Content-Type: message/rfc822\n\n", HEAD),
    Repeated("a: b\n\n", f"{HEAD}Content-Type: message/delivery-status\n\n", every=10),
]
MAILBOX = marks("From a\n\n", ">From a\n", ">", "From ", "From a\n", start="From a\n\n")
MAILBOX += marks("From a Mon\na: b\n", "From a Mon\n", "From a 1 1:11:11", "1:11:11 ", " at a", start="From a Mon\n\n")
MAILBOX += [Repeated("From a\nFrom: b\nSubject: c\n\nd\n\n", every=20)]

PDF = marks(".", " .", ". . ", "a-\nb ", "-\n", "a-", "# ", "= ", "1", "a\n", "\ufffe", "\uf0b7", "a-b ", middle="x")

RUN, TABLE, TABLE_END = "<w:r><w:t>{}</w:t></w:r>", "<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>"
WORD = [
    *marks("<w:p/>", f"<w:p>{RUN}</w:p>", f"{TABLE}<w:p>{RUN}</w:p>{TABLE_END}", "<w:sdt/>", every=4),
    *marks(RUN, "<w:br/>", start="<w:p>", middle="</w:p>", every=4),
    *marks("<w:tr/>", "<w:tr><w:tc/></w:tr>", start="<w:tbl>", middle="</w:tbl>", every=4),
    *(Repeated(one, "", "<w:p/>", end, every=4) for one, end in ((TABLE, TABLE_END), ("<w:sdt>", "</w:sdt>"))),
    Repeated("<w:p>", middle=RUN, end="</w:p>", every=4),
    Repeated("a ", f"{TABLE * 80}<w:p><w:r><w:t>", f"</w:t></w:r></w:p>{TABLE_END * 80}"),
    Repeated("<w:p/>", "<w:sdt>" * 300, "</w:sdt>" * 300, every=2),
    *marks("<w:noBreakHyphen/>", "<w:footnoteReference/>", start="<w:p>", middle="</w:p>", every=4),
]
OFFICE_TABLE = "<table:table><table:table-row><table:table-cell>"
OFFICE_END = "</table:table-cell></table:table-row></table:table>"
OFFICE = [
    *marks("<text:p>a</text:p>", "<text:h>a</text:h>", "<text:list-item><text:p>a</text:p></text:list-item>", every=4),
    *marks("<text:span>a</text:span>", "<text:s/>", "a ", start="<text:p>", middle="</text:p>", every=2),
    Repeated(OFFICE_TABLE, middle="<text:p>a</text:p>", end=OFFICE_END, every=4),
    Repeated("<text:list-item>", middle="<text:p>a</text:p>", end="</text:list-item>"),
    Repeated("<text:span>", "<text:p>", "a</text:p>", "</text:span>"),
    Repeated("a ", f"{OFFICE_TABLE * 80}<text:p>", f"</text:p>{OFFICE_END * 80}"),
]

NOISE = [
    *marks(
        "> ", "# ", "- ", "1) ", "[ ] ", "| ", "2024-05-01 10:00 ", "[10:00] ", "2024-05-01 10:00 INFO ", middle="x"
    ),
    *marks("<!--", "<!-- -->", "-->", "<!-->", "<b>", "<p", "<b ", "</", "<a b='", "&", "&#", "&lt", "&a", middle="x"),
    *marks("[", "[a](", "![", "[]()", "www.", "http://", "**", "`", "a-\n", "a- ", "a", "!", "..", "😀", '"', "\ufe0f"),
    *marks(
        "=3D", "=", "=\n", "= ", "Ã©", "\x1b[", "\x1b[1", "\x1b]", "\x1b[1m", "\x1b]a\x07", "\0", " ", "\t", middle="x"
    ),
    *marks("1", "0", start="&#"),
    *marks("Ã", "Ã©", "Ã©Ã", "Ð¿", "‚±", "縺", "ä", "ä ", "¸", "£,", "â€", "Ã ", "Â ", "fь", "é\xa0»", middle="x"),
    *marks("@a", "@a ", "@a-", "RT @", "@", "Hi", "Hi ", "Hi A, ", "Dear A ", "A ", "Mr. ", "様", middle="x"),
    *marks("Danke", "Danke, ", "Danke! ", "Best regards ", "Best regards\n", "A\n", "Sent from ", "à vous", middle="x"),
    *marks("! ", "!", ",", "veuillez agréer ", "よろしくお願い", "以上", "、", start="x", middle="x"),
    Repeated("!", "Danke", "x"),
    Repeated(" ", "Danke!", "x"),
    Repeated("<!--", end="-->"),
    Repeated("2024-05-01 10:00" + " " * 99, middle="x", every=10),
]
DIGITS = [
    "1",
    "1,111",
    ",111",
    " 111",
    "1.",
    "1:",
    "1-",
    "0",
    "0 ",
    "+1",
    "(0",
    "1h",
    "12:30 ",
    "de12 ",
    "1 march ",
    "３",
]
WORDS = [
    *marks("1万", "千", "二〇", "1 mil ", "1,111 mil", "令和1年", "2024年(", "$1m ", "1.", start="1"),
    *marks(*DIGITS, "ab12", "1/1/", "1-1", "a. m", " de la", "年1", "\0t1:11", start="1"),
    *marks("\u0315\u0300", "\u0300", "a\u0315\u0300", "\uff9e\u0300", "\u0345\u0300", "\u0f73\u0f71", "\u05b0\u0591"),
    *marks("\u0315\u0300", "\u0300", "\uff9e\u0300", start="a", middle="b"),
    *marks("é", "ﬁ", "Å", "漢", "か\u3099", "ｶﾞ", "й", "ü", "ß", "İ", "\u00ad", "\u200b", "ᾳ", "ΐ", "々", "한"),
]
QUANTITIES = marks("1 1/2 ", "1/2 cup ", "m2 ", "1 m2", "1⁄2", every=2) + marks(
    "two ", "twenty-", "hundert", "thousand ", "quatre vingt ", "一", "十人", "5 km ", "-5 ", "1万", "at_", "l'"
)
QUANTITIES += [*marks("viertel vor acht ", every=4), Repeated("\u0301\u0327", start="a")]
QUANTITIES += marks("10^6 ", "half ", "half past ", "mil ", "mille", "zweieinhalb", "1⁄2 ", "2 et demie ", "半")
QUERIES = marks("a", "é", "漢", "a ", "1", "_", '"', "*", "NEAR(", "(", ")", "-", "^", ":", "\u0315\u0300")


def docx(text: str) -> bytes:
    """A text of Word with this in its body."""
    space = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    return packed("word/document.xml", f'<w:document xmlns:w="{space}"><w:body>{text}</w:body></w:document>')


def odt(text: str) -> bytes:
    """A text of OpenDocument with this in its body."""
    space = "urn:oasis:names:tc:opendocument:xmlns:{0}:1.0"
    names = " ".join(f'xmlns:{name}="{space.format(name)}"' for name in ("office", "text", "table"))
    return packed("content.xml", f"<office:document {names}><office:body>{text}</office:body></office:document>")


def packed(name: str, content: str) -> bytes:
    """A file in an archive."""
    with zipfile.ZipFile(file := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()


READ: dict[str, list[Repeated]] = {
    **dict.fromkeys((".md",), MARKDOWN),
    ".txt": TEXT,
    ".rst": RST,
    ".org": ORG,
    ".html": HTML,
    ".pdf": PDF,
    ".docx": WORD,
    ".odt": OFFICE,
    ".eml": MAIL,
    ".mbox": MAILBOX,
    ".srt": SUBTITLES,
}
SAME = {READERS[kind]: kind for kind in READ}  # readers of several kinds of files


def cost(work: Callable[[], object]) -> tuple[float, int]:
    """Seconds of the processor, and the bytes by which the memory of the process has grown at most."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak is now what is in use
    before = peak()
    gc.disable()  # it would look through what all other tests have left
    try:
        start = time.process_time()
        with suppress(DataError):
            work()
        return time.process_time() - start, peak() - before
    finally:
        gc.enable()


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


def assert_linear(work: Callable[[str], Callable[[], object]], repeated: Repeated) -> None:
    """Try a text of few marks and one of many; `work` prepares what is measured."""
    few, many = work(repeated.text(FEW)), work(repeated.text(MANY))
    for _ in range(4):  # another process may have taken the cache
        long, memory = cost(many)
        assert memory < MOST_MEMORY, f"{memory >> 20} MB"
        assert long < MOST_SECONDS
        short = cost(few)[0] if long > MOST_RATIO * LEAST_SECONDS else LEAST_SECONDS
        if long <= MOST_RATIO * max(short, LEAST_SECONDS):
            return
    raise AssertionError(f"{short:.2f} s, four times as much takes {long:.2f} s")


def some_slow(*cases: tuple[Any, ...]) -> list[Any]:
    """Parameters of a test, three of four of them marked as slow: there are hundreds, for a few parsers."""
    marked = ((case, [pytest.mark.slow] if number % 4 else []) for number, case in enumerate(cases))
    return [pytest.param(*case, marks=marks, id=" ".join(map(str, case))) for case, marks in marked]


@pytest.mark.parametrize(("kind", "repeated"), some_slow(*((kind, each) for kind in READ for each in READ[kind])))
def test_files(kind: str, repeated: Repeated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("defusedxml")
    shown: list[str] = []
    if kind == ".pdf":
        pytest.importorskip("pypdfium2")
        monkeypatch.setattr("pypdfium2.PdfTextPage.get_text_range", lambda self: shown[0])

    def prepared(text: str) -> Callable[[], object]:
        file = tmp_path / f"{len(text)}{kind}"
        made = {".docx": docx, ".odt": odt}.get(kind, str.encode)
        file.write_bytes(pdf("x") if kind == ".pdf" else made(text))

        def read() -> object:
            shown[:] = [text]
            return read_passages(file)

        return read

    assert_linear(prepared, repeated)


def test_every_reader_is_tried() -> None:
    assert all(reader in SAME for reader in READERS.values())


@pytest.mark.parametrize("repeated", some_slow(*zip(NOISE, strict=True)))
def test_noise(repeated: Repeated) -> None:
    assert_linear(lambda text: lambda: clean_text(text), repeated)


@pytest.mark.parametrize("repeated", some_slow(*zip(WORDS, strict=True)))
def test_words(repeated: Repeated) -> None:
    assert_linear(lambda text: lambda: joined_keys(text), repeated)


@pytest.mark.parametrize("repeated", marks("a ", "a b ", every=3), ids=str)
def test_order(repeated: Repeated) -> None:
    assert_linear(lambda text: lambda: difference(f"x {text} b c d", f"x c b {text} d"), repeated)


@pytest.mark.parametrize("repeated", some_slow(*zip(QUANTITIES, strict=True)))
def test_quantities(repeated: Repeated) -> None:
    read = quantities.__wrapped__  # which remembers nothing
    assert_linear(lambda text: lambda: (differ(read(text), read(f"{text} 7")), opposed(text, "")), repeated)


@pytest.mark.parametrize("repeated", marks(" ", "\t", middle="x", start="x"), ids=str)
def test_rows(repeated: Repeated) -> None:
    def work(text: str) -> Callable[[], object]:
        return lambda: _BREAKS.sub(" ", text)

    assert_linear(work, repeated)


@pytest.mark.parametrize("repeated", marks("_", "a_", "n'", "はを", "\u0301\u0327", middle="\n"), ids=str)
def test_differences(repeated: Repeated) -> None:
    assert_linear(lambda text: lambda: difference(text, f"{text}a"), repeated)


@pytest.mark.parametrize("repeated", QUERIES, ids=str)
def test_queries(repeated: Repeated, database: IndexDatabase) -> None:
    search = lambda text: shared_words(database, text, [0], most=9, rows=2, among=2, rarity=lambda _: 1)  # noqa: E731
    assert_linear(lambda text: lambda: search(text), repeated)


@pytest.mark.parametrize("repeated", marks("a", "a ", "a. ", ". ", " ", "\n", "。", "漢", ".", middle="x"), ids=str)
def test_windows(repeated: Repeated) -> None:
    encoder = SimpleNamespace(max_length=1, count_tokens=len, clean=False)
    assert_linear(lambda text: lambda: windows_of(text, encoder), repeated)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> IndexDatabase:
    folder = tmp_path_factory.mktemp("index") / "x"
    build_index(folder, ["0", "1"], Replay(np.eye(2)))  # type: ignore[arg-type]
    return IndexDatabase(folder)
