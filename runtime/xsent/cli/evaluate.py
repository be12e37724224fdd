"""`xsent evaluate`: an encoder measured with published protocols."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.cli import options
from xsent.cli.program import App
from xsent.cli.terminal import format_table, print_report
from xsent.errors import DataError

if TYPE_CHECKING:
    from xsent.evaluation.result import Evaluation
    from xsent.open_model import SupportsEncode

app = App(
    help="Measure an encoder with a published protocol.",
    epilog="Example: xsent evaluate tatoeba DATA/eval/tatoeba --languages fr,de",
    no_args_is_help=True,
)

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="The folder of the test files, or the file if there is only one.")
]
LanguagesOption = Annotated[
    str | None,
    typer.Option(metavar="CODES", help="Comma-separated codes; default: all that the model and the data share."),
]

_COMMANDS = {  # protocol: help, and arguments of the example
    "tatoeba": (
        "Tatoeba similarity search: P@1 among 1,000 sentences, both directions.",
        "DATA/eval/tatoeba --languages fr,de",
    ),
    "xsr": (
        "Cross-lingual sentence retrieval: P@1 of 2,000 sentences among about 200,000.",
        "DATA/eval/xsr --languages fr,de --json",
    ),
    "xsim": (
        "Margin-scored retrieval: error rate on parallel texts such as FLORES, both directions.",
        "DATA/eval/flores --languages fr,de",
    ),
    "sts": (
        "Semantic textual similarity: Spearman's correlation of cosines with human scores.",
        "DATA/eval/stsb --languages en,de",
    ),
    "contrasts": (
        "Hard negatives: translations against sentences of nearly the same words and another meaning.",
        "bench/contrasts.tsv",
    ),
    "retrieval": (
        "Questions to passages: nDCG@10 in and across languages, by vectors, by BM25 and by both.",
        "DATA/eval/passages --languages en,fr,de,es,ru",
    ),
    "words": (
        "Words: P@1 of another form or of the translation among 50 other words.",
        "bench/words.tsv --languages fr,de",
    ),
}


def _add_command(task: str, summary: str, example: str) -> None:
    """Register the command of a protocol; all have the same options."""

    @app.command(
        task,
        help=summary,
        short_help=f"{summary.partition(':')[0]}.",
        epilog=f"Example: xsent evaluate {task} {example}",
    )
    def command(
        data_folder: FolderArgument,
        model: options.ModelOption = None,
        layers: options.LayersOption = None,
        threads: options.ThreadsOption = None,
        languages: LanguagesOption = None,
        precision: options.PrecisionOption = "float32",
        truncate_dim: options.TruncateOption = None,
        as_json: options.JsonLinesOption = False,
    ) -> None:
        from xsent.evaluation import PROTOCOLS, as_stored
        from xsent.open_model import open_model

        encoder = as_stored(open_model(model, layers, threads), precision, truncate_dim)
        result = PROTOCOLS[task](encoder, data_folder, _codes(languages))
        about = {"task": task, "model": str(model or "built-in"), "layers": layers}
        _report(result, encoder, {**about, "precision": precision, "truncate_dim": truncate_dim}, as_json)


for _task, (_summary, _example) in _COMMANDS.items():
    _add_command(_task, _summary, _example)


@app.command(
    "space",
    short_help="Agreement with another model's space.",
    epilog="Example: xsent evaluate space DATA/eval/tatoeba --english-by FOLDER --space all-MiniLM-L6-v2",
)
def compare_spaces(
    data_folder: FolderArgument,
    english_by: Annotated[
        Path, typer.Option(help="The other model: a folder of sentence-transformers, a bundle or a checkpoint.")
    ],
    model: options.ModelOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    into: Annotated[
        str | None,
        typer.Option("--space", metavar="NAME", help="Its space, one that xsent info names; default: the only one."),
    ] = None,
    languages: LanguagesOption = None,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Agreement with another model's space: P@1 of its English and this one's translations, and how near both are."""
    from xsent.encoder import SentenceEncoder
    from xsent.evaluation import as_stored
    from xsent.evaluation.translation import space
    from xsent.open_model import open_model

    codes = _codes(languages)
    encoder = open_model(model, layers, threads)
    if into is None and isinstance(encoder, SentenceEncoder) and encoder.space is None and encoder.bundle.spaces:
        into, *others = encoder.bundle.spaces
        if others:
            raise ValueError(f"--space must name one of {', '.join(encoder.bundle.spaces)}")
    encoder = as_stored(encoder, space=into)
    result = space(encoder, data_folder, codes, english_by=open_model(english_by))
    about = {"task": "space", "model": str(model or "built-in"), "layers": layers, "space": into}
    _report(result, encoder, {**about, "english_by": str(english_by)}, as_json)


def _codes(languages: str | None) -> list[str] | None:
    codes = None if languages is None else options.split_names(languages)
    if codes == []:
        raise DataError(f"--languages {languages!r} names none; expected comma-separated codes, such as fr,de")
    return codes


def _report(result: "Evaluation", encoder: "SupportsEncode", about: Mapping[str, object], as_json: bool) -> None:
    rows = result.rows()
    facts = {**about, "fingerprint": getattr(encoder, "fingerprint", None)}
    print_report(rows, facts, f"{format_table(rows)}\n{result.note}", as_json=as_json)
