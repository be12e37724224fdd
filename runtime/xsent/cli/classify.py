"""`xsent classify`: fit, run and measure linear heads."""

import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.cli import options
from xsent.cli.program import App
from xsent.cli.rows import row_output
from xsent.cli.terminal import format_table, print_report, print_result
from xsent.files.tables import TextSource, place_of, read_pairs
from xsent.progress import Progress, known_total

if TYPE_CHECKING:
    from xsent.classification.classifier import ClassWeight, LinearClassifier
    from xsent.encoder import SentenceEncoder

app = App(
    help="Label texts with a linear head on their vectors.",
    epilog="Example: xsent classify fit train.tsv topics.npz && xsent classify predict topics.npz notes.txt",
    no_args_is_help=True,
)

_UNEQUAL = 4  # times the examples of the rarest label, from which --balanced is mentioned
_COLON = re.compile("[:：]")  # between a label and its description; the wide one is Japanese
_BLOCK = 256  # vectors classified at once

ColumnsOption = Annotated[
    str | None,
    typer.Option(
        "--columns",
        metavar="LABEL,TEXT[,TEXT]",
        help="Columns of a CSV, JSON Lines or Parquet file. Default: label and one or two texts, tab-separated.",
    ),
]
ExampleColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="LABEL,TEXT", help="Columns of --examples, where that file is a table."),
]
BalancedOption = Annotated[bool, typer.Option("--balanced", help="Give rare labels the same weight as frequent ones.")]


