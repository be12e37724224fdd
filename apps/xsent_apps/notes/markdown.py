"""Reads Markdown as it is shown: without comments, tags, marks, and what the programs that keep notes add."""

import html
import re

from xsent.marks import without_marks
from xsent_apps.notes.front_matter import split_front_matter
from xsent_apps.notes.furigana import without_furigana, without_ruby_tags
from xsent_apps.notes.page import INLINE_TAGS
from xsent_apps.notes.source import Source

_CLOSINGS = {
    "<!--": "-->",
    "%%": "%%",
    "{/*": "*/}",
    "{% comment %}": "{% endcomment %}",
    "{::comment}": "{:/comment}",
    ":LOGBOOK:": ":END:",
    ":PROPERTIES:": ":END:",
    "#+BEGIN_QUERY": "#+END_QUERY",
    "<style": "</style>",
    "<script": "</script>",
}
_TOKEN = re.compile(
    r"""
    (?P<code>
        ^[ \t>]*+ (?:(?:[-*+]|\d{1,9}[.)])[ \t]++)? (?P<fence> `{3,}+ (?=[^`\n]*+$) | ~{3,}+ ) [^\n]*+
            (?: .*? ^[ \t>]*+ (?P=fence) [`~]*+ [ \t]*+ $ | .*+ )                  # without an end, all that follows
      | (?<!`) (?P<ticks>`++) (?: (?!\n[ \t]*+\n) . )+? (?<!`) (?P=ticks) (?!`)   # within a paragraph
    )
    | (?P<escape> \\ [!-/:-@\[-`{}~] )
    | (?P<gone>
        ^[ ]{0,3} \[[^\]\n]{0,99}\]: [ \t]* \# (?:[ \t][^\n]*)? $                # [//]: # (a comment)
      | ^[ \t]*+ (?: id | collapsed | background-color | (?:card|hl|query)-[\w-]+ |logseq\.[\w.-]+ ):: [^\n]*$  # Logseq
      | ^[ \t]*+ (?:SCHEDULED|DEADLINE): [ \t]*+ <[^>\n]*> [ \t]*+ $
      | ^[ \t>]*+ :{3,}+ [ \t]*+ (?: \{[^\n{}]*\} | [\w-]+ )? [ \t]*+ :*+ $     # Pandoc and others
      | ^[ \t]*+ (?: !!! | \?\?\?\+? | === ) [ ]++ (?: [\w-]++ (?: [ ]++(?=") | [ \t]*+$ ) | (?=") )   # MkDocs
      | ^[ \t]*+ \\(?:newpage|pagebreak|clearpage|tableofcontents) [ \t]*+ $          # Pandoc
      | ^[-*+][ ][^\n]*\n\{:[ ]?toc\b[^\n]*$ | ^[ \t]*+ (?i: \[\[?(?:_?toc_?)\]?\] ) [ \t]*+ $  # a table of contents
      | ^[ \t]*+ (?:[-*+]|\d{1,3}[.)]) [ \t]++ \[[^\]\n]*+\]\(\#[^)\n]*+\) [ \t]*+ $  # a line of one
      | (?<=[^\s|]) \[\^[^\[\]\s]{1,40}\] (?!:) | (?<=\S) \\ $                  # the number of a footnote, a line's end
      | ^[ ]{0,3} \[\^[^\[\]\s]{1,40}\]: [ \t]+                                  # that number before its text
      | ^[ \t]*+ \{ (?: :[^{}\n:]* | %(?![ ]comment)[^%\n]*% ) \} [ \t]*+ $      # kramdown, Liquid
      | (?: (?<=[)\]`]) | (?<=\S) [ \t]++ (?=\{[^{}\n]*+\}[ \t]*+$) ) \{ [ ]? (?: :[ ]?[a-z] | \#[A-Za-z0-9]
            | [.][A-Za-z] ) [^{}\n]*+ \}                                               # attributes of kramdown, Pandoc
      | \{\{[<%] [ ]* figure (?=[ ]) [^{}\n]{0,300}? [ ](?:caption|alt)="(?P<caption>[^"{}\n]*+)" [^{}\n]{0,300}+ \}\}
      | \{\{ (?: [<%] [^{}\n]*+ (?<=[>%]) | (?:query|embed|renderer|video)\b [^{}\n]*+ ) \}\}    # Hugo, Logseq
      | \(\([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\)\)                     # a block of Logseq
      | (?<=>[ ]) \[![\w-]+\] [-+]? [ ]?                                       # the kind of a quotation
      | (?: (?<=\S) [ \t] | ^ ) [ \t]*+ \^[A-Za-z0-9-]{4,}+ [ \t]*+ $            # the name of a block
      | [ ]? \[ -?@ [\w:.-]++ [^\[\]\n]*+ \] (?![(:\[])                           # a citation
    )
    | (?P<opening>
        ^[ \t>]*+ (?:[-*+][ \t]++)? (?: %%(?!%) | :(?:LOGBOOK|PROPERTIES):(?=[ \t]*$) | \#\+BEGIN_QUERY )
      | (?<![\w%]) %% (?!%) (?=[^\n]*?%%)
      | <!-- | <(?:style|script)(?=[\s>]) | \{/\* | \{%[ ]comment[ ]%\} | \{::comment\}
    )
    | (?: \A | (?<=\n\n) ) (?P<indented> (?: (?:[ ]{4}|\t) [^\n]*+ (?:\n|\Z) )++ )  # code, unless in a list
    | (?P<item> ^[ ]{0,3} (?:[-*+]|\d{1,9}[.)]) (?=[ \t]) )
    | (?P<other> ^\S )
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_QUERY = re.compile(  # code in the place of which Obsidian shows what it finds
    r"[ \t>]*(?:[-*+][ \t]+)?(?:`{3,}|~{3,})[ \t]*(?:dataview(?:js)?|tasks|query|base)[ \t]*$", re.MULTILINE
)
_HIGHLIGHT = re.compile(r"^[ \t]*+\{[{%][<%]?-? ?/? ?(?:end)?highlight\b[^{}\n]*+\}{1,2}[ \t]*+$", re.MULTILINE)
_FENCE = "~~~~"  # takes the place of what Jekyll and Hugo write around code
_CODE = re.compile("\0(\\d+)\0")  # in the place of code, with its number
_STRUCTURE = "\\#`~"  # signs that need their backslash: they could begin a heading or code
_BLOCK_TAGS = (
    "address article aside blockquote br center dd details div dl dt figcaption figure footer h[1-6] header hr img li "
    "main nav ol p picture section summary table tbody td tfoot th thead tr ul"
)
_TAG = re.compile(
    rf"</?({'|'.join([*INLINE_TAGS, *_BLOCK_TAGS.split()])})(?:\s++(?:open|hidden|[^<>=]*+=[^<>]*+)?)?/?>",
    re.IGNORECASE,
)
_BARE_ADDRESS = re.compile(r"<((?:https?|mailto):[^<>\s]++|[\w.+-]++@[\w.-]++)>")
_ALT = re.compile(r"\balt\s*=\s*([\"'])(.*?)\1", re.IGNORECASE | re.DOTALL)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,30});")
_ADDRESS = re.compile(  # of a link whose text is elsewhere
    r"^[ ]{0,3}\[(?!\^)([^\[\]\n]+)\]:[ \t]+<?(?!data:)(?=\S*(?:[/#]|\.\w))\S+>?(?:[ \t]+[\"'(][^\n]*)?[ \t]*$",
    re.MULTILINE,
)
_REFERENCE = re.compile(r"!?\[([^\[\]]*+)\](?:\[([^\[\]\n]*+)\])?(?!\()")
_NOTE = re.compile(r"(?<=\S)\^\[([^\[\]]{1,500})\]")  # a footnote where its number would be
_JOPLIN = re.compile(r"\n\nid: [0-9a-f]{32}\n(?:\w+:[^\n]*\n)*type_: \d+\s*\Z")  # below a note of its raw export


def read_markdown(text: str) -> Source:
    """A note in Markdown."""
    about, text, first = split_front_matter(text)
    shown = _shown(_HIGHLIGHT.sub(_FENCE, _JOPLIN.sub("", text)))
    return Source(enumerate(shown.split("\n"), first), about)


def _shown(text: str) -> str:
    """A text as it is shown, with code as it is. Lines keep their numbers."""
    last = {opening: text.rfind(closing) for opening, closing in _CLOSINGS.items()}
    pieces = list[str]()  # what is shown
    code = dict[str, int]()  # the pieces that stay as they are, and the number in the mark in their place
    start = place = 0
    in_list = False
    while found := _TOKEN.search(text, place):
        place = found.end()
        kind = "gone" if _QUERY.match(found[0]) else found.lastgroup
        end = place
        if kind == "opening":
            opening = found[0].lstrip(" \t>-*+")
            # "<!-->" is a whole comment.
            begun = place - 2 if opening == "<!--" else place
            if last[opening] < begun:
                continue  # it has no end
            end = text.find(_CLOSINGS[opening], begun) + len(_CLOSINGS[opening])
        elif kind in ("item", "other"):
            in_list = kind == "item"
            continue
        elif kind == "indented" and in_list:
            place = found.start() + 1
            continue
        pieces.append(text[start : found.start()])
        if kind in ("opening", "gone"):
            pieces.append((found["caption"] or "") + "\n" * text.count("\n", found.start(), end))
        else:
            kept = found[0] if kind != "escape" or found[0][1] in _STRUCTURE else found[0][1]
            pieces.append(f"\0{code.setdefault(kept, len(code))}\0")
        if kind == "opening" and text[found.start() - 1 : found.start()] == " " == text[end : end + 1]:
            end += 1  # of the spaces around a comment, one stays
        start = place = end
    pieces.append(text[start:])
    # By number: a mark in the address of a link, or in a tag, is not shown. Equal code has the same, also as a label.
    shown = list(code)
    return _CODE.sub(lambda found: shown[int(found[1])], _plain("".join(pieces)))


def _plain(text: str) -> str:
    """A text without furigana, tags and marks, and with characters for entities."""
    text = without_furigana(without_ruby_tags(text))
    if "<" in text:
        text = _TAG.sub(_without_tag, _BARE_ADDRESS.sub(r"\1", text))
    text = _NOTE.sub(r" (\1)", without_marks(_without_references(text)))
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text


def _without_tag(tag: re.Match[str]) -> str:
    """What is shown of a tag: the words that describe a picture, or a space at the edge of a block."""
    words = _ALT.search(tag[0]) if tag[1].lower() == "img" else None
    return (words[2] if words else "" if tag[1].lower() in INLINE_TAGS else " ") + "\n" * tag[0].count("\n")


def _without_references(text: str) -> str:
    """A text whose links have their addresses elsewhere, without these, and with the labels."""
    names = {" ".join(found[1].casefold().split()) for found in _ADDRESS.finditer(text)}
    if not names:
        return text
    return _REFERENCE.sub(
        lambda found: found[1] if " ".join((found[2] or found[1]).casefold().split()) in names else found[0],
        _ADDRESS.sub("", text),
    )
