"""`xsent mine`, `xsent score` and `xsent duplicates`: pairs of lines that mean the same, found or given."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from xsent.cli.options import BundleOption, CleanOption, LayersOption, MarginOption, NeighborsOption
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
    clean: CleanOption = False,
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
    threshold: Annotated[float | None, typer.Option(help="Lowest score of a pair; default: all pairs.")] = None,
    unify: Annotated[bool, typer.Option(help="Use only the first of equal lines.")] = True,
    as_json: JsonLinesOption = False,
) -> None:
    """Find translations in two texts: score, source and target with tabs between, the best pair first.

    Empty lines are left out. A tab inside a sentence is printed as a space. To choose a threshold see xsent score.
    """
    from xsent.files.text import read_sentences
    from xsent.mining.bitext import mine_bitext

    if src == trg == "-":
        raise DataError("standard input can be read once: only one of SRC and TRG may be -")
    texts = (read_sentences(src), read_sentences(trg))
    with TemporaryDirectory(prefix="xsent-") as folder:
        left, right = _vectors_of(Path(folder), texts, (src_vectors, trg_vectors), model, layers, clean)
        pairs = mine_bitext(
            left.rows,
            right.rows,
            margin=margin,
            retrieval=retrieval,
            k=k,
            src_rows=_lines_with_text(texts[0], unify=unify),
            trg_rows=_lines_with_text(texts[1], unify=unify),
            show_progress_bar=sys.stderr.isatty(),
        )
    kept = pairs if threshold is None else pairs.at_least(threshold)
    if not len(kept):
        best = f"; the best scores {pairs.scores[0]}, below the threshold" if len(pairs) else ""
        raise DataError(f"no pairs of {src} and {trg}{best}")
    for score, i, j in zip(kept.scores, kept.src.tolist(), kept.trg.tolist(), strict=True):
        _print_pair(score, texts[0][i], texts[1][j], {"source_line": i + 1, "target_line": j + 1}, as_json)
    typer.echo(f"{len(kept):,} pairs of {len(texts[0]):,} source and {len(texts[1]):,} target lines", err=True)


@one_line_errors()
def score(
    pairs: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Source, tab, target on each line; - reads standard input.")
    ] = "-",
    model: BundleOption = None,
    layers: LayersOption = None,
    clean: CleanOption = False,
    margin: MarginOption = "ratio",
    k: NeighborsOption = 4,
    precision: Annotated[
        float | None, typer.Option(help="Print the threshold that keeps this share of pairs right, such as 0.95.")
    ] = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Score given pairs: score, source and target with tabs between, in the order given.

    Neighbours are searched among the sentences of the file, so a margin needs a file of some length; absolute, the
    cosine, does not. --precision uses shuffled pairs as examples of wrong ones. Wrong pairs of similar sentences score
    higher than those: read some pairs that are just above the threshold.
    """
    import numpy as np

    from xsent.files.text import read_fields
    from xsent.mining.margin import PairScorer, calibrate, shuffled_pairs

    given = list(read_fields(pairs, 2, "source, target"))
    if not given:
        raise DataError(f"{pairs}: empty; expected a pair a line")
    (src_texts, src_rows), (trg_texts, trg_rows) = (_distinct([pair[side] for pair in given]) for side in (0, 1))
    with TemporaryDirectory(prefix="xsent-") as folder:
        left, right = _vectors_of(Path(folder), (src_texts, trg_texts), (None, None), model, layers, clean)
        scorer = PairScorer(left.rows, right.rows, margin=margin, k=k)
        scores = scorer.score(src_rows, trg_rows)
        advice = None
        if precision is not None:
            full = [row for row, pair in enumerate(given) if all(map(str.strip, pair))]
            wrong = scorer.score(*shuffled_pairs(src_rows[full], trg_rows[full]))
            advice = calibrate(scores[full], wrong, precision)
    for value, (source, target) in zip(scores, given, strict=True):
        _print_pair(value, source, target, {}, as_json)
    if advice is not None:
        reach = f"{advice.accepted:,} of {advice.pairs:,} pairs reach it"
        correct = f"an estimated {100 * advice.precision:.1f}% of them right"
        typer.echo(f"threshold {np.float32(advice.threshold)!s}: {reach}, {correct}", err=True)


