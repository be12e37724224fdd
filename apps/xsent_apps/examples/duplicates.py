"""Groups of mails that mean the same in other words or another language.

`python -m xsent_apps.examples.duplicates`
"""

from itertools import combinations
from pathlib import Path

from xsent import SentenceEncoder, group_pairs, paraphrase_mining
from xsent.files.tables import read_rows


def main() -> None:
    """Print the groups, and how many of all pairs they contain."""
    mails = Path(__file__).with_name("mails.tsv")
    about, texts = zip(*read_rows(mails, ["about", "text"], quotes=False), strict=True)
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
