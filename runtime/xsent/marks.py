"""The marks of Markdown within a paragraph: links show their label, and emphasis only its words."""

import re

_LABEL = r"\[((?:[^\[\]]|\[[^\[\]]*+\])*+)\]"
_TARGET = (
    r"\([ \t]*(?:<[^<>\n]*+>|(?:[^()\s]|\([^()\s]*+\))*+)"
    r"(?:\s+(?:\"[^\"\n]*+\"|'[^'\n]*+'|=[\dx]++))?[ \t]*\)"  # with a title, or the size of a picture
)
_PICTURE = re.compile(rf"!{_LABEL}{_TARGET}")  # may be in a link
_LINK = re.compile(rf"{_LABEL}{_TARGET}")
_PAGE = re.compile(r"!?\[\[(?![\s\[])([^\[\]|\n]*?)(?:\\?\|([^\[\]\n]*))?\]\]")  # a link of Obsidian and of wikis
_PART = re.compile(r"#?\^.*|#")  # of a page: a block has no name for people, a heading has one
_SIZE = re.compile(r"[\dx]*")  # of a picture, in the place of a label
_UNNAMED = re.compile(  # a picture whose name is the work of a program: IMG_2041.heic, image, Pasted image 2024.png
    r"(?:img|image|dsc\w?|pxl|screen ?shot|bildschirmfoto|capture d.écran|pasted image|untitled)"
    r"(?:[\W\d_]|at|um|à|[ap]m)*(?:\.\w{3,4})?|[\W\d_]+\.(?:png|jpe?g|gif|heic|webp)",
    re.IGNORECASE,
)
# Emphasis around words, but not the marks in snake_case, file names, products and comparisons.
_WITHIN = r"((?:[^{0}\n]|[{0}](?![{0}])|\n(?![ \t]*\n)){{1,500}}?)"  # to the next mark, within a paragraph
_EMPHASIS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?<![0-9A-Za-z*])\*\*\*?(?![\s*]){_WITHIN.format('*')}(?<![\s*])\*\*\*?(?!\*)",
        rf"(?<![\w/\\.-])__(?![\s_]){_WITHIN.format('_')}(?<![\s_])__(?!\w)",
        rf"(?<!~)~~(?![\s~]){_WITHIN.format('~')}(?<![\s~])~~(?!~)",
        r"(?<![0-9A-Za-z_=!<>])==(?![\s=])([^=\n]{1,500})(?<!\s)==(?![0-9A-Za-z_=])",
        r"(?<![\w*/\\.-])\*(?=\w)([^*\n]{1,200})(?<=[\w.!?:,;)])\*(?![\w*/\\-]|\.\w)",
        r"(?<![\w/\\.-])_(?=\w)([^_\n]{1,200})(?<=[^\W_]|[.!?:,;)])_(?![\w/\\-]|\.\w)",
    )
)


def without_marks(text: str) -> str:
    """A text without the marks of Markdown: links show their label, pictures the words that describe them."""
    if "](" in text:
        text = _LINK.sub(r"\1", _PICTURE.sub(lambda picture: _named(picture[1]), text))
    if "[[" in text:
        text = _PAGE.sub(_label, text)
    for pattern in _EMPHASIS:
        text = pattern.sub(r"\1", text)
    return text


def _named(picture: str) -> str:
    """The words that describe a picture, unless a program gave it its name."""
    return "" if _UNNAMED.fullmatch(picture) else picture


def _label(link: re.Match[str]) -> str:
    """The label of a link to a page, such as [[Page|label]], or the name of [[Page]]; ![[a.png|300]] has no label."""
    if link[2] and not _SIZE.fullmatch(link[2]):
        return link[2]
    name = _PART.sub(lambda sign: " > " if sign[0] == "#" else "", link[1]).removeprefix(" > ")
    return _named(name) if link[0][0] == "!" else name
