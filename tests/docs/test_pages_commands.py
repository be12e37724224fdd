"""Our programs accept the commands, options and settings on the pages, whether the pages run them or not."""

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import chain, dropwhile, groupby
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer
from pages import PAGES, blocks
from typer.main import get_command

from xsent_train.recipe import Recipe, StageConfig

GONE = "CHANGELOG.md"  # names commands and options that were removed
NOT_OURS = {"--no-deps", "--target"}  # options without their command

OPERATORS = {"&&", "||", "|", ";", "&", ">", ">>", "<", "<<"}
PROGRAMS = {
    module.split(".")[0].replace("_", "-"): get_command(import_module(module).app)
    for module in ("xsent.cli.main", "xsent_train.cli", "xsent_export.cli", "xsent_bench.cli")
}


def commands(text: str) -> Iterator[list[str]]:
    """Our commands in a text, as words from the program's name on."""
    for line in text.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=True)
        reader.whitespace_split = True
        try:
            words = list(reader)
        except ValueError:  # an apostrophe: text, not a command
            continue
        for is_operator, group in groupby(words, OPERATORS.__contains__):
            command = list(dropwhile(lambda word: Path(word).name not in PROGRAMS, group))
            if command and not is_operator:
                yield [Path(command[0]).name, *command[1:]]


def understand(command: Any, name: str, arguments: Sequence[str]) -> None:  # noqa: ANN401  typer has its own click
    """Parse arguments as the command does, without running it. Raises its usage errors."""
    group = hasattr(command, "resolve_command")
    if group and not arguments:  # only mentioned
        return
    with command.make_context(name, list(arguments)) as context:
        if group and (rest := [*context._protected_args, *context.args]):
            name, inner, rest = command.resolve_command(context, rest)
            understand(inner, name, rest)


@pytest.mark.parametrize("page", PAGES)
def test_every_command_is_one(page: str) -> None:
    for block in (block for block in blocks(page) if block.kind != "python"):
        for name, *arguments in commands(block.code):
            told = f"{block.place}: {shlex.join([name, *arguments])}"
            try:
                understand(PROGRAMS[name], name, arguments)
            except typer.Exit:  # --help and --version
                pass
            except typer.BadParameter.__base__ as error:  # the usage error of typer's click
                kind = type(error).__name__  # a command within the text may be incomplete and have NAMES
                half = kind in ("MissingParameter", "BadOptionUsage") or any(map(str.isupper, arguments))
                half &= block.kind == "inline" and kind != "NoSuchOption"
                assert half or page == GONE, f"{told}: {error}"
        for module in re.findall(r"python -m (xsent[\w.]*)", block.code):
            assert find_spec(module), f"{block.place}: no {module}"


def options(command: Any) -> Iterator[str]:  # noqa: ANN401
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if hasattr(command, "list_commands"):
        for name in command.list_commands(typer.Context(command)):
            yield from options(command.get_command(typer.Context(command), name))


def screens(command: Any, path: str, parent: Any = None) -> Iterator[tuple[str, Any, str]]:  # noqa: ANN401
    """Every command of a program with its full name and its help."""
    context = command.make_context(path, [], parent=parent, resilient_parsing=True)
    assert context.help_option_names == ["-h", "--help"], path
    yield path, command, command.get_help(context)
    for name in command.list_commands(context) if hasattr(command, "list_commands") else ():
        yield from screens(command.get_command(context, name), name, context)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_help_is_in_one_style(program: str) -> None:
    """Values are in capitals, or choices; what Python calls a type says nothing to people."""
    for path, command, text in screens(PROGRAMS[program], program):
        assert not re.search(r"<[a-z]|x[<>]=|\[\[|\{|\brequired\] .*required\b", text), f"{path}: {text}"
        usage, _, rest = text.partition("\n  Example: ")[0].partition("\n")
        assert re.fullmatch(rf"Usage: .*{path} \[OPTIONS\]( COMMAND \[ARGS\]\.\.\.|( [A-Z=\[\].]+)*)", usage), usage
        assert "…" not in rest and "..." not in re.sub(r'"\.\.\."', "", rest), path  # nothing is cut off
        shown = dict(re.findall(r"^  (?:-\w, )*(--?[\w-]+)(?:, --[\w-]+)* (\S+)", rest, re.MULTILINE))
        for option in (one for one in command.params if one.param_type_name == "option" and not one.is_flag):
            [value] = [value for name, value in shown.items() if name in option.opts]
            assert re.fullmatch(r"[A-Z=:\[\],]+|[a-z\d|-]+", value), f"{path} {option.opts}: {value}"


def test_a_short_option_means_one_thing() -> None:
    meanings: dict[str, set[str]] = {}
    for program, command in PROGRAMS.items():
        for _, found, _ in screens(command, program):
            for option in (one for one in found.params if one.param_type_name == "option"):
                for short in (name for name in option.opts if re.fullmatch("-.", name)):
                    meanings.setdefault(short, set()).add(max(option.opts, key=len))
    assert meanings.pop("-k") == {"--top-k", "--neighbors"}  # how many of the nearest, in search and in mining
    assert {short: names for short, names in meanings.items() if len(names) > 1} == {}


def test_every_option_within_the_text_is_one() -> None:
    known = {*chain.from_iterable(map(options, PROGRAMS.values())), "--help", "-h", *NOT_OURS}
    texts = (block for page in PAGES if page != GONE for block in blocks(page, "inline"))
    found = {(block.place, option) for block in texts for option in re.findall(r"^(--?\w[\w-]*)", block.text)}
    assert {(place, option) for place, option in found if option not in known} == set()


def test_every_setting_of_a_recipe_is_one() -> None:
    for block in (block for page in PAGES for block in blocks(page, "toml")):
        recipe = tomllib.loads(block.text)
        for stage in recipe.pop("stage", ()):
            stage.pop("like", None)  # names an earlier stage, which the block lacks
            StageConfig.model_validate(stage)
        assert recipe.keys() <= Recipe.model_fields.keys(), block.place


def test_every_name_on_the_page_of_the_architecture_is_one() -> None:
    for block in blocks("docs/contributing/architecture.md", "inline"):
        if re.fullmatch(r"xsent\w*(\.\w+)+", block.text):
            resolve_name(block.text)
