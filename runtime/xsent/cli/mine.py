"""Lines that belong together, found or given.

`xsent mine`, `xsent score` and `xsent duplicates`: pairs that mean the same; `xsent cluster`: groups on one subject.
"""

from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from xsent.cli import options
from xsent.cli.rows import asks_json, row_output
from xsent.cli.terminal import format_table, plain
from xsent.errors import DataError, counted, find_extra
from xsent.files.tables import TextSource, place_of, read_pairs
from xsent.files.text import source_name
from xsent.progress import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from xsent.encode_options import OnLong
    from xsent.similarity import Ints

_CENTRAL = 80  # most characters shown of a cluster's central text


def mine(
    src: Annotated[str, typer.Argument(metavar="SRC", help=options.LINES)],
    trg: Annotated[str, typer.Argument(metavar="TRG", help="The text in the other language.")],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    src_vectors: Annotated[
        Path | None, typer.Option(help="Vectors of SRC from xsent encode; default: encode SRC.")
    ] = None,
    trg_vectors: Annotated[Path | None, typer.Option(help="Vectors of TRG.")] = None,
    margin: options.MarginOption = "ratio",
    retrieval: Annotated[
        Literal["max", "fwd", "bwd", "intersect"],
        typer.Option(
            help="max: best pairs of either direction, each line once; fwd: best target of each source; bwd: the "
            "reverse; intersect: pairs in both directions."
        ),
    ] = "max",
    k: options.NeighborsOption = 4,
    threshold: Annotated[float | None, typer.Option(help="Lowest score of a pair; default: all pairs.")] = None,
    unify: Annotated[bool, typer.Option(help="Use repeated lines only once.")] = True,
    strict: Annotated[
        bool,
        typer.Option(help="Skip pairs that differ in numbers or opposites, and a line's copy if it has a translation."),
    ] = True,
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Find translations in two texts: score, source and target, the best pair first.

    Lines without words, such as "..." or "N/A", are skipped. To choose a threshold, see xsent score. If the columns of
    two tables differ, name both: --column en,fr. With --id the ids of source and target come last.
    """
    from xsent.mining.bitext import mine_bitext

    if src == trg == "-":
        raise DataError("standard input can be read once: only one of SRC and TRG may be -")
    kind = int if id is None else str
    columns = {"score": float, "source": str, "target": str}
    if id is not None or asks_json(output, as_json):
        name = "line" if id is None else "id"
        columns |= {f"source_{name}": kind, f"target_{name}": kind}
    output_rows = row_output(output, columns, as_json=as_json, force=force)
    sides = zip((src, trg), _of_both(column), _of_both(id), strict=True)
    texts = [TextSource(*side).read() for side in sides]
    left, right = vectors_of(texts, (src_vectors, trg_vectors), model, layers, threads)
    pairs = mine_bitext(
        left,
        right,
        margin=margin,
        retrieval=retrieval,
        k=k,
        src_rows=_lines_with_words(texts[0], unify=unify),
        trg_rows=_lines_with_words(texts[1], unify=unify),
        texts=(texts[0], texts[1]) if strict else None,
        show_progress_bar=None,
    )
    kept = pairs if threshold is None else pairs.at_least(threshold)
    if not len(kept):
        best = f"; the best scores {pairs.scores[0]}, below the threshold" if len(pairs) else ""
        raise DataError(f"no pairs of {src} and {trg}{best}")
    with output_rows as write:
        for score, i, j in zip(kept.scores, kept.src.tolist(), kept.trg.tolist(), strict=True):
            source, target = texts[0][i], texts[1][j]
            row = [score, source, target, place_of(source, i + 1), place_of(target, j + 1)]
            write(row[: len(columns)])
    typer.echo(f"{counted(len(kept), 'pair')} of {len(texts[0]):,} source and {len(texts[1]):,} target lines", err=True)


def score(
    pairs: Annotated[
        str, typer.Argument(metavar="PAIRS", help="Source, tab, target on each line; - reads standard input.")
    ] = "-",
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    margin: options.MarginOption = "ratio",
    k: options.NeighborsOption = 4,
    precision: Annotated[
        float | None, typer.Option(help="Print the threshold that keeps this share of pairs right, such as 0.95.")
    ] = None,
    column: options.PairColumnsOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Score given pairs: score, source and target, in the order given; with --id the id is last.

    Neighbours are searched among the sentences of the file, so a margin needs a file of some length; absolute, the
    cosine, does not. --precision uses shuffled pairs as examples of wrong ones. Wrong pairs of similar sentences score
    higher than those: read some pairs that are just above the threshold.
    """
    import numpy as np

    from xsent.mining.margin import PairScorer, calibrate, shuffled_pairs

    columns = {"score": float, "source": str, "target": str} | ({} if id is None else {"id": str})
    output_rows = row_output(output, columns, as_json=as_json, force=force)
    given = list(read_pairs(pairs, column, id, "source, target"))
    if not given:
        raise DataError(f"{source_name(pairs)}: empty; expected one pair per line")
    (src_texts, src_rows), (trg_texts, trg_rows) = (_distinct([pair[side] for pair in given]) for side in (0, 1))
    left, right = vectors_of((src_texts, trg_texts), (None, None), model, layers, threads)
    scorer = PairScorer(left, right, margin=margin, k=k)
    scores = scorer.score(src_rows, trg_rows)
    advice = None
    if precision is not None:
        full = [row for row, pair in enumerate(given) if all(map(str.strip, pair))]
        wrong = scorer.score(*shuffled_pairs(src_rows[full], trg_rows[full]))
        advice = calibrate(scores[full], wrong, precision)
    with output_rows as write:
        for value, (source, target) in zip(scores, given, strict=True):
            write([value, source, target, place_of(source, 0)][: len(columns)])
    if advice is not None:
        reach = f"{advice.accepted:,} of {advice.pairs:,} pairs reach it"
        correct = f"an estimated {100 * advice.precision:.1f}% of them right, judged by shuffled pairs"
        typer.echo(f"threshold {np.float32(advice.threshold)!s}: {reach}, {correct}", err=True)


def duplicates(
    text: Annotated[str, typer.Argument(metavar="TEXT", help=options.LINES)],
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    vectors: options.VectorsOption = None,
    threshold: Annotated[
        float, typer.Option(min=0.8, max=1.33, help="Lowest score of a pair: its cosine over that to other near lines.")
    ] = 1.25,
    strict: Annotated[
        bool, typer.Option(help="Keep apart lines that differ in a number, a negation, an opposite or who did what.")
    ] = True,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Print score, both lines and texts of pairs, best first; each with 32 others at most."
        ),
    ] = False,
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Find lines that mean the same, in any of the model's languages: number of the group, line or id, and text.

    Groups are connected pairs, the largest first. Pairs with a cosine below 0.6 times the threshold never count, and
    pairs above 0.75 times it always do; between them, the two lines must be nearer to each other than to others. Lines
    that differ only in a name are duplicates too. Lines without words, such as "..." or "N/A", are skipped.
    """
    from xsent.mining.paraphrases import group_pairs, mine_paraphrases, split_pairs

    name, kind = ("line", int) if id is None else ("id", str)
    columns: dict[str, type] = {"group": int, name: kind, "text": str}
    if pairs:
        columns = {"score": float, f"{name}_1": kind, f"{name}_2": kind, "text_1": str, "text_2": str}
    output_rows = row_output(output, columns, as_json=as_json, force=force)
    source = TextSource(text, column, id)
    texts = source.read()
    (read,) = vectors_of([texts], [vectors], model, layers, threads, on_long="split")
    rows = _lines_with_words(texts, unify=False)
    found = mine_paraphrases(read, threshold=threshold, rows=rows, show_progress_bar=None)
    found, differing = split_pairs(found, texts) if strict else (found, found.take(slice(0)))
    differ = f"{counted(len(differing), 'pair')} differ{'s' * (len(differing) == 1)}"
    apart = (
        f"; {differ} in a number, a negation, an opposite or who did what; --no-strict takes them too"
        if len(differing)
        else ""
    )
    if not len(found):
        raise DataError(f"no duplicates in {text}: no pair reaches the threshold {threshold}{apart}")
    places, rivals = (list(zip(side.src.tolist(), side.trg.tolist(), strict=True)) for side in (found, differing))
    groups = group_pairs(places, rivals)
    names = [place_of(line, row + 1) for row, line in enumerate(texts)]
    with output_rows as write:
        for value, (i, j) in zip(found.scores.tolist(), places, strict=True) if pairs else ():
            write([value, names[i], names[j], texts[i], texts[j]])
        for number, group in () if pairs else enumerate(groups, 1):
            for row in group:
                write([number, names[row], texts[row]])
    extra = sum(map(len, groups)) - len(groups)
    repeated = f"{extra:,} of {len(texts):,} {source.unit} repeat another"
    typer.echo(f"{counted(len(groups), 'group')}; {repeated}{apart}", err=True)


def cluster(
    texts: Annotated[str, typer.Argument(metavar="TEXTS", help=options.LINES)] = "-",
    column: options.ColumnOption = None,
    id: options.IdOption = None,
    output: options.RowsOption = None,
    number: Annotated[
        int | None, typer.Option(min=1, help="Number of clusters; default: as many as there are.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=-1, max=1, help="How near clusters must be to become one: less makes fewer clusters.")
    ] = 0.05,
    smallest: Annotated[int, typer.Option(min=1, help="Texts of the smallest cluster.")] = 5,
    model: options.BundleOption = None,
    layers: options.LayersOption = None,
    vectors: options.VectorsOption = None,
    threads: options.ThreadsOption = None,
    force: options.ForceOption = False,
    as_json: options.JsonLinesOption = False,
) -> None:
    """Group texts by their subjects, in any of the model's languages: cluster, its name, line or id, and text.

    Rows keep the order of the texts. A text in no cluster has no number and no name. The list of all clusters, with
    the text nearest to the centre of each, goes to standard error.
    """
    from xsent.mining import clusters
    from xsent.mining.boilerplate import strip_boilerplate
    from xsent.mining.names import name_clusters

    find_extra("cluster", "scipy", "sklearn")
    place, kind = ("line", int) if id is None else ("id", str)
    columns = {"cluster": int, "name": str, place: kind, "text": str}
    output_rows = row_output(output, columns, as_json=as_json, force=force)
    read = TextSource(texts, column, id).read()
    (rows,) = vectors_of([strip_boilerplate(read)], [vectors], model, layers, threads, on_long="split")
    found = clusters.cluster(rows, number, texts=read, threshold=threshold, smallest=smallest)
    names = name_clusters(found, read)
    with output_rows as write:
        for row, (label, text) in enumerate(zip(found.labels.tolist(), read, strict=True)):
            found_in = (None, None) if label < 0 else (label + 1, str(names[label]))
            write([*found_in, place_of(text, row + 1), text])
    listed = []
    for row, name in enumerate(names, 1):
        central = _beginning(read[name.central])
        listed.append({"cluster": row, "texts": name.size, "name": str(name), "central text": central})
    if listed:
        typer.echo(format_table(listed), err=True)
    none = len(read) - sum(name.size for name in names)
    belong = f"{none:,} belong{'s' * (none == 1)} to none"
    if not names and number is None:
        belong += f"; lower --smallest (now {smallest}) or --threshold (now {threshold:g})"
    typer.echo(f"{counted(len(names), 'cluster')} of {counted(len(read), 'text')}; {belong}", err=True)


def _of_both(name: str | None) -> list[str | None]:
    """A column for both sides, or one for each, comma-separated."""
    names = (name or "").split(",")
    return [*names] if len(names) == 2 else [name, name]


def _lines_with_words(texts: Sequence[str], *, unify: bool) -> list[int]:
    """Numbers of the lines that have words; `unify` skips lines that equal an earlier one."""
    from xsent.words import has_words

    first: dict[str, int] = {}
    kept = (row for row, text in enumerate(texts) if first.setdefault(text, row) == row or not unify)
    return [row for row in kept if has_words(texts[row])]


def _distinct(texts: Sequence[str]) -> "tuple[list[str], Ints]":
    """The different texts, and for each of those given the number of its text."""
    import numpy as np

    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(text, len(numbers)) for text in texts]
    return list(numbers), np.array(rows, np.int64)


def vectors_of(
    texts: Sequence[Sequence[str]],
    given: Sequence[Path | None],
    model: Path | None,
    layers: int | None,
    threads: int | None,
    *,
    on_long: "OnLong" = "warn",
) -> "list[NDArray[Any]]":
    """The vectors [n, D] of each text; those that are not given are encoded, in the form of those given."""
    from xsent.encoder import SentenceEncoder
    from xsent.files.vectors import VectorMeta, check_same_space, map_rows, open_vectors

    files = {side: open_vectors(path) for side, path in enumerate(given) if path is not None}
    for side, file in files.items():  # before the other side is encoded
        file.check_cosines()
        check_same_space(next(iter(files.values())), file)
        if len(file.rows) != len(texts[side]):
            lines = f"{len(texts[side]):,} lines of text"
            raise DataError(f"{file.path}: {len(file.rows):,} vectors for {lines}; encode it again")
    found = {side: file.rows for side, file in files.items()}
    if len(files) < len(texts):
        encoder = SentenceEncoder(model, layers=layers, threads=threads)
        note = VectorMeta(encoder.fingerprint, encoder.dim, "float32", normalized=True)
        for file in files.values():
            file.check_cosines(encoder.fingerprint)
            note = file.note
        for side in set(range(len(texts))) - files.keys():
            vectors = encoder.encode_iter(
                texts[side],
                normalize_embeddings=note.normalized,
                truncate_dim=note.dim,
                precision=note.precision,  # type: ignore[arg-type]  # a name that encode wrote
                on_long=on_long,
            )
            with Progress("sentences", len(texts[side])) as progress:
                found[side] = map_rows(progress.count(vectors), note)
    return [found[side] for side in range(len(texts))]


def _beginning(text: str) -> str:
    """The first words of a text; its first characters if no spaces separate words."""
    short = shorten(text, _CENTRAL, placeholder="…")
    return short if short != "…" else f"{plain(text)[: _CENTRAL - 1]}…"
