"""`xsent mine` and `xsent score`: translations found in two texts, and scores of pairs that are given."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xsent.cli.options import BundleOption, LayersOption, MarginOption, NeighborsOption
from xsent.cli.terminal import one_line_errors, print_json, print_row
from xsent.errors import DataError, FingerprintError

if TYPE_CHECKING:
    from xsent.encoder import OnLong, SentenceEncoder
    from xsent.files.vectors import VectorFile, VectorMeta
    from xsent.similarity import Ints


JsonLinesOption = Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")]


@one_line_errors()
def mine(
    src: Annotated[
        str, typer.Argument(metavar="SRC", help="One sentence a line; .gz and .xz too; - reads standard input.")
    ],
    trg: Annotated[str, typer.Argument(metavar="TRG", help="The text in the other language.")],
    model: BundleOption = None,
    layers: LayersOption = None,
    src_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of SRC by xsent encode; default: they are made.")
    ] = None,
    trg_vectors: Annotated[Path | None, typer.Option(help="Vectors of TRG.")] = None,
    margin: MarginOption = "ratio",
    retrieval: Annotated[
        Literal["max", "fwd", "bwd", "intersect"],
        typer.Option(help="Best target of each source, the reverse, pairs in both, or of either while both are free."),
    ] = "max",
    k: NeighborsOption = 4,
    threshold: Annotated[float | None, typer.Option(help="Least score of a pair; default: all pairs.")] = None,
    unify: Annotated[bool, typer.Option(help="Let only the first of equal lines take part.")] = True,
    as_json: JsonLinesOption = False,
) -> None:
    """Find translations in two texts: score, source and target with tabs between, the best pair first.

    Empty lines take no part. A tab inside a sentence is printed as a space. To choose a threshold see xsent score.
    """
    from xsent.files.text import read_sentences
    from xsent.mining.bitext import mine_bitext

    if src == trg == "-":
        raise DataError("standard input can be read once: only one of SRC and TRG may be -")
    texts = (read_sentences(src), read_sentences(trg))
    with TemporaryDirectory(prefix="xsent-") as folder:
        left, right = vectors_of(Path(folder), texts, (src_vectors, trg_vectors), model, layers)
        pairs = mine_bitext(
            left.rows,
            right.rows,
            margin=margin,
            retrieval=retrieval,
            k=k,
            src_rows=taking_part(texts[0], unify=unify),
            trg_rows=taking_part(texts[1], unify=unify),
            show_progress_bar=sys.stderr.isatty(),
        )
    kept = pairs if threshold is None else pairs.at_least(threshold)
    if not len(kept):
        best = f"; the best scores {pairs.scores[0]}, below the threshold" if len(pairs) else ""
        raise DataError(f"no pairs of {src} and {trg}{best}")
    for number, (i, j) in enumerate(zip(kept.src.tolist(), kept.trg.tolist(), strict=True)):
        lines = {"source_line": i + 1, "target_line": j + 1}
        print_pair(kept.scores[number], texts[0][i], texts[1][j], lines if as_json else None)
    typer.echo(f"{len(kept):,} pairs of {len(texts[0]):,} source and {len(texts[1]):,} target lines", err=True)


@one_line_errors()
def score(
    pairs: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Source, tab, target on each line; - reads standard input.")
    ] = "-",
    model: BundleOption = None,
    layers: LayersOption = None,
    margin: MarginOption = "ratio",
    k: NeighborsOption = 4,
    precision: Annotated[
        float | None, typer.Option(help="Say which threshold keeps this share of pairs right, such as 0.95.")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Score given pairs: score, source and target with tabs between, in the order given.

    Neighbours are looked for among the sentences of the file: a margin needs a file of some length; absolute, the
    cosine, does not. --precision takes shuffled pairs as examples of wrong ones; pairs that are wrong but close score
    higher than those, so look at some that are just above the threshold.
    """
    import numpy as np

    from xsent.files.text import read_fields
    from xsent.mining.margin import PairScorer, calibrate, shuffled_pairs

    given = list(read_fields(pairs, 2, "source, target"))
    if not given:
        raise DataError(f"{pairs}: empty; expected a pair a line")
    (src_texts, src_rows), (trg_texts, trg_rows) = (_distinct([pair[side] for pair in given]) for side in (0, 1))
    with TemporaryDirectory(prefix="xsent-") as folder:
        left, right = vectors_of(Path(folder), (src_texts, trg_texts), (None, None), model, layers)
        scorer = PairScorer(left.rows, right.rows, margin=margin, k=k)
        scores = scorer.score(src_rows, trg_rows)
        advice = None
        if precision is not None:
            full = [row for row, pair in enumerate(given) if all(map(str.strip, pair))]
            src_rows, trg_rows = src_rows[full], trg_rows[full]
            wrong = scorer.score(*shuffled_pairs(src_rows, trg_rows))
            advice = calibrate(scorer.score(src_rows, trg_rows), wrong, precision)
    for value, (source, target) in zip(scores, given, strict=True):
        print_pair(value, source, target, {} if as_json else None)
    if advice is not None:
        reach = f"{advice.accepted:,} of {advice.pairs:,} pairs reach it"
        correct = f"an estimated {100 * advice.precision:.1f}% of them right"
        typer.echo(f"threshold {np.float32(advice.threshold)!s}: {reach}, {correct}", err=True)