@app.command(short_help="Fit a head on labelled texts.", epilog="Example: xsent classify fit train.tsv topics.npz")
def fit(
    train: Annotated[
        Path, typer.Argument(help="Lines of label and text, or label and two texts, tab-separated; or a table.")
    ],
    head: Annotated[Path, typer.Argument(help="A new .npz file; a .json file of the same name is written too.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    columns: ColumnsOption = None,
    balanced: BalancedOption = False,
    unknown: Annotated[float, typer.Option(min=0, max=1, help="Also answer unknown below this probability.")] = 0.0,
    force: options.ForceOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Fit a head; cross-validation chooses its regularisation and calibrates its probabilities."""
    from xsent.classification.classifier import LinearClassifier, check_head_files
    from xsent.classification.labels import label_key
    from xsent.encoder import SentenceEncoder
    from xsent.evaluation.topics import read_examples

    check_head_files(head, force=force)
    examples = read_examples(train, _names(columns))
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    vectors = examples.encode(encoder, show_progress_bar=None)
    fitted = LinearClassifier.fit(
        vectors,
        examples.labels,
        fingerprint=encoder.fingerprint,
        class_weight="balanced" if balanced else None,
        unknown=unknown,
    )
    fitted.save(head, force=force)
    choice = fitted.choice
    assert choice is not None
    what = "pairs" if fitted.pairs else "examples"
    facts = {"labels": fitted.labels, "examples": fitted.examples, **asdict(choice)}
    text = (
        f"{head}: {len(fitted.labels)} labels from {fitted.examples:,} {what}; in cross-validation "
        f"{100 * choice.accuracy:.1f}% right, log loss {choice.log_loss:.3f} (L2 {choice.l2:g})"
    )
    print_result(facts, text, as_json=as_json)
    fewest, most = (pick(Counter(map(label_key, examples.labels)).values()) for pick in (min, max))
    if most >= _UNEQUAL * fewest and not balanced:
        advice = "if rare labels matter as much, fit with --balanced"
        typer.echo(f"The labels have {fewest:,} to {most:,} examples; {advice}.", err=True)


@app.command(short_help="Label texts with a head.", epilog="Example: xsent classify predict topics.npz notes.txt")
def predict(
    head: Annotated[Path, typer.Argument(help="A head written by fit.")],
    file: Annotated[
        str,
        typer.Argument(
            help="One text per line, or two with a tab between for a head of pairs; - reads standard input."
        ),
    ] = "-",
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    unknown: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Answer unknown below this probability; 0: only texts without words. Default: as fitted."
        ),
    ] = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Print label, probability and text of every line, in constant memory; with --id the id comes first.

    A text that is far from all training texts is unknown, and so is one without words, such as "..." or "N/A"; neither
    has a probability.
    """
    from xsent.classification.classifier import LinearClassifier
    from xsent.encoder import SentenceEncoder

    source = TextSource(file, column, id)
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    classifier = LinearClassifier.load(head, fingerprint=encoder.fingerprint)
    _write_labels(classifier, encoder, source, unknown, output, as_json=as_json, force=force)


@app.command(
    short_help="Measure accuracy across languages.",
    epilog="Example: xsent classify evaluate DATA/eval/sib200 --columns category,text --train en",
)
def evaluate(
    data: Annotated[
        list[Path],
        typer.Argument(
            metavar="DATA",
            help="A folder of languages (MLDoc's LANG.train.1000 and LANG.test, or LANG/train.tsv and LANG/test.tsv); "
            "or a training file and files to test on.",
        ),
    ],
    model: options.ModelOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    columns: ColumnsOption = None,
    train: Annotated[
        str | None,
        typer.Option(
            metavar="CODES", help="Comma-separated languages of the folder to train in; default: all of the model."
        ),
    ] = None,
    balanced: BalancedOption = False,
    seeds: Annotated[int, typer.Option(min=1, help="Heads per training set.")] = 5,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Measure accuracy within and across languages over five seeds, and what is unknown, with a confusion table.

    Some texts that have a label become "unknown" and are lost. Some texts whose label was omitted from training are
    found to have none of the other labels.
    """
    from xsent.evaluation.topics import (
        SEEDS_NOTE,
        accuracy_rows,
        confusion_rows,
        read_examples,
        transfer,
        unknown_rows,
    )
    from xsent.open_model import open_model

    encoder = open_model(model, layers, threads)
    files = _files(data, _names(train), getattr(encoder, "languages", ()))
    names = _names(columns)
    quotes = not data[0].is_dir()  # as in fit; the published measurements of folders take quotes as text
    sets = [{name: read_examples(path, names, quotes=quotes) for name, path in side.items()} for side in files]
    weight: ClassWeight | None = "balanced" if balanced else None
    labels, cells = transfer(encoder, *sets, seeds=seeds, class_weight=weight)
    facts = {"model": str(model or "built-in"), "fingerprint": getattr(encoder, "fingerprint", None), "labels": labels}
    accuracies = format_table(accuracy_rows(cells))
    confusion = format_table(confusion_rows(labels, cells))
    unknown = unknown_rows(cells)
    limit = f"Unknown in %, of texts with a label, and of texts whose label was omitted:\n{format_table(unknown)}\n\n"
    text = (
        f"Accuracy in %, mean and deviation of {seeds} seeds:\n{accuracies}\n\n{limit if unknown else ''}"
        f"Where the examples of a label went, in %, over all of these tests:\n{confusion}\n\n{SEEDS_NOTE}"
    )
    print_report([cell.row() for cell in cells], facts, text, as_json=as_json)


@app.command(
    "zero-shot",
    short_help="Label texts by descriptions of the labels.",
    epilog='Example: xsent classify zero-shot mails.txt --labels "bills: invoices" --labels "login: passwords"',
)
def zero_shot(
    labels: Annotated[
        list[str], typer.Option(metavar="LABEL: DESCRIPTION", help="In any language; give it for every label.")
    ],
    file: Annotated[str, typer.Argument(help=options.LINES)] = "-",
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    examples: Annotated[
        Path | None, typer.Option(help="A few examples, as classify fit reads them; they refine the labels.")
    ] = None,
    columns: ExampleColumnsOption = None,
    head: Annotated[Path | None, typer.Option(help="A new .npz file for classify predict.")] = None,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    unknown: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Answer unknown below this probability; 0: only texts without words."),
    ] = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Print label, probability and text of every line without training: labels are described in words.

    A text that is far from all descriptions is unknown: no label applies.
    """
    from xsent.classification.classifier import LinearClassifier, check_head_files
    from xsent.encoder import SentenceEncoder
    from xsent.evaluation.topics import read_examples

    if head is not None:
        check_head_files(head, force=force)
    names = [_COLON.split(text, 1)[0].strip() for text in labels]
    if len({*names}) < 2:
        raise ValueError(f"--labels {labels[0]!r} is only one label; repeat --labels for each label")
    source = TextSource(file, column, id)
    known = None if examples is None else read_examples(examples, _names(columns))
    encoder = SentenceEncoder(model, layers=layers, threads=threads)
    made = LinearClassifier.from_descriptions(
        encoder.encode(labels, on_long="split"),
        names,
        fingerprint=encoder.fingerprint,
        examples=None if known is None else known.encode(encoder),
        example_labels=() if known is None else known.labels,
        unknown=unknown or 0.0,
    )
    _write_labels(made, encoder, source, unknown, output, as_json=as_json, force=force)
    if head is not None:
        made.save(head, force=force)
        typer.echo(f"{head}: {len(made.labels)} labels from descriptions and {made.examples:,} examples", err=True)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else options.split_names(text)


def _write_labels(
    head: "LinearClassifier",
    encoder: "SentenceEncoder",
    source: TextSource,
    unknown: float | None,
    output: Path | None,
    *,
    as_json: bool,
    force: bool,
) -> None:
    """Print or write id, label, probability and texts of every row of a source; raises DataError if it has none."""
    names = ("text_1", "text_2") if head.pairs else ("text",)
    columns = {"id": str, "label": str, "probability": float, **dict.fromkeys(names, str)}
    if source.id is None:
        del columns["id"]
    lines: Iterable[list[str]] = ([text] for text in source)
    if head.pairs:
        lines = read_pairs(source.path, source.column, source.id, "two texts")
    seen = output is not None or not sys.stdout.isatty()
    total = known_total(source) if seen and not head.pairs else None
    count = 0
    with (
        row_output(output, columns, as_json=as_json, force=force) as write,
        Progress("texts", total, enabled=None if seen else False) as progress,
    ):
        for texts, label, probability in progress.count(_label(head, encoder, lines, unknown)):
            count += 1
            name = [] if source.id is None else [place_of(texts[0], count)]
            write([*name, label or "unknown", probability, *texts])
        if not count:
            raise source.empty()


def _label(
    head: "LinearClassifier", encoder: "SentenceEncoder", lines: Iterable[list[str]], unknown: float | None
) -> Iterator[tuple[list[str], str | None, float | None]]:
    """Yield the texts of every line with their label and its probability, see `LinearClassifier.answers`."""
    import numpy as np

    shape = (-1, 2, encoder.dim) if head.pairs else (-1, encoder.dim)
    texts = ((line, text) for line in lines for text in line)
    stream = encoder.encode_items(texts, itemgetter(1), on_long="split")
    while block := list(islice(stream, _BLOCK)):
        rows = np.stack([vector for _, vector in block]).reshape(shape)
        kept = [line for (line, _), _ in block[:: 2 if head.pairs else 1]]
        answers = head.answers(rows, unknown=unknown, texts=[text for line in kept for text in line])
        yield from ((texts, label, probability) for texts, (label, probability) in zip(kept, answers, strict=True))


def _files(
    data: list[Path], train: list[str] | None, known: Collection[str]
) -> tuple[dict[str, Path], dict[str, Path]]:
    """Training files and test files by name: from a folder, or the first file and the others."""
    from xsent.evaluation.topics import TEST_FILES, TRAIN_FILES, topic_files

    if data[0].is_dir():
        if len(data) > 1:
            raise ValueError(f"{data[1]}: name nothing after a folder; --train chooses the languages to train in")
        trains, tests = (topic_files(data[0], names) for names in (TRAIN_FILES, TEST_FILES))
        return _choose(trains, train, known), _choose(tests, None, known)
    if len(data) == 1:
        raise ValueError(f"{data[0]}: expected a folder, or a training file and test files after it")
    if train:
        raise ValueError("--train names languages of a folder; these are files")
    return {str(data[0]): data[0]}, {str(path): path for path in data[1:]}


def _choose(files: dict[str, Path], wanted: list[str] | None, known: Collection[str]) -> dict[str, Path]:
    """The files of the languages asked for; by default of the model's languages, or all if it has none of them."""
    if not wanted:
        wanted = [name for name in files if name in known] or list(files)
    if missing := [name for name in wanted if name not in files]:
        raise ValueError(f"{missing[0]!r} is not a language of this folder, which has {', '.join(files)}")
    return {name: files[name] for name in wanted}
