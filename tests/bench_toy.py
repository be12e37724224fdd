"""Made-up data in the layout that the benchmarks read: pairs to train on, and the test sets."""

import csv
import lzma
import random
from pathlib import Path

from toy import ENGLISH, toy_pairs, translate, write_toy_corpus

TOPICS = ("animals", "nature", "home")


def write_toy_data(folder: Path, pairs: int = 600) -> Path:
    """Write `train/pairs.tsv` and `eval/{tatoeba,xsr,sib200,stsb}` for English with fr and de."""
    (folder / "train").mkdir(parents=True)
    write_toy_corpus(folder / "train" / "pairs.tsv", pairs)
    write_toy_tests(folder / "eval")
    return folder


def write_toy_tests(folder: Path) -> Path:
    """Write the test sets; translations are word by word, so that an encoder of words can be perfect."""
    english = list(dict.fromkeys(pair[2] for pair in toy_pairs(60, seed=5)))
    for name in ("tatoeba", "xsr", "stsb"):
        (folder / name).mkdir(parents=True)
    for language in ("fr", "de"):
        lines = [f"{text}\t{translate(text, language)}\n" for text in english]
        (folder / "tatoeba" / f"en-{language}.tsv").write_text("".join(lines))
    rows = [f"{'QC'[i % 3 == 2]}\ttoy\t{text}\t{translate(text, 'fr')}\n" for i, text in enumerate(english)]
    (folder / "xsr" / "en-fr.tsv").write_text("".join(rows))
    more = [translate(pair[2], "fr") + "\n" for pair in toy_pairs(30, seed=6)]
    with lzma.open(folder / "xsr" / "distractors.fr.txt.xz", "wt") as file:
        file.writelines(more)
    for language in ("en", "fr", "de"):
        write_topics(folder / "sib200" / language, language)
        write_questions(folder / "passages", language)
    for language in ("en", "fr"):
        write_similarities(folder / "stsb" / f"{language}-test.csv", language)
    return folder


def write_questions(folder: Path, language: str) -> None:
    """Write queries, which are the first half of their passages."""
    folder.mkdir(exist_ok=True)
    texts = [pair[2] if language == "en" else translate(pair[2], language) for pair in toy_pairs(20, seed=7)]
    queries = [f"{text[: len(text) // 2]}\t{number}\n" for number, text in enumerate(texts)]
    (folder / f"{language}.tsv").write_text("".join(queries))
    passages = [f"{number}\t{text}\n" for number, text in enumerate(texts)]
    (folder / f"{language}.passages.tsv").write_text("".join(passages))


def write_topics(folder: Path, language: str) -> None:
    """Write the three splits of a topic set; a topic is a third of the words."""
    folder.mkdir(parents=True)
    share = len(ENGLISH) // len(TOPICS)
    for split, seed in (("train", 1), ("dev", 2), ("test", 3)):
        rng = random.Random(seed)
        lines = ["index_id\tcategory\ttext\n"]
        for number in range(30):
            topic = number % len(TOPICS)
            text = " ".join(rng.choices(ENGLISH[topic * share : (topic + 1) * share], k=4))
            lines.append(f"{number}\t{TOPICS[topic]}\t{text if language == 'en' else translate(text, language)}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))


def write_similarities(path: Path, language: str) -> None:
    """Write sentence pairs that are as similar as the words they share."""
    rng = random.Random(4)
    with path.open("w", newline="") as file:
        for number in range(24):
            words = rng.sample(ENGLISH, 12)
            shared = number % 6
            texts = [" ".join(words[:5]), " ".join([*words[:shared], *words[5 : 10 - shared]])]
            if language != "en":
                texts = [translate(text, language) for text in texts]
            csv.writer(file).writerow([*texts, float(shared)])
