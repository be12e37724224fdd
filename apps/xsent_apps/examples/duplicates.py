"""Groups of mails that say the same in other words or another language.

`python -m xsent_apps.examples.duplicates`
"""

import csv
from itertools import combinations
from pathlib import Path

from xsent import SentenceEncoder, group_pairs, paraphrase_mining


def read_mails() -> list[tuple[str, str]]:
    """Subject and text of each mail."""
    with Path(__file__).with_name("mails.tsv").open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [(row["about"], row["text"]) for row in rows]


def main() -> None:
    """Print the groups, and how many of all pairs they have."""
    about, texts = zip(*read_mails(), strict=True)
    pairs = [(i, j) for _, i, j in paraphrase_mining(SentenceEncoder(), texts)]
    groups = group_pairs(pairs)
    for group in groups:
        print("\n".join(texts[mail] for mail in group), end="\n\n")
    grouped = [pair for group in groups for pair in combinations(group, 2)]
    correct = sum(about[i] == about[j] for i, j in grouped)
    hidden = sum(one == other for one, other in combinations(about, 2))
    print(f"{len(groups)} groups; {correct} of {hidden} pairs found, {len(grouped) - correct} wrong ones")


if __name__ == "__main__":
    main()
