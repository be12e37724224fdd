"""The `xsent` command. Heavy modules are imported inside the commands, so that help appears at once."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.main import get_command

from xsent.cli.classify import app as classify
from xsent.cli.documents import app as documents
from xsent.cli.encode import encode
from xsent.cli.evaluate import app as evaluate
from xsent.cli.mine import cluster, duplicates, mine, score
from xsent.cli.options import BundleArgument, JsonOption, LayersOption, ModelOption
from xsent.cli.program import App, Command, Program, QueryCommand
from xsent.cli.search import index, search
from xsent.cli.terminal import FAILED, format_facts, format_table, plain, print_json, print_result
from xsent.errors import counted

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class WithApps(Program):
    """The commands of xsent, and those that other packages offer as entry points `xsent.commands`."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401  typer has its own click
        """The names of all commands, those of xsent first."""
        return [*super().list_commands(ctx), *sorted(_offered())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ANN401
        """A command; those of other packages are imported on demand."""
        if (own := super().get_command(ctx, cmd_name)) is not None or (offered := _offered().get(cmd_name)) is None:
            return own
        return get_command(offered.load())

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401
        """The command that was typed; the error for a wrong name suggests commands of other packages, too."""
        if args and self.get_command(ctx, args[0]) is None:
            names: dict[str, Any] = dict.fromkeys(_offered())
            self.commands.update(names)  # typer suggests from these
        return super().resolve_command(ctx, args)


def _offered() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points  # slower to import than a help text is to print

    return {point.name: point for point in entry_points(group="xsent.commands")}


# In the tables of `xsent info`, as an export prints them
_HEADINGS = {"cosine_mean": "cosine mean", "cosine_p1": "1st percentile", "cosine_min": "minimum"}
_HEADINGS |= {"p1_before": "P@1 trained", "p1_after": "P@1 bundle", "first_ten": "first ten kept", "found": "P@1"}

app = App(
    cls=WithApps,
    help="Sentence vectors across languages, on the CPU and offline.",
    epilog='Example: xsent similarity "Where is the station?" "Où est la gare ?"',
    no_args_is_help=True,
    add_completion=True,
)
for _panel, _command, _summary, _example in (
    ("Search", index, "Make an index of texts, or add to one.", "index notes.txt notes.index"),
    ("Search", search, "Find the nearest texts of an index.", 'search notes.index "where is the cat?"'),
    ("Understand", duplicates, "Find lines that mean the same.", "duplicates mails.txt"),
    ("Understand", cluster, "Group texts of one subject, in any language.", "cluster mails.txt"),
    ("Translate", mine, "Find translations in two texts.", "mine en.txt fr.txt --threshold 1.1 > pairs.tsv"),
    ("Translate", score, "Score given pairs of translations.", "score pairs.tsv --precision 0.95 > scored.tsv"),
    ("Vectors", encode, "Make a file of vectors from a file of texts.", "encode sentences.txt --output vectors.npy"),
):
    _kind = QueryCommand if _command is search else Command
    _about = {"short_help": _summary, "epilog": f"Example: xsent {_example}", "rich_help_panel": _panel}
    app.command(cls=_kind, **_about)(_command)
app.add_typer(classify, name="classify", rich_help_panel="Understand")
app.add_typer(documents, name="documents", rich_help_panel="Translate")
app.add_typer(evaluate, name="evaluate", rich_help_panel="Model")


def main() -> None:
    """Run the command line; exits with 0 done, 1 expected failure, 2 usage, 130 Ctrl-C."""
    app()


@app.callback(invoke_without_command=True)
def version(
    context: typer.Context, show: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False
) -> None:
    """Sentence vectors across languages, on the CPU and offline."""
    if show:
        import xsent

        typer.echo(xsent.__version__)
        raise typer.Exit


@app.command(
    short_help="Compare two texts.",
    epilog='Example: xsent similarity "Where is the station?" "Où est la gare ?"',
    cls=QueryCommand,
    rich_help_panel="Vectors",
)
def similarity(
    a: Annotated[str, typer.Argument(help="A text.")],
    b: Annotated[str, typer.Argument(help="Another text, in any language of the model.")],
    model: ModelOption = None,
    layers: LayersOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the cosine of two texts: 1 means the same, around 0 unrelated."""
    from xsent.open_model import open_model
    from xsent.similarity import cosine_similarity

    left, right = open_model(model, layers).encode([a, b])
    cosine = float(cosine_similarity(left, right)[0, 0])
    print_result({"cosine": cosine}, f"{cosine:.4f}", as_json=as_json)


@app.command(short_help="Describe a bundle.", epilog="Example: xsent info my-model", rich_help_panel="Model")
def info(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Describe a bundle: languages, size, fingerprint, vector space and the measurements of its export."""
    from xsent.bundle import MANIFEST, Bundle, builtin_path
    from xsent.files.atomic import as_data_error

    opened = Bundle.open(bundle or builtin_path())
    hidden = ("golden", "files", "parity", "network", "layers")
    trained = {name: numbers for name, numbers in opened.trained._asdict().items() if numbers}
    facts = {key: value for key, value in asdict(opened).items() if key not in hidden}
    facts |= {"path": str(opened.path), "bytes": sum(entry.bytes for entry in opened.files.values())}
    facts["trained"] = trained
    if as_json:
        print_json({**facts, "parity": opened.parity})
        return
    for name in ("languages", "depths", "spaces"):
        facts[name] = ", ".join(map(str, facts[name]))
    facts["trained"] = "; ".join(f"{name} {', '.join(map(str, numbers))}" for name, numbers in trained.items())
    typer.echo(format_facts({name: value for name, value in facts.items() if value not in (None, "")}))
    for key, heading in (
        ("language", "Measured at export, against the trained encoder:"),
        ("depth", "Fewer layers against all of them:"),
    ):
        with as_data_error(opened.path / MANIFEST, "export the bundle again"):  # this part of the manifest is unchecked
            rows = [
                {key: name} | {_HEADINGS.get(figure, figure): value for figure, value in measured.items()}
                for name, measured in opened.parity.get(f"{key}s", {}).items()
            ]
        if rows:
            typer.echo(f"\n{heading}\n{format_table(rows)}")


@app.command(
    "verify", short_help="Check a bundle or an index.", epilog="Example: xsent verify my-model", rich_help_panel="Model"
)
def verify_files(
    bundle: Annotated[
        Path | None, typer.Argument(metavar="[BUNDLE]", help="Or an index; default: the built-in bundle.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(metavar="NAME", help="onnx, numpy or openvino; default: onnx if it is installed.")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Also whether vectors depend on the sentences beside them; a minute.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check every file of a bundle, and its vectors on this machine; or every file of an index."""
    from xsent.search.index import SearchIndex
    from xsent.search.store import has_index
    from xsent.verification import verify, verify_together

    if bundle is not None and has_index(bundle):
        index = SearchIndex(bundle)
        index.verify()
        result: dict[str, object] = {"path": str(bundle), "fingerprint": index.state.fingerprint, "rows": len(index)}
    else:
        result = asdict(verify(bundle, backend))
        if thorough:
            result["together"] = verify_together(bundle, backend, show_progress_bar=None)
    print_result(result, format_facts(result), as_json=as_json)


@app.command(short_help="Examine this machine.", epilog="Example: xsent doctor", rich_help_panel="Model")
def doctor(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Examine this machine: whether int8 is faster on it, how long encoding takes, and what needs fixing.

    Exits with 1 if something does not work.
    """
    from xsent.bundle import Bundle, builtin_path
    from xsent.cli.doctor import examine

    findings = []
    for finding in examine(Bundle.open(bundle or builtin_path())):
        findings.append(finding)
        if not as_json:
            typer.echo(f"{finding.status:<7}  {finding.subject:<13}  {plain(finding.text)}")
    problems = sum(finding.status == "problem" for finding in findings)
    summary = counted(problems, "problem") if problems else "xsent works here"
    report = {"problems": problems, "findings": [asdict(finding) for finding in findings]}
    print_result(report, summary, as_json=as_json)
    if problems:
        raise typer.Exit(FAILED)
