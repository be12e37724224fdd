"""Reads HTML pages as lines of Markdown."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser

from xsent.clean import NO_CHARACTER
from xsent.files.hyphens import HYPHENS, Hyphens
from xsent_apps.notes.furigana import without_furigana
from xsent_apps.notes.replies import announces
from xsent_apps.notes.source import Source

INLINE_TAGS = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rb rp rt rtc ruby s samp "
    "small span strike strong sub sup tt u var wbr".split()
)
_EMPTY_TAGS = frozenset("area base br col embed hr img input link meta source track wbr".split())
_TAGS_WITHOUT_TEXT = frozenset(  # an annotation is the source of a formula, and the last are furigana
    "script style template noscript svg button select textarea nav footer iframe audio video annotation "
    "rp rt rtc".split()
)
_ROLES_WITHOUT_TEXT = frozenset(["banner", "navigation", "contentinfo", "search", "complementary"])
_UNSEEN = re.compile(r"display:\s*none|visibility:\s*hidden")
_CLASSES_WITHOUT_TEXT = re.compile(
    r"(gmail_attr|mw-(editsection|cite-backlink|jump-link)|catlinks|navbox|printfooter|no-?print|(header|hash)-?link|header-anchor|"
    r"anchor(js)?-link|([\w-]*-)?skip-(link|nav|to-content)|sr-only|visually-hidden|screen-reader-text|katex-mathml|"
    r"toc(-macro)?|msotoc\d|table-?of-?contents|nav(bar|igation)?|menu|breadcrumbs?|foot(er)?|widget-area|pagination|(s-)?top-?bar|(js-)?post-menu|"
    r"mw-portlet-lang|site(notice|sub)|interlanguage-link|lang(uage)?s?[-_](item|list|menu|nav|picker|select(or)?|switch(er)?)s?|"
    r"(ad|advert(isement)?)([-_]+(container|wrapper|slot|label|banner|unit|box))+|advertisement|adsbygoogle|"
    r"cookies?([-_]?(law|banner|notice|consent|info|popup|bar|dialog|modal))*|onetrust-[\w-]*|"
    r"cybotcookiebotdialog|sharedaddy|shar(e|ing)(daddy)?-?(buttons?|links?|bar|icons?|enabled)|(social|post|entry|article)-?(share|sharing)|"
    r"social-?(links|icons|media|bar)|buttons|addtoany[\w-]*|a2a_kit|shariff|(jp-)?(post-flair|related-?(posts|articles))|email-ufi[\w-]*|"
    r"cite_ref[\w-]*|footnote-?ref(erence)?|(user-content-)?fnref[\w:-]*|noteref|"
    r"mso(foot|end)notereference|(ftnt|cmnt)(_ref)?\d+|"  # numbers of footnotes
    r"postprofile|sig\d+|online-list|respond|comment-?(respond|form|reply-link)|userpic_wrap|reply_to|media_(photo|video|voice_message))$",
    re.IGNORECASE,
)
_BUTTON = re.compile(r"(?:\S*[-_])?(?:button|btn|jump|print)(?:[-_]\S*)?", re.IGNORECASE)  # a class of a link
_CLASSES_OF_QUOTES = re.compile(
    r"blockquote\.(?:gmail|proton\w*|tutanota|zmail|mail)\w*|div\.(?:yahoo|protonmail)_?quoted?|div\.zmail_extra"
)
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_ENDED_BY_THE_NEXT = {"li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "tr": {"tr", "td", "th"}}
_ENDED_BY_THE_NEXT |= {"td": {"td", "th"}, "th": {"td", "th"}}
_ENDED_BY_THE_NEXT |= {tag: {"rb", "rp", "rt"} for tag in ("rb", "rp", "rt", "rtc")}
_WITHIN_CELLS = frozenset(["p", "div", "br", "ul", "ol", "li"])  # other tags mean that the table is only for layout
_MOST_SPANNED, LONGEST_SPANNED = 20, 60  # rows or columns, and characters to repeat in each row


def read_page(text: str, *, is_mail: bool = False) -> Source:
    """The visible text of a page; in an email, with `>` before quoted emails, which are left out of other pages.

    Raises AssertionError for some broken declarations.
    """
    page = _Page(Hyphens(text), is_mail)
    page.feed(NO_CHARACTER.sub("\ufffd", without_furigana(text)))
    if not page.rawdata.startswith("<"):  # an unfinished tag: browsers drop it, and close() takes quadratic time
        page.close()
    page.end_block()
    return Source(page.lines, [page.title] if page.title else [])


def cell_span(attributes: Mapping[str, str | None], name: str) -> int:
    """How many rows or columns a cell covers."""
    written = attributes.get(name) or ""
    return min(int(written), _MOST_SPANNED) if written.isdecimal() and len(written) < 5 else 1


class _Page(HTMLParser):
    """Collects the visible text of a page: one line per block, followed by an empty line; one line per table row."""

    def __init__(self, hyphens: Hyphens, is_mail: bool) -> None:
        super().__init__()
        self._hyphens = hyphens
        self._is_mail = is_mail
        self.lines: list[tuple[int, str]] = []
        self.title = ""
        self._block: list[str] = []
        self._end = ""  # last two characters of the block, without spaces after them
        self._mark = ""  # Markdown prefix of the block
        self._first = 1  # line on which the block begins
        self._open: list[tuple[str, bool, bool]] = []  # tags, whether their text counts, and whether it is quoted
        self._count = Counter[str]()  # of open tags
        self._row: list[str] | None = None  # cells of the open row of a table
        self._spans = 1, 1  # rows and columns of the open cell
        self._above: dict[int, tuple[int, str]] = {}  # by column: a cell of a row above, and how many rows more it has
        self._is_header = True  # whether all cells of the row are header cells
        self._is_first = False  # whether no row of the table has ended
        self._is_bold = False  # whether the text of the first row is bold: it names the columns if others follow

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Close the block at a block-level tag."""
        self._begin(tag, dict(attrs))
        if tag not in _EMPTY_TAGS:
            self._count[tag] += 1
            _, counts, is_quoted = self._open[-1] if self._open else ("", True, False)
            is_quoted = is_quoted or _is_quoted(tag, dict(attrs)) or (tag == "blockquote" and self._is_announced())
            counts = counts and not _is_hidden(tag, dict(attrs)) and (self._is_mail or not is_quoted)
            self._open.append((tag, counts, is_quoted))

    def _begin(self, tag: str, attributes: dict[str, str | None]) -> None:
        """Start an element; a line break in a heading is a space, and one after a hyphen is within a word."""
        if tag in INLINE_TAGS or (tag in _WITHIN_CELLS and self._row is not None):
            self._block += "\n" * (tag not in INLINE_TAGS and bool(self._block))
        elif tag == "br" and (self._mark[:1] == "#" or (self._end[-1:] in HYPHENS and self._end != "--")):
            self._block.append("\n")
            return
        elif tag == "dd" and self._mark == "- ":
            self._add(" " if self._end and self._end[-1] in "?!.:：？。" else ": ")
        elif tag in ("td", "th"):
            self._begin_cell(attributes)
            self._is_header = self._is_header and tag == "th"
        else:
            self.end_block()
        self._is_first = self._is_first or tag == "table"
        if tag == "tr":
            self.lines += [(self.getpos()[0], "|---|")] * (self._is_bold and not self._is_first)
            self._row, self._is_header, self._is_bold, self._first = [], True, self._is_first, self.getpos()[0]
        if self._row is None and tag not in INLINE_TAGS and tag != "dd":
            self._mark = "- " if tag in ("li", "dt") else f"{_HEADINGS[tag]} " if tag in _HEADINGS else ""
        if ended := _ENDED_BY_THE_NEXT.get(tag):
            while self._open and self._open[-1][0] in ended:
                self._pop()
        if tag == "img" and (attributes.get("src") or "").startswith("data:"):
            self.handle_data(f" {attributes.get('alt') or ''} ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """An element without text, such as <br/>."""
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY_TAGS:
            self._pop()

    def handle_endtag(self, tag: str) -> None:
        """Close the block at a block-level tag, and all tags that are open within this one."""
        if tag in ("td", "th"):
            self._end_cell()
        elif tag not in INLINE_TAGS and tag != "dt" and not (tag in _WITHIN_CELLS and self._row is not None):
            self.end_block()
        if tag == "table":
            self._above, self._is_first, self._is_bold = {}, False, False
            self.lines.append((self.getpos()[0], ""))  # the names of its columns end here
        if self._count[tag]:
            while self._pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        """Add text to the block."""
        if any(tag == "title" for tag, *_ in self._open[-1:]):
            self.title = self.title or " ".join(data.split())  # drawings also have titles
            return
        if (self._open and not self._open[-1][1]) or not (self._block or data.strip()):
            return
        if not self._block and not any(self._row or ()):
            before = data[: len(data) - len(data.lstrip())]
            self._first = self.getpos()[0] + before.count("\n")
        self._is_bold &= not data.strip() or bool(self._count["b"] + self._count["strong"])
        self._add(data)

    def end_block(self) -> None:
        """Store the block, or the row of a table, as a line."""
        if self._row is not None:
            self._end_cell()
            row, self._row = self._row, None
            above = [*self._from_above(len(row))]
            if any(row):
                self._is_bold &= self._is_first and len([*filter(None, row)]) > 1 and not self._quote()
                self._is_first = False
                self.lines.append((self._first, f"{self._quote()}| {' | '.join(row + above)} |"))
                if self._is_header and not self._quote():
                    self.lines.append((self._first, "|---|"))
        elif text := self._take():
            if self._is_mail and self._count["blockquote"] and not self._quote() and "@" in text and announces(text):
                self._quote_rest()
            self.lines += [(self._first, self._quote() + self._mark + text), (self._first, "")]
        self._mark = ""

    def _quote(self) -> str:
        """What comes before a line of a quoted email."""
        return "> " if self._open and self._open[-1][2] else ""

    def _is_announced(self) -> bool:
        """Whether a block that begins here is a quoted email, below a line that says so."""
        last = next((line for _, line in self.lines[-2:] if line), "")
        return self._is_mail and announces(last)

    def _quote_rest(self) -> None:
        """Take the open block quotation for a quoted email, because a line in it says so."""
        first = next((place for place, (tag, *_) in enumerate(self._open) if tag == "blockquote"), len(self._open))
        self._open[first:] = [(tag, counts, True) for tag, counts, _ in self._open[first:]]

    def _add(self, text: str) -> None:
        self._block.append(text)
        self._end = text.rstrip()[-2:] or self._end

    def _take(self) -> str:
        lines = self._hyphens.rejoined(enumerate(filter(str.strip, "".join(self._block).split("\n"))))
        text = " ".join(" ".join(line for _, line in lines).split())
        self._block = []
        self._end = ""
        return text

    def _begin_cell(self, attributes: dict[str, str | None]) -> None:
        self._end_cell()
        if self._row is not None:
            self._row += [*self._from_above(len(self._row)), ""]  # until the cell has text
            self._spans = cell_span(attributes, "rowspan"), cell_span(attributes, "colspan")

    def _end_cell(self) -> None:
        text = self._take().replace("|", "\\|")
        if self._row is None:
            return
        if text:
            if self._row[-1:] == [""]:
                self._row.pop()
            self._row.append(text)
        (rows, columns), self._spans = self._spans, (1, 1)
        for more in range(columns if rows > 1 else 0):
            is_repeated = not more and len(text) <= LONGEST_SPANNED
            self._above[len(self._row) - 1 + more] = rows - 1, text if is_repeated else ""
        self._row += [""] * (columns - 1)

    def _from_above(self, column: int) -> Iterator[str]:
        """The cells of rows above that also cover this row, from a column on."""
        while column in self._above:
            rows, text = self._above.pop(column)
            if rows > 1:
                self._above[column] = rows - 1, text
            yield text
            column += 1

    def _pop(self) -> str:
        tag, *_ = self._open.pop()
        self._count[tag] -= 1
        return tag


def _is_hidden(tag: str, attributes: dict[str, str | None]) -> bool:
    """Whether an element is hidden or has no text of its own, like navigation."""
    classes = (attributes.get("class") or "").split()
    names = [*classes, *(attributes.get("id") or "").split()]
    return (
        tag in _TAGS_WITHOUT_TEXT
        or attributes.get("role") in _ROLES_WITHOUT_TEXT
        or "hidden" in attributes
        or bool(_UNSEEN.search(attributes.get("style") or ""))
        or "share" in classes
        or (attributes.get("href") or "").endswith("#top")
        or "noteref" in (attributes.get("epub:type") or attributes.get("role") or "")
        or (tag == "sup" and "reference" in classes)
        or (tag == "a" and any(map(_BUTTON.fullmatch, [*names, attributes.get("role") or ""])))
        or (tag not in ("html", "body") and any(map(_CLASSES_WITHOUT_TEXT.match, names)))
    )


def _is_quoted(tag: str, attributes: dict[str, str | None]) -> bool:
    """Whether an element is a quoted email."""
    if tag == "blockquote" and attributes.get("type") == "cite":
        return True
    return any(map(_CLASSES_OF_QUOTES.fullmatch, [f"{tag}.{name}" for name in (attributes.get("class") or "").split()]))
