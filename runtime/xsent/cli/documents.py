"""`xsent documents`: document vectors that do not depend on the language, and aligned documents."""

import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from xsent.cli import options
from xsent.cli.program import App
from xsent.cli.rows import row_output
from xsent.cli.terminal import print_result
from xsent.errors import DataError, counted, find_extra
from xsent.files.atomic import check_output

if TYPE_CHECKING:
    from xsent.documents.encoder import DocumentEncoder

app = App(
    help="Encode and align documents across languages (LAWDR).",
    epilog="Example: xsent documents align news.en news.fr --languages en,fr",
    no_args_is_help=True,
)

_LAYOUT = "A file with one document per line, or a folder with one .txt file per document."
RankOption = Annotated[
    int | None,
    typer.Option(
        min=0, help="Directions to remove for each language; default: as few as hide languages from a classifier."
    ),
]
WeightsOption = Annotated[
    bool, typer.Option("--weights", help="Weight sentences by how rare they are, for documents that share boilerplate.")
]

Corpus = dict[str, str]  # documents by name


@app.command(
    short_help="Fit what embed needs.",
    epilog="Example: xsent documents fit en=news.en fr=news.fr --output news-space",
)
def fit(
    sources: Annotated[list[str], typer.Argument(metavar="LANGUAGE=DOCUMENTS", help=_LAYOUT)],
    output: Annotated[Path, typer.Option("--output", "-o", help="A new folder.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    rank: RankOption = None,
    weights: WeightsOption = False,
    as_json: options.JsonOption = False,
) -> None:
    """Fit the language subspaces and sentence weights that embed needs; print what was found."""
    check_output(output, advice="exists; choose another name or remove it")
    corpora = {}
    for language, equals, source in (text.partition("=") for text in sources):
        if not (language and equals and source) or language in corpora:
            raise ValueError(f"{language}{equals}{source}: expected LANGUAGE=DOCUMENTS, each language once")
        corpora[language] = _read_corpus(source)
    encoder = _fitted_encoder(model, layers, threads, corpora, rank, weights)
    encoder.save(output)
    choice = encoder.space.choice
    percentages = [round(100 * accuracy, 1) for accuracy in choice.accuracies]
    facts = {"languages": list(encoder.languages), "rank": choice.rank, "fingerprint": encoder.fingerprint}
    how = (
        f": a classifier recognised the language of {percentages[0]} % before, of {percentages[-1]} % after"
        if percentages
        else ""
    )
    text = f"{', '.join(encoder.languages)}: removes {choice.rank} of {encoder.dim} directions{how}"
    print_result({**facts, "accuracies": percentages}, text, as_json=as_json)


@app.command(
    short_help="Encode documents of one language.",
    epilog="Example: xsent documents embed news.fr --language fr --fitted news-space --output news.fr.npy",
)
def embed(
    source: Annotated[str, typer.Argument(metavar="DOCUMENTS", help=f"{_LAYOUT} - reads standard input.")],
    language: Annotated[str, typer.Option(metavar="CODE", help="Code of their language.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A new file, see xsent encode; .jsonl has names of documents.")
    ],
    fitted: Annotated[Path, typer.Option(help="A folder from xsent documents fit.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
) -> None:
    """Encode documents of one language; an empty one becomes the zero vector."""
    from xsent.documents.encoder import DocumentEncoder
    from xsent.encoder import SentenceEncoder
    from xsent.files.row_writers import check_format
    from xsent.files.vectors import VectorMeta, vector_file

    check_format(output.name, "float32")
    check_output(output, force=force)
    corpus = _read_corpus(source)
    encoder = DocumentEncoder.load(fitted, SentenceEncoder(model, layers=layers, threads=threads))
    note = VectorMeta(encoder.fingerprint, encoder.dim, "float32", normalized=True)
    with vector_file(output, note, force=force) as writer:
        vectors = encoder.encode(list(corpus.values()), language, show_progress_bar=None)
        for name, vector in zip(corpus, vectors, strict=True):
            writer.write(name, vector)
    if empty := int((~vectors.any(axis=1)).sum()):
        warnings.warn(f"{empty:,} of {len(vectors):,} documents are empty; their vectors are zero", stacklevel=1)
    typer.echo(f"{output}: {counted(len(vectors), 'vector')} of {encoder.dim} numbers", err=True)


@app.command(
    short_help="Find documents that are translations.",
    epilog="Example: xsent documents align news.en news.fr --languages en,fr",
)
def align(
    a: Annotated[str, typer.Argument(help=_LAYOUT)],
    b: Annotated[str, typer.Argument(help="The same in another language.")],
    languages: Annotated[str, typer.Option(metavar="CODE,CODE", help="Comma-separated codes of the two languages.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    threads: options.ThreadsOption = None,
    rank: RankOption = None,
    weights: WeightsOption = False,
    margin: options.MarginOption = "ratio",
    k: options.NeighborsOption = 4,
    output: options.RowsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Find documents that are translations: score and names, one to one, the best pair first.

    The name of a document is its file's name without .txt, or its number in a file, from 1. Empty documents are
    skipped.
    """
    from xsent.mining.bitext import align_documents

    codes = options.split_names(languages)
    if len(codes) != 2 or codes[0] == codes[1]:
        raise ValueError(f"--languages {languages}: expected two different comma-separated codes, such as en,fr")
    output_rows = row_output(output, {"score": float, "a": str, "b": str}, as_json=as_json, force=force)
    corpora = {code: _read_corpus(source) for code, source in zip(codes, (a, b), strict=True)}
    encoder = _fitted_encoder(model, layers, threads, corpora, rank, weights)
    left, right = (encoder.encode(list(corpora[code].values()), code) for code in codes)
    pairs = align_documents(left, right, margin=margin, k=k)
    left_names, right_names = (list(corpora[code]) for code in codes)
    with output_rows as write:
        for pair in pairs:
            write([pair.score, left_names[pair.a], right_names[pair.b]])


def _fitted_encoder(
    model: Path | None,
    layers: int | None,
    threads: int | None,
    corpora: Mapping[str, Corpus],
    rank: int | None,
    weights: bool,
) -> "DocumentEncoder":
    """An encoder that is fitted on the documents."""
    from xsent.documents.encoder import DocumentEncoder
    from xsent.encoder import SentenceEncoder

    encoder = DocumentEncoder(SentenceEncoder(model, layers=layers, threads=threads), weighted=weights)
    documents = {code: list(corpus.values()) for code, corpus in corpora.items()}
    return encoder.fit(documents, rank=rank, show_progress_bar=None)


def _read_corpus(source: str) -> Corpus:
    """Documents of a folder by the names of the files, or of a file by their numbers from 1."""
    from xsent.files.text import read_lines, source_name

    find_extra("documents", "sentencex")
    folder = Path(source)
    if source != "-" and folder.is_dir():
        corpus = {_name_of(file): "\n".join(read_lines(file)) for file in sorted(folder.glob("*.txt"))}
    else:
        corpus = {str(number): document for number, document in enumerate(read_lines(source), 1)}
    if not corpus:
        expected = "a file with one document per line, or a folder with one .txt file per document"
        raise DataError(f"{source_name(source)}: no documents; expected {expected}")
    return corpus


def _name_of(file: Path) -> str:
    """The name of a document; that of a file may be in another encoding than UTF-8."""
    return os.fsencode(file.stem).decode(errors="backslashreplace")