@one_line_errors()
def duplicates(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="One text a line; .gz and .xz too; - reads standard input.")
    ],
    model: BundleOption = None,
    layers: LayersOption = None,
    clean: CleanOption = False,
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of TEXT by xsent encode; default: they are made.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0.8, max=1.33, help="Lowest score of a pair: its cosine over that to other near lines.")
    ] = 1.25,
    strict: Annotated[
        bool, typer.Option(help="Keep apart lines that differ in a number, a negation or who did what.")
    ] = True,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Print score, both lines and texts of pairs, best first; each with 32 others at most."
        ),
    ] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Find lines that mean the same, in any of the model's languages: number of the group, line and text.

    Groups are connected pairs, the largest first. A cosine below 0.6 times the threshold is never enough, one above
    0.75 times it always is; between them, the two lines must be nearer to each other than to other lines. Lines that
    differ only in a name are duplicates too. Empty lines are left out.
    """
    from xsent.files.text import read_sentences
    from xsent.mining.paraphrases import group_pairs, mine_paraphrases, split_pairs

    texts = read_sentences(text)
    with TemporaryDirectory(prefix="xsent-") as folder:
        (given,) = _vectors_of(Path(folder), [texts], [vectors], model, layers, clean, on_long="split")
        rows = _lines_with_text(texts, unify=False)
        found = mine_paraphrases(given.rows, threshold=threshold, rows=rows, show_progress_bar=sys.stderr.isatty())
    found, differing = split_pairs(found, texts) if strict else (found, found.take(slice(0)))
    count = "1 pair differs" if len(differing) == 1 else f"{len(differing):,} pairs differ"
    apart = f"; {count} in a number, a negation or who did what; --no-strict takes them too" if len(differing) else ""
    if not len(found):
        raise DataError(f"no duplicates in {text}: no pair reaches the threshold {threshold}{apart}")
    places, rivals = (list(zip(side.src.tolist(), side.trg.tolist(), strict=True)) for side in (found, differing))
    groups = group_pairs(places, rivals)
    if pairs:
        for score, (i, j) in zip(found.scores, places, strict=True):
            if as_json:
                print_json({"score": float(score), "lines": [i + 1, j + 1], "texts": [texts[i], texts[j]]})
            else:
                print_row(f"{score:.4f}", str(i + 1), str(j + 1), texts[i], texts[j])
    for number, group in enumerate([] if pairs else groups, 1):
        if as_json:
            print_json({"group": number, "lines": [row + 1 for row in group], "texts": [texts[row] for row in group]})
        else:
            for row in group:
                print_row(str(number), str(row + 1), texts[row])
    extra = sum(map(len, groups)) - len(groups)
    typer.echo(
        f"{len(groups):,} group{'s' * (len(groups) != 1)}; {extra:,} of {len(texts):,} lines repeat another{apart}",
        err=True,
    )


def _print_pair(score: float, source: str, target: str, lines: dict[str, int], as_json: bool) -> None:
    if as_json:
        print_json({"score": float(score), "source": source, "target": target, **lines})
    else:
        print_row(str(score), source.replace("\t", " "), target.replace("\t", " "))


def _lines_with_text(texts: Sequence[str], *, unify: bool) -> list[int]:
    """Numbers of the lines that are not empty; `unify` leaves out lines that equal an earlier one."""
    first: dict[str, int] = {}
    return [row for row, text in enumerate(texts) if text.strip() and (first.setdefault(text, row) == row or not unify)]


def _distinct(texts: Sequence[str]) -> "tuple[list[str], Ints]":
    """The different texts, and for each of those given the number of its text."""
    import numpy as np

    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(rows, np.int64)


def _vectors_of(
    folder: Path,
    texts: Sequence[Sequence[str]],
    given: Sequence[Path | None],
    model: Path | None,
    layers: int | None,
    clean: bool,
    *,
    on_long: "OnLong" = "warn",
) -> "list[VectorFile]":
    """The vectors of each text; those that are not given are encoded into a folder, in the form of those given."""
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
        encoder = SentenceEncoder(model, layers=layers, clean=clean)
        note = VectorMeta(encoder.fingerprint, encoder.dim, "float32", normalized=True)
        for file in files.values():
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
    """Encode to a file: the vectors of a large text do not fit into memory."""
    from xsent.cli.terminal import Progress
    from xsent.files.vectors import open_vectors, vector_file

    vectors = encoder.encode_items(
        texts,
        normalize_embeddings=note.normalized,
        truncate_dim=note.dim,
        precision=note.precision,  # type: ignore[arg-type]  # a name that encode wrote
        on_long=on_long,
    )
    with vector_file(path, note) as writer, Progress("sentences", len(texts)) as progress:
        for text, vector in progress.count(vectors):
            writer.write(text, vector)
    return open_vectors(path)
