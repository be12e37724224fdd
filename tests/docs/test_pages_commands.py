"""Commands and settings of ours on the pages are understood by what they are for, whether they run there or not."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from typing import Any

import pytest
import typer
from pages import PAGES, blocks
from typer.main import get_command

from xsent_train.recipe import Recipe, StageConfig

# Commands that are gone, on pages that tell what was measured with them or that they went.
GONE = {"CHANGELOG.md": "xsent"}
NOT_OURS = {"--no-deps", "--stores", "--target"}  # options without their command

OPERATORS = {"&&", "||", "|", ";", "&", ">", ">>", "<", "<<"}
PROGRAMS = {
    "xsent": get_command(import_module("xsent.cli.main").app),
    "xsent-train": get_command(import_module("xsent_train.cli").app),
    "xsent-export": get_command(import_module("xsent_export.cli").app),
    "xsent-bench": get_command(import_module("xsent_bench.cli").app),
}


def commands(text: str) -> Iterator[list[str]]:
    """Those of our commands that a text has, as words from the program's name on."""
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        try:
            words = list(reader)
        except ValueError:  # a quotation mark that is none: text, not a command
            continue
        ends = [place for place, word in enumerate(words) if word in OPERATORS]
        for first, last in zip([0, *(end + 1 for end in ends)], [*ends, len(words)], strict=True):
            names = [word.rpartition("/")[2] for word in words[first:last]]
            for start in [place for place, name in enumerate(names) if name in PROGRAMS][:1]:
                yield [names[start], *words[first + start + 1 : last]]


def understand(command: Any, name: str, arguments: Sequence[str]) -> None:  # noqa: ANN401  typer has its own click
    """Parse arguments as the command does, without running it; raises its usage errors."""
    group = hasattr(command, "resolve_command")
    if group and not arguments:  # one that is spoken of
        return
    with command.make_context(name, list(arguments)) as context:
        if group and (rest := [*context._protected_args, *context.args]):
            name, inner, rest = command.resolve_command(context, rest)
            understand(inner, name, rest)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one(page: str) -> None:
    for block in (block for block in blocks(page) if block.kind != "python"):
        for name, *arguments in commands(block.text):
            told = f"{block.place}: {shlex.join([name, *arguments])}"
            try:
                understand(PROGRAMS[name], name, arguments)
            except typer.Exit:  # --help and --version
                pass
            except typer.BadParameter.__base__ as error:  # the usage error of typer's click
                kind = type(error).__name__  # in the text a command may be half of one, with NAMES in it
                half = kind in ("MissingParameter", "BadOptionUsage") or any(map(str.isupper, arguments))
                half &= block.kind == "inline" and kind != "NoSuchOption"
                assert half or re.match(GONE.get(page, "$"), told.partition(": ")[2]), f"{told}: {error}"
        for module in re.findall(r"python -m (xsent[\w.]*)", block.text):
            assert find_spec(module), f"{block.place}: no {module}"


def options(command: Any) -> Iterator[str]:  # noqa: ANN401
    """The options of a command and of those within it."""
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(typer.Context(command)):
            yield from options(command.get_command(typer.Context(command), name))


def test_every_option_within_the_text_is_one() -> None:
    known = {*chain.from_iterable(map(options, PROGRAMS.values())), "--help", *NOT_OURS}
    texts = (block for page in PAGES if page not in GONE for block in blocks(page, "inline"))
    found = {(block.place, option) for block in texts for option in re.findall(r"^(--?\w[\w-]*)", block.text)}
    assert {(place, option) for place, option in found if option not in known} == set()


def test_every_setting_of_a_recipe_is_one() -> None:
    for block in (block for page in PAGES for block in blocks(page, "toml")):
        recipe = tomllib.loads(block.text)
        for stage in recipe.pop("stage", ()):
            stage.pop("like", None)  # of files alone: an earlier stage
            StageConfig.model_validate(stage)
        assert recipe.keys() <= Recipe.model_fields.keys(), block.place
