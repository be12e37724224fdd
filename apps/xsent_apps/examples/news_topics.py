"""Topics of news in five languages, from English descriptions or learnt from English headlines.

`python -m xsent_apps.examples.news_topics`
"""

from pathlib import Path

import numpy as np

from xsent import LinearClassifier, SentenceEncoder, cosine_similarity
from xsent.cli.terminal import format_table
from xsent.files.tables import read_rows

LANGUAGES = ("en", "fr", "de", "es", "ja")
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
    """Topics [n], and the n headlines in every language, by language code."""
    file = Path(__file__).with_name("headlines.tsv")
    topics, *languages = map(list, zip(*read_rows(file, ["topic", *LANGUAGES], quotes=False), strict=True))
    return topics, dict(zip(LANGUAGES, languages, strict=True))


def by_description(encoder: SentenceEncoder, headlines: list[str]) -> list[str]:
    """The topic whose English description is nearest."""
    descriptions = encoder.encode(DESCRIPTIONS.values())
    nearest = cosine_similarity(encoder.encode(headlines), descriptions).argmax(axis=1)
    return [list(DESCRIPTIONS)[topic] for topic in nearest]


def by_examples(encoder: SentenceEncoder, english: list[str], topics: list[str], headlines: list[str]) -> list[str]:
    """The topics predicted by a head that was fitted on English headlines.

    Two heads, one fitted on even and one on odd headlines, each predict the other half, so that no headline is a
    translation of one that the head was fitted on.
    """
    vectors = encoder.encode(english)
    asked = encoder.encode(headlines)
    even = np.arange(len(topics)) % 2 == 0
    predicted = np.empty(len(topics), object)
    for half in (even, ~even):
        labels = [topic for topic, taken in zip(topics, half, strict=True) if taken]
        head = LinearClassifier.fit(vectors[half], labels, fingerprint=encoder.fingerprint)
        predicted[~half] = head.predict(asked[~half], unknown=0)
    return predicted.tolist()


def accuracy(predicted: list[str], topics: list[str]) -> float:
    """Percentage of headlines with the right topic."""
    return 100 * float(np.mean(np.array(predicted) == np.array(topics)))


def main() -> None:
    """Print the accuracy in every language."""
    encoder = SentenceEncoder()
    topics, headlines = read_headlines()
    rows = []
    for language, texts in headlines.items():
        zero_shot = accuracy(by_description(encoder, texts), topics)
        trained = accuracy(by_examples(encoder, headlines["en"], topics, texts), topics)
        rows.append({"language": language, "by description": zero_shot, "by English headlines": trained})
    print(f"{len(topics)} headlines, {len(DESCRIPTIONS)} topics; accuracy in %")
    print(format_table(rows))


if __name__ == "__main__":
    main()
