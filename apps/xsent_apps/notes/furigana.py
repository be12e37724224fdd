"""Leaves out furigana: the reading above a Japanese word, which would be read as a part of the sentence."""

import re

_KANA = "\u3041-\u30ff\\s"
_KANJI = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff々〆ヶ仝〇"
# <ruby> in a text that is not HTML: the reading and its parentheses, then the other tags.
_TAGS = re.compile(
    r"<r(?:t|p|tc)\b[^<>]*>[^<>]*(?:</r(?:t|p|tc)\s*>|(?=</?r(?:uby|b|t|p)\b))|</?(?:ruby|rb|rt|rp|rtc)\b[^<>]*>", re.I
)
# Texts of Aozora Bunko, and of sites for novels: 漢字《かんじ》, ｜Word《reading》, and notes for the typesetter.
_BOOKS = re.compile(
    rf"｜([^《》｜\n]{{1,40}})《[^《》\n]{{1,40}}》|(?<=[{_KANJI}])《[{_KANA}]{{1,40}}》|※?［＃[^［］\n]*］"
)
_LEGEND = re.compile(r"^-{20,}+\n【テキスト中に現れる記号について】.*?\n-{20,}+$", re.DOTALL | re.MULTILINE)
# {漢字|かん|じ} and [漢字]{かんじ} of Denden Markdown and of Obsidian's plugins.
_BRACES = re.compile(
    rf"\{{([^{{}}|\n]{{1,40}})(?:\|[{_KANA}]{{1,40}})+\}}|\[([^\[\]\n]{{1,40}})\]\{{[{_KANA}]{{1,40}}\}}"
)


def without_furigana(text: str) -> str:
    """A text without the readings of its words. Lines keep their numbers."""
    if "《" in text or "［＃" in text:
        text = _LEGEND.sub(lambda found: "\n" * found[0].count("\n"), text, count=1)
        text = _BOOKS.sub(r"\1", text)
    return _BRACES.sub(r"\1\2", text)


def without_ruby_tags(text: str) -> str:
    """A text without the readings that are written as <ruby>."""
    return _TAGS.sub(lambda found: "\n" * found[0].count("\n"), text)
