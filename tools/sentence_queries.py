"""Queries from plain passages: a sentence of each asks for the rest (the inverse cloze task, Lee et al. 2019).

    python tools/sentence_queries.py DATA/train/passages.tsv.xz DATA/sentence-queries.tsv

Needs xsent with the extras train and documents. Where a passage is translated, training also lets the sentence ask for
the rest in another language. An S is appended to the names of sources, so that a recipe can weigh these queries.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import typer

from xsent.cli.terminal import one_line_errors
from xsent.documents.sentences import split_sentences
from xsent_train.data.corpus import Passages, write_pairs

WHOLE = 0.1  # share of the passages that keep the sentence, so that equal words count, too
LENGTHS, JAPANESE = range(30, 221), range(12, 121)  # characters of a sentence that says something by itself


def queries(file: Path) -> Iterator[tuple[str, str, str, str, str, str]]:
    """Source, group, kind, language, sentence and rest, for each passage of three or more sentences."""
    random, seen = Random(1), set[str]()
    for line in Passages([file]):
        if line.passage in seen:
            continue
        seen.add(line.passage)
        is_japanese = line.language == "ja"
        sentences = [sentence for sentence in split_sentences(line.passage, line.language) if len(sentence) > 2]
        lengths = JAPANESE if is_japanese else LENGTHS
        fit = [place for place, sentence in enumerate(sentences) if len(sentence) in lengths]
        if len(sentences) < 3 or not fit:
            continue
        place = random.choice(fit)
        query = " ".join(sentences[place].split())
        if random.random() >= WHOLE:
            del sentences[place]
        rest = " ".join(("" if is_japanese else " ").join(sentences).split())
        yield f"{line.source}S", line.group, "sentence", line.language, query, rest


@one_line_errors()
def main(passages: Path, out: Path) -> None:
    """Write the queries to OUT."""
    write_pairs(out, queries(passages))
    typer.echo(f"queries: {out}", err=True)


if __name__ == "__main__":
    typer.run(main)
