"""`xsent duplicates`: lines of one text that mean the same."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from xsent.cli.mine import JsonLinesOption, taking_part, vectors_of
from xsent.cli.options import BundleOption, LayersOption
from xsent.cli.terminal import one_line_errors, print_json, print_row
from xsent.errors import DataError


@one_line_errors()
def duplicates(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="One text a line; .gz and .xz too; - reads standard input.")
    ],
    model: BundleOption = None,
    layers: LayersOption = None,
    vectors: Annotated[
        Path | None, typer.Option(help="Vectors of TEXT by xsent encode; default: they are made.")
    ] = None,
    threshold: Annotated[
        float, typer.Option(min=0.8, max=1.33, help="Least score of a pair: its cosine over that of what else is near.")
    ] = 1.25,
    pairs: Annotated[
        bool,
        typer.Option(
            "--pairs", help="Print score, both lines and texts of pairs, best first; each with 32 others at most."
        ),
    ] = False,
    as_json: JsonLinesOption = False,
) -> None:
    """Find lines that mean the same, in any of the model's languages: number of the group, line and text.

    Groups are what pairs connect, the largest first. A cosine below 0.6 times the threshold is never enough, one above
    0.75 times it always is; in between, the two must be nearer to each other than to what is around them. So lines that
    differ in a number or a name alone repeat each other too. Empty lines take no part.
    """
    from xsent.files.text import read_sentences
    from xsent.mining.paraphrases import group_pairs, mine_paraphrases

    texts = read_sentences(text)
    with TemporaryDirectory(prefix="xsent-") as folder:
        (given,) = vectors_of(Path(folder), [texts], [vectors], model, layers, on_long="split")
        with_text = taking_part(texts, unify=False)
        found = mine_paraphrases(given.rows, threshold=threshold, rows=with_text, show_progress_bar=sys.stderr.isatty())
    if not len(found):
        raise DataError(f"no duplicates in {text}: no pair reaches the threshold {threshold}")
    places = list(zip(found.src.tolist(), found.trg.tolist(), strict=True))
    groups = group_pairs(places)
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
        f"{len(groups):,} group{'s' * (len(groups) != 1)}; {extra:,} of {len(texts):,} lines repeat another", err=True
    )
