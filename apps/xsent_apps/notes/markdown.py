"""Reads Markdown without what its writer hid: comments, and marks of the programs that keep notes."""

import re

from xsent_apps.notes.front_matter import split_front_matter
from xsent_apps.notes.furigana import without_furigana, without_ruby_tags
from xsent_apps.notes.source import Source

_CLOSINGS = {
    "<!--": "-->",
    "%%": "%%",
    "{/*": "*/}",
    "{% comment %}": "{% endcomment %}",
    "{::comment}": "{:/comment}",
    ":LOGBOOK:": ":END:",
    ":PROPERTIES:": ":END:",
}
_TOKEN = re.compile(
    r"""
    (?P<code>
        ^[ \t>]*+ (?:(?:[-*+]|\d{1,9}[.)])[ \t]++)? (?P<fence> `{3,}+ (?=[^`\n]*+$) | ~{3,}+ ) [^\n]*+
            (?: .*? ^[ \t>]*+ (?P=fence) [`~]*+ [ \t]*+ $ | .*+ )                  # without an end, all that follows
      | (?<!`) (?P<ticks>`++) (?: (?!\n[ \t]*+\n) . )+? (?<!`) (?P=ticks) (?!`)   # within a paragraph
      | \\ [^\n\w]
    )
    | (?P<gone>
        ^[ ]{0,3} \[[^\]\n]{0,99}\]: [ \t]* \# (?:[ \t][^\n]*)? $                # [//]: # (a comment)
      | ^[ \t]*+ (?: id | collapsed | logseq\.[\w.-]+ ):: [^\n]* $                # Logseq
      | ^[ \t]*+ (?:SCHEDULED|DEADLINE): [ \t]*+ <[^>\n]*> [ \t]*+ $
      | ^[ \t>]*+ :{3,}+ [ \t]*+ (?: \{[^\n{}]*\} | [\w-]+ )? [ \t]*+ :*+ $     # Pandoc and others
      | ^[-*+][ ][^\n]*\n\{:[ ]?toc\b[^\n]*$                                   # where a table of contents is to be
      | ^[ \t]*+ \{ (?: :[^{}\n:]* | %(?![ ]comment)[^%\n]*% ) \} [ \t]*+ $      # kramdown, Liquid
      | (?<=>[ ]) \[![\w-]+\] [-+]? [ ]?                                       # the kind of a quotation
      | (?<=\S) [ \t]++ \^[A-Za-z0-9-]{4,}+ $                                  # the name of a block
    )
    | (?P<opening>
        ^[ \t>]*+ (?:[-*+][ \t]++)? (?: %%(?!%) | :(?:LOGBOOK|PROPERTIES):(?=[ \t]*$) )
      | (?<![\w%]) %% (?!%) (?=[^\n]*?%%)
      | <!-- | \{/\* | \{%[ ]comment[ ]%\} | \{::comment\}
    )
    | (?: \A | (?<=\n\n) ) (?P<indented> (?: (?:[ ]{4}|\t) [^\n]*+ (?:\n|\Z) )++ )  # code, unless in a list
    | (?P<item> ^[ ]{0,3} (?:[-*+]|\d{1,9}[.)]) (?=[ \t]) )
    | (?P<other> ^\S )
    """,
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
_JOPLIN = re.compile(r"\n\nid: [0-9a-f]{32}\n(?:\w+:[^\n]*\n)*type_: \d+\s*\Z")  # below a note of its raw export


def read_markdown(text: str) -> Source:
    """A note in Markdown."""
    about, text, first = split_front_matter(text)
    shown = _shown(_JOPLIN.sub("", text))
    return Source(enumerate(shown.split("\n"), first), about)


def _shown(text: str) -> str:
    """A text without its comments and the like, and without furigana, except in code. Lines keep their numbers."""
    last = {opening: text.rfind(closing) for opening, closing in _CLOSINGS.items()}
    pieces = list[str]()  # what is shown, and code
    start = place = 0
    in_list = False
    while found := _TOKEN.search(text, place):
        place = found.end()
        kind = found.lastgroup
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
        pieces.append(_plain(text[start : found.start()]))
        pieces.append(found[0] if kind in ("code", "indented") else "\n" * text.count("\n", found.start(), end))
        if kind == "opening" and text[found.start() - 1 : found.start()] == " " == text[end : end + 1]:
            end += 1  # of the spaces around a comment, one stays
        start = place = end
    pieces.append(_plain(text[start:]))
    return "".join(pieces)


def _plain(text: str) -> str:
    return without_furigana(without_ruby_tags(text))
