"""Topics of news in five languages, from English alone: its words for them, or its headlines.

`python -m xsent_apps.examples.news_topics`
"""

import csv
from pathlib import Path

import numpy as np

from xsent import LinearClassifier, SentenceEncoder, cosine_similarity
from xsent.cli.terminal import format_table

DESCRIPTIONS = {
    "politics": "News about politics, governments and elections.",
    "business": "News about business, companies, prices and the economy.",
    "sport": "News about sport, teams, matches and records.",
    "science": "News about science, research and discoveries.",
    "technology": "News about technology, computers, software and the internet.",
    "health": "News about health, medicine, doctors and diseases.",
    "culture": "News about culture, music, books, film, theatre and art.",
    "weather": "News about the weather, rain, snow, heat and storms.",
}


def read_headlines() -> tuple[list[str], dict[str, list[str]]]:
    """Topics [n], and the n headlines in every language, by its code."""
    with Path(__file__).with_name("headlines.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [row["topic"] for row in rows], {code: [row[code] for row in rows] for code in rows[0] if code != "topic"}


def by_description(encoder: SentenceEncoder, headlines: list[str]) -> list[str]:
    """The topic whose English description is nearest."""
    descriptions = encoder.encode(DESCRIPTIONS.values())
    nearest = cosine_similarity(encoder.encode(headlines), descriptions).argmax(axis=1)
    return [list(DESCRIPTIONS)[topic] for topic in nearest]


def by_examples(encoder: SentenceEncoder, english: list[str], topics: list[str], headlines: list[str]) -> list[str]:
    """What a head says that has learnt from English headlines: one from the even ones of the odd ones, and vice versa.

    So none is asked about the translation of what it has learnt.
    """
    learnt, asked = encoder.encode(english), encoder.encode(headlines)
    even = np.arange(len(topics)) % 2 == 0
    said = np.empty(len(topics), object)
    for half in (even, ~even):
        labels = [topic for topic, taken in zip(topics, half, strict=True) if taken]
        head = LinearClassifier.fit(learnt[half], labels, fingerprint=encoder.fingerprint)
        said[~half] = head.predict(asked[~half])
    return said.tolist()


def accuracy(said: list[str], topics: list[str]) -> float:
    """Share of headlines with the right topic, in per cent."""
    return 100 * float(np.mean(np.array(said) == np.array(topics)))


def main() -> None:
    """Print the accuracy in every language."""
    encoder = SentenceEncoder()
    topics, headlines = read_headlines()
    rows = []
    for language, texts in headlines.items():
        zero_shot = accuracy(by_description(encoder, texts), topics)
        trained = accuracy(by_examples(encoder, headlines["en"], topics, texts), topics)
        rows.append({"language": language, "by description": zero_shot, "by English headlines": trained})
    print(f"{len(topics)} headlines, {len(DESCRIPTIONS)} topics; accuracy in per cent")
    print(format_table(rows))


if __name__ == "__main__":
    main()
