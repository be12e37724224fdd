"""Translated pairs from queries with passages: the passages that are in English and in another language.

    python tools/passage_pairs.py DATA/train/passages.tsv.xz DATA/passage-pairs.tsv

Needs xsent with the extra train. A P is appended to the names of sources, so that a recipe can weigh these pairs.
"""

from collections.abc import Iterator
from pathlib import Path

import typer

from xsent.cli.terminal import one_line_errors
from xsent_train.data.corpus import ENGLISH, Passages, write_pairs


def translated(file: Path) -> Iterator[tuple[str, str, str, str]]:
    """Source, language, English passage and translation, each pair once."""
    groups: dict[tuple[str, str], dict[str, str]] = {}
    for line in Passages([file]):
        groups.setdefault((line.source, line.group), {}).setdefault(line.language, line.passage)
    seen = set()
    for (source, _), passages in groups.items():
        english = passages.pop(ENGLISH, None)
        for language, passage in passages.items() if english else ():
            if (english, passage) not in seen:
                seen.add((english, passage))
                yield f"{source}P", language, english, passage


@one_line_errors()
def main(passages: Path, out: Path) -> None:
    """Write the pairs to OUT."""
    write_pairs(out, translated(passages))
    typer.echo(f"pairs: {out}", err=True)


if __name__ == "__main__":
    typer.run(main)
