"""Our programs and their commands: help in one style, errors of one line that name options as people type them."""

import re
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from xsent.cli.terminal import one_line_errors
from xsent.errors import XsentError

CONTEXT = {"help_option_names": ["-h", "--help"]}  # of a program; its commands have them too

_COMMANDS = "Commands"  # heading of those without a panel
_ONE_LINE = 200  # characters of a purpose; typer would cut it at the width of the terminal
_METAVARS = {"Path": "PATH", "path": "PATH", "file": "PATH", "int": "N", "float": "X", "str": "TEXT"}
_TYPE = re.compile(r" <(?:list\[)?(.+?)(?: range)?\]?>$")  # as typer shows it: <int range>
_NOTES = re.compile(r"\s*\[([^\[\]]*)\]$")  # what it adds to a help: [default: 10; x>=1]
_RANGE = re.compile("<=?x|x[<>]")
# Of Python, in a message: k = 0, space = 'foo', layers=3; not in a path such as id=5/part.parquet.
_ARGUMENT = re.compile(r"(?<![\w/])(\w+)(?: = |=(?=[\w'.-]+(?:[ ;,)]|$)))(?:'([\w.-]*)')?")
_SURPLUS = re.compile(r"Got unexpected extra argument\S* \((.*)\)$", re.DOTALL)  # click's words


class Command(TyperCommand):
    """A command whose help shows PATH, N, X and TEXT, and no types of Python."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:  # noqa: ANN401  typer has its own click
        """Name the arguments in capitals."""
        super().__init__(*arguments, **settings)
        for one in self.params:
            if one.param_type_name == "argument":
                one.metavar = (one.metavar or one.name or "").removesuffix("...").strip("[]").upper()

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Options, then arguments; those in brackets may be missing, those with dots repeated."""
        arguments = [one for one in self.params if one.param_type_name == "argument"]
        names = [f"{one.metavar}..." if one.nargs != 1 else str(one.metavar) for one in arguments]
        given = zip(names, arguments, strict=True)
        return ["[OPTIONS]", *(name if one.required else f"[{name}]" for name, one in given)]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the help of the arguments and of the options."""
        format_parameters(self.get_params(ctx), ctx, formatter)

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command; where an error or a warning names an argument of the library, it names the option."""
        options = {opt.lstrip("-").replace("-", "_"): opt for one in self.params for opt in one.opts}
        show = warnings.showwarning

        def show_typed(message: Warning | str, *place: Any, **more: Any) -> None:  # noqa: ANN401
            show(as_typed(str(message), options), *place, **more)

        with warnings.catch_warnings():
            warnings.showwarning = show_typed
            try:
                return super().invoke(ctx)
            except (XsentError, ValueError) as error:
                error.args = (as_typed(str(error), options),)
                raise


class QueryCommand(Command):
    """A command whose last argument is a text, such as a QUERY.

    If a text that starts with a dash is taken for an option, or one without quotes for several arguments, the error
    shows what to do.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Parse the arguments."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if getattr(error, "option_name", None):  # of click's NoSuchOption
                error.message += ". Put -- before a text that starts with a dash: -- TEXT"  # type: ignore[attr-defined]
            elif surplus := _SURPLUS.search(getattr(error, "message", "")):
                *given, last = [str(ctx.params[one.name]) for one in self.params if one.param_type_name == "argument"]
                command = [ctx.command_path, *map(shlex.quote, given), _quoted(f"{last} {surplus[1]}")]
                error.message = f"a text of several words needs quotes: {' '.join(command)}"  # type: ignore[attr-defined]
            raise


class Program(TyperGroup):
    """A program of several commands, whose errors are one line each."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run a command; typer would report its errors otherwise."""
        with one_line_errors():
            return super().invoke(ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the help of the options, and the commands under the headings of their panels."""
        format_parameters(self.get_params(ctx), ctx, formatter)
        panels: dict[str, list[tuple[str, str]]] = {}
        width = max(map(len, self.list_commands(ctx)))
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            panel = panels.setdefault(command.rich_help_panel or _COMMANDS, [])
            panel.append((name.ljust(width), command.get_short_help_str(_ONE_LINE)))
        for heading, commands in panels.items():
            with formatter.section(heading):
                formatter.write_dl(commands)


class App(typer.Typer):
    """A Typer whose programs and commands are ours."""

    def __init__(self, **settings: Any) -> None:  # noqa: ANN401
        """As a Typer, without rich."""
        ours = {"cls": Program, "rich_markup_mode": None, "pretty_exceptions_enable": False}
        super().__init__(**{"context_settings": CONTEXT, "add_completion": False, **ours, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[..., Any]:  # noqa: ANN401
        """Register a command."""
        return super().command(name, **{"cls": Command, **settings})


def help_records(parameters: Iterable[Any], ctx: Any) -> Iterator[tuple[Any, str, str]]:  # noqa: ANN401
    """Arguments and options with name and help, as typer has them, but without types of Python and ranges."""
    for one in parameters:
        name, text = one.get_help_record(ctx)
        is_argument = one.param_type_name == "argument"
        yield one, one.metavar if is_argument else _TYPE.sub(_metavar, name), _help(text, is_argument)


def format_parameters(parameters: Iterable[Any], ctx: Any, formatter: Any) -> None:  # noqa: ANN401
    """Write the help of arguments and of options."""
    records = list(help_records(parameters, ctx))
    for kind in ("argument", "option"):
        if found := [(name, text) for one, name, text in records if one.param_type_name == kind]:
            with formatter.section(f"{kind.capitalize()}s"):
                formatter.write_dl(found)


def as_typed(message: str, options: Mapping[str, str]) -> str:
    """A message of the library in which options have the names that people type: `--top-k 0` instead of `k = 0`."""

    def typed(found: re.Match[str]) -> str:
        return f"{options[found[1]]} {found[2] or ''}" if found[1] in options else found[0]

    return _ARGUMENT.sub(typed, message)


def _metavar(found: re.Match[str]) -> str:
    return f" {_METAVARS.get(found[1], found[1])}"


def _help(text: str, is_argument: bool) -> str:
    """A help without what typer adds about ranges, and about arguments that are required, as the usage shows."""
    if not (notes := _NOTES.search(text)):
        return text
    dropped = "required" if is_argument else ""
    kept = [note for note in notes[1].split("; ") if note != dropped and not _RANGE.search(note)]
    return text[: notes.start()] + (f"  [{'; '.join(kept)}]" if kept else "")


def _quoted(text: str) -> str:
    """A text in the quotes that people type, unless a shell would read something in it."""
    return shlex.quote(text) if {*text} & {*'"$`\\!'} else f'"{text}"'
