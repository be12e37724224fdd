"""Reads front matter: YAML, TOML or JSON above a note, the title block of Pandoc, and the properties of Logseq."""

import json
import re
import tomllib
from collections.abc import Iterator
from typing import Any

_FENCED = re.compile(
    r"(---|\+\+\+|;;;)[ \t]*(yaml|toml|json)?[ \t]*\n(.*?\n)?(\1|\.\.\.)[ \t]*(\n|$)", re.DOTALL | re.IGNORECASE
)
_KINDS = {"+++": "toml", ";;;": "json"}
_PROPERTIES = re.compile(r"(?:[\w./-]+::(?:[ \t][^\n]*)?\n)+(?=\s*\S)")
_TITLE_BLOCK = re.compile(
    r"%[ \t]+(\S[^\n]*\n)(?:[ \t]+\S[^\n]*\n)*(?:%[^%\n]*\n(?:[ \t]+\S[^\n]*\n)*){0,2}(?=[ \t]*\n)"
)
_FIELD = re.compile(r"([\w-]+)[ \t]*(?:::|[:=])[ \t]*(.*)")
_FIRST_FIELD = {"yaml": re.compile(r"\s*[\w-]+[ \t]*:"), "toml": re.compile(r"\s*(?:#[^\n]*\s*)*[\w-]+[ \t]*=")}
_BLOCK = re.compile(r"[>|][+-]?\d?$")  # a value on the lines below
_NAMES = frozenset("title aliases alias tags tag keywords".split())  # fields that help to find a note


def split_front_matter(text: str) -> tuple[list[str], str, int]:
    """The title, aliases and tags of a note, its text below them, and the number of the first line of that text."""
    names, length = _front_matter(text)
    return [name for name in names if name], text[length:], 1 + text.count("\n", 0, length)


def _front_matter(text: str) -> tuple[list[str], int]:
    """Names in the front matter of a note, and its length."""
    if found := _FENCED.match(text):
        kind = (found[2] or _KINDS.get(found[1], "yaml")).lower()
        content = found[3] or ""
        fields = _parsed(content, "json" if content.startswith("{") else kind)
        if fields is not None:
            return [*_named(fields)], found.end()
        if kind in _FIRST_FIELD and _FIRST_FIELD[kind].match(content):  # otherwise two horizontal rules
            return _lines_named(content), found.end()
    elif text.startswith("{"):
        try:
            fields, length = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):  # a text, or nested without end
            return [], 0
        if (names := [*_named(fields)]) and text[length : length + 1] == "\n" and text[length:].strip():
            return names, length + 1
    elif found := _TITLE_BLOCK.match(text):
        return [found[1].strip()], found.end()
    elif (found := _PROPERTIES.match(text)) and (names := _lines_named(found[0])):
        return names, found.end()
    return [], 0


def _parsed(content: str, kind: str) -> dict[str, Any] | None:
    """The fields of TOML and JSON; None for YAML, which needs a package, and for what is not valid."""
    try:
        fields = {"toml": tomllib.loads, "json": json.loads}[kind](content)
    except (KeyError, ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _named(fields: dict[str, Any]) -> Iterator[str]:
    """Title, aliases and tags, also of the tables inside, as [taxonomies]."""
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from (
                name for inner, each in value.items() if inner.lower() in _NAMES for name in _values(inner, each)
            )
        elif key.lower() in _NAMES:
            yield from _values(key, value)


def _values(key: str, value: object) -> Iterator[str]:
    """The names in a value: a list of them, or a text with commas."""
    listed = value if isinstance(value, list) else [value] if key.lower() == "title" else str(value).split(",")
    yield from (str(each).strip() for each in listed if isinstance(each, str | int))


def _lines_named(front: str) -> list[str]:
    """Title, aliases and tags of lines, which need not be valid YAML."""
    names = list[str]()
    field = ""
    for line in front.split("\n"):
        if found := _FIELD.match(line):
            field = found[1].lower()
            values = [found[2]] if field == "title" else found[2].strip("[] ").split(",")
        else:
            values = [line.strip().removeprefix("-")]
        if field in _NAMES:
            names += [value.strip(" \t\"'#[]" if field != "title" else " \t\"'#") for value in values]
    return [name for name in names if not _BLOCK.match(name)]