def taking_part(texts: Sequence[str], *, unify: bool) -> list[int]:
    """Numbers of the lines that are not empty, of equal lines the first."""
    first: dict[str, int] = {}
    return [row for row, text in enumerate(texts) if text.strip() and (first.setdefault(text, row) == row or not unify)]


def _distinct(texts: Sequence[str]) -> "tuple[list[str], Ints]":
    """Every text once, and for each of those given the number of its like."""
    import numpy as np

    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(rows, np.int64)


def vectors_of(
    folder: Path,
    texts: Sequence[Sequence[str]],
    given: Sequence[Path | None],
    model: Path | None,
    layers: int | None,
    *,
    on_long: "OnLong" = "warn",
) -> "list[VectorFile]":
    """The vectors of each text, those that are not given encoded into a folder in the form of those that are."""
    from xsent.bundle import same_space
    from xsent.encoder import SentenceEncoder
    from xsent.files.vectors import VectorMeta, check_same_space, open_vectors

    files = {side: open_vectors(path) for side, path in enumerate(given) if path is not None}
    for side, file in files.items():  # before the other side is encoded
        if file.note.precision == "binary":
            raise DataError(f"{file.path}: binary vectors have no cosines; encode as float32, float16 or int8")
        if len(file.rows) != len(texts[side]):
            lines = f"{len(texts[side]):,} lines of text"
            raise DataError(f"{file.path}: {len(file.rows):,} vectors for {lines}; encode it again")
    if len(files) < len(texts):
        encoder = SentenceEncoder(model, layers=layers)
        note = VectorMeta(encoder.fingerprint, encoder.dim, "float32", normalized=True)
        for file in files.values():  # the vectors that are made get the form of those that there are
            note = replace(file.note, fingerprint=encoder.fingerprint)
            if not same_space(file.note.fingerprint, encoder.fingerprint):
                raise FingerprintError(
                    f"{file.path} has vectors of {file.note.fingerprint}, the model makes {encoder.fingerprint}; "
                    "--model names the one that made them"
                )
        for side in set(range(len(texts))) - files.keys():
            files[side] = _encode(encoder, texts[side], note, folder / f"{side}.npy", on_long)
    for file in files.values():
        check_same_space(files[0], file)
    return [files[side] for side in range(len(texts))]


def _encode(
    encoder: "SentenceEncoder", texts: Sequence[str], note: "VectorMeta", path: Path, on_long: "OnLong"
) -> "VectorFile":
    """Vectors on the disk: those of a large text do not fit into memory."""
    from xsent.cli.terminal import Progress
    from xsent.files.vectors import open_vectors, vector_file

    vectors = encoder.encode_iter(
        texts,
        normalize_embeddings=note.normalized,
        truncate_dim=note.dim,
        precision=note.precision,  # type: ignore[arg-type]  # a name that encode wrote
        on_long=on_long,
    )
    with vector_file(path, note) as writer, Progress("sentences", len(texts)) as progress:
        for vector, text in zip(vectors, texts, strict=True):  # vectors first: they warn when they reach their end
            writer.write(text, vector)
            progress.advance()
    return open_vectors(path)


def print_pair(score: float, source: str, target: str, more: dict[str, object] | None) -> None:
    """One pair on standard output: as JSON, with more fields, or in columns."""
    if more is None:
        print_row(str(score), source.replace("\t", " "), target.replace("\t", " "))
    else:
        print_json({"score": float(score), "source": source, "target": target, **more})
