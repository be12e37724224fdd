"""Translations found in two shuffled texts, in which some sentences have no translation.

`python -m xsent_apps.examples.translations`
"""

import random
from pathlib import Path

from xsent import SentenceEncoder, mine_bitext
from xsent.cli.terminal import format_table
from xsent.files.tables import read_rows

THRESHOLD = 1.1  # lowest margin of a pair; a higher one finds fewer wrong pairs but misses more right ones


def shuffled_sentences(language: str) -> dict[str, int]:
    """Sentences of one language, shuffled, each with its number; translations have the same number."""
    rows = read_rows(Path(__file__).with_name("mill.tsv"), [language], quotes=False)
    numbered = [(text, number) for number, (text,) in enumerate(rows) if text]
    random.Random(language).shuffle(numbered)
    return dict(numbered)


def find(encoder: SentenceEncoder, left: dict[str, int], right: dict[str, int]) -> list[tuple[float, str, str]]:
    """Score and sentences of the pairs found, best first."""
    a = list(left)
    b = list(right)
    pairs = mine_bitext(encoder.encode(a), encoder.encode(b), retrieval="intersect", threshold=THRESHOLD)
    return [(float(score), a[i], b[j]) for i, j, score in zip(pairs.src, pairs.trg, pairs.scores, strict=True)]


def main() -> None:
    """Print the best pair for each combination of two languages, with precision and recall."""
    encoder = SentenceEncoder()
    rows = []
    for one, other in (("en", "de"), ("en", "fr"), ("de", "fr")):
        left, right = shuffled_sentences(one), shuffled_sentences(other)
        pairs = find(encoder, left, right)
        correct = sum(left[a] == right[b] for _, a, b in pairs)
        hidden = len(set(left.values()) & set(right.values()))
        shares = {"precision": 100 * correct / max(len(pairs), 1), "recall": 100 * correct / hidden}
        rows.append({"languages": f"{one}-{other}", "hidden": hidden, "found": len(pairs), **shares})
        for score, a, b in pairs[:1]:
            print(f"{score:.2f}\t{a}\t{b}")
    print(f"\nfound among {len(left)} and {len(right)} sentences, in %")
    print(format_table(rows))


if __name__ == "__main__":
    main()
