"""Clusters of texts, their names, and the command that prints them."""

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, raises, write_lines
from lazy import Lazy, needs

from xsent import Clusters, cluster, name_clusters, without_background

pytestmark = needs("sklearn")
v_measure_score = Lazy("sklearn.metrics:v_measure_score")

TICKETS = Path(__file__).parents[2] / "bench/tickets.tsv"
TEXTS = ["The invoice is wrong.", "The second Invoice.", "Die Rechnung fehlt.", "A cat.", "Katze", "Noch eine Rechnung"]


def around(*sizes: int, seed: int = 0, spread: float = 0.05) -> np.ndarray:
    """Vectors in groups of these sizes, all of them beside one common direction."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(len(sizes), 64)) + 2
    return np.repeat(centres, sizes, axis=0) + spread * random.normal(size=(sum(sizes), 64))


@pytest.mark.parametrize("number", [None, 3])
def test_groups_beside_a_common_direction_are_found_the_largest_first(number: int | None) -> None:
    found = cluster(around(5, 30, 9), number)
    assert found.labels.tolist() == [2] * 5 + [0] * 30 + [1] * 9
    assert found.count == 3 and found.cosines.min() > 0.9
    assert (cluster(around(5, 30, 9), number).labels == found.labels).all()


def test_small_groups_strangers_and_zero_vectors_belong_to_none() -> None:
    vectors = np.concatenate([around(20, 20, 3), np.zeros((1, 64))])
    assert set(cluster(vectors).labels[40:]) == {-1}
    assert cluster(vectors, smallest=3).labels.tolist()[38:] == [1, 1, 2, 2, 2, -1]
    found = cluster(around(6000, 3000, 1000))
    assert found.labels.tolist() == [0] * 6000 + [1] * 3000 + [2] * 1000
    raises(ValueError, "number = 4 must be between 1 and 3", cluster, np.eye(3), 4)
    raises(ValueError, "threshold = 2 must be between -1 and 1", cluster, np.eye(3), threshold=2)


# One text in each of three languages.
SAID = {
    "en": "Where is it? It was here.",
    "de": "Wo ist es? Es war hier, und nun nicht.",
    "ru": "Где это? Оно было здесь.",
}


def in_languages(*counts: dict[str, int], weight: float = 3) -> tuple[np.ndarray, list[str], list[int]]:
    """Vectors of so many texts of each language for each topic, their texts, and their topics.

    The language has the weight, the topic 1.
    """
    random = np.random.default_rng(0)
    topics = random.normal(size=(len(counts), 64))
    languages = dict(zip(SAID, weight * random.normal(size=(3, 64)), strict=True))
    of = [(topic, language) for topic, each in enumerate(counts) for language, n in each.items() for _ in range(n)]
    rows = [topics[topic] + languages[language] + 0.2 * random.normal(size=64) for topic, language in of]
    return np.array(rows), [SAID[language] for _, language in of], [topic for topic, _ in of]


@pytest.mark.parametrize("number", [None, 3])
def test_clusters_follow_the_topic_where_texts_tell_the_language(number: int | None) -> None:
    same = {"en": 30, "de": 30, "ru": 30}
    vectors, texts, topics = in_languages(same, same, same)
    assert len({*zip(cluster(vectors, 3).labels.tolist(), texts, strict=True)}) == 3  # clusters are languages
    assert cluster(vectors, number, texts=texts).labels.tolist() == topics
    raises(ValueError, "2 texts for 270 vectors; expected one per vector", cluster, vectors, texts=texts[:2])
    rest = without_background(vectors, texts)
    same_topic = np.equal.outer(topics, topics)
    assert (rest @ rest.T)[same_topic].min() > 0.5 > 0.2 > (rest @ rest.T)[~same_topic].max()


def test_a_language_of_few_texts_keeps_their_subject() -> None:
    """Their mean is their subject too; and texts of one language are as they are without its name."""
    vectors, texts, topics = in_languages({"en": 40, "de": 4}, {"en": 40}, weight=0.5)
    found = cluster(vectors, texts=texts)
    assert found.labels.tolist() == topics and found.cosines[40:44].min() > 0.5
    vectors, texts, _ = in_languages({"en": 40}, {"en": 20})
    assert (cluster(vectors, texts=texts).labels == cluster(vectors).labels).all()


def test_texts_without_words_are_in_no_cluster() -> None:
    vectors = around(20, 20)
    texts = ["A lamp."] * 19 + ["N/A"] + ["A cat."] * 20
    assert cluster(vectors).labels[19] == 0
    assert cluster(vectors, texts=texts).labels.tolist() == [1] * 19 + [-1] + [0] * 20


def test_no_groups_and_names() -> None:
    """Names are frequent words as they are spelled, and the central text."""
    for vectors in (np.empty((0, 8)), np.zeros((3, 8)), np.ones((9, 8)), np.eye(1, 8)):
        assert cluster(vectors).count == 0
    labels, cosines = np.array([0, 0, 0, -1, -1, 0]), np.array([0.5, 0.9, 0.6, 1, 1, 0.2], np.float32)
    [name] = name_clusters(Clusters(labels, cosines), TEXTS)
    assert name.words == ("invoice",)
    assert (name.central, name.size) == (1, 4)


def names(groups: list[list[str]]) -> list[tuple[str, ...]]:
    """The names of clusters with these texts."""
    texts = [text for group in groups for text in group]
    labels = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return [name.words for name in name_clusters(Clusters(labels, np.ones(len(texts), np.float32)), texts)]


def test_names_are_words_of_one_language_that_people_would_use() -> None:
    """No function words, no boilerplate, no second forms; German nouns are capitalised, Japanese words are whole."""
    invoices = ["Hello, my invoice is wrong.", "Hello, where is your invoice?", "Hello, these invoices are not mine."]
    parcels = ["Hello, the parcel is late.", "Hello, my parcel was opened.", "Hello, I was waiting for a parcel."]
    french = ["Ma facture est fausse.", "Cette facture est pour une autre personne."]
    assert names([invoices + french, parcels]) == [("invoice",), ("parcel",)]
    german = ["Die Rechnung ist falsch.", "Wo ist meine Rechnung?", "Die RECHNUNG ist nicht von mir."]
    delivered = ["Das Paket ist zu spät.", "Wo ist mein Paket?", "Mein Paket war offen."]
    assert names([german + invoices[:1], delivered]) == [("Rechnung",), ("Paket",)]
    japanese = ["請求書が間違っています。", "請求書をもう一度ください。"], ["荷物が届きません。", "荷物はどこですか。"]
    assert names([*japanese]) == [("請求書",), ("荷物",)]


def test_a_text_near_the_centre_says_more_about_the_name() -> None:
    texts = ["The lamp is red."] * 2 + ["The chair is red."] * 2 + ["The cat is here."] * 4
    labels = np.array([0] * 4 + [1] * 4)
    for cosines in ([0.9, 0.9, 0.3, 0.3], [0.3, 0.3, 0.9, 0.9]):
        named = name_clusters(Clusters(labels, np.array(cosines + [1] * 4, np.float32)), texts)
        words = [word for word in named[0].words if word != "red"]
        assert words == (["lamp", "chair"] if cosines[0] > cosines[2] else ["chair", "lamp"])


def test_tickets_in_five_languages(run: Runner, tmp_path: Path) -> None:
    """The topics are found in all languages at once; rows keep their order and their ids."""
    with TICKETS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    code, _, err = run("cluster", TICKETS, "--column", "text", "--id", "topic", "--output", tmp_path / "found.jsonl")
    assert code == 0 and re.search(r"\b(?:9|10|11) clusters of 210 texts; \d+ belongs? to none", err)
    found = [json.loads(line) for line in (tmp_path / "found.jsonl").read_text().splitlines()]
    assert [(row["id"], row["text"]) for row in found] == [(row["topic"], row["text"]) for row in rows]
    invoices = {row["language"] for row, made in zip(rows, found, strict=True) if "invoice" in (made["name"] or "")}
    assert invoices == {"en", "fr", "de", "es", "pt"}


def test_tickets_with_greetings(run: Runner, tmp_path: Path) -> None:
    """Greetings and sign-offs, which are in one language each, neither make clusters nor name them."""
    greeted = {
        "en": "Dear Sir or Madam, {} Thank you for your help and best wishes.",
        "de": "Sehr geehrte Damen und Herren, {} Vielen Dank für Ihre Hilfe und mit freundlichen Grüßen.",
        "fr": "Madame, Monsieur, {} Je vous remercie de votre aide et vous prie d'agréer mes salutations.",
    }
    with TICKETS.open(encoding="utf-8", newline="") as file:
        rows = [
            row for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if row["language"] in greeted
        ]
    texts = [greeted[row["language"]].format(row["text"]) for row in rows]
    code, out, _ = run("cluster", write_lines(tmp_path / "mails.txt", texts), "--json")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0 and [row["text"] for row in found] == texts
    labels = [row["cluster"] or 0 for row in found]
    assert v_measure_score([row["topic"] for row in rows], labels) > 0.7
    assert v_measure_score([row["language"] for row in rows], labels) < 0.05
    names = {word for row in found if row["name"] for word in row["name"].split(", ")}
    assert names.isdisjoint({"wishes", "Dear", "Madam", "Dank", "geehrte", "Monsieur", "aide", "salutations"})


def test_lines_with_a_number_of_clusters(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The invoice is wrong.", "The invoice is late.", *TEXTS[2:5], "Die Rechnung ist falsch.", "", "?!"]
    file = write_lines(tmp_path / "mails.txt", texts)
    code, out, err = run("cluster", file, "--number", 2)
    printed = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [row[2] for row in printed] == list("12345678")
    assert {row[0] for row in printed[:3]} == {printed[5][0]} != {row[0] for row in printed[3:5]}
    assert printed[6] == ["", "", "7", ""] and "2 clusters of 8 texts; 2 belong to none" in err
    assert printed[7] == ["", "", "8", "?!"]  # without words
    write_lines(file, TEXTS[:3])
    code, _, err = run("cluster", file)
    assert code == 0 and "0 clusters of 3 texts; 3 belong to none; lower --smallest (now 5) or --threshold" in err
    write_lines(file, TEXTS)
    for module, options in (("scipy.cluster.hierarchy", []), ("sklearn.cluster", ["--number", 2])):
        monkeypatch.setitem(sys.modules, module, None)
        assert_refused(run("cluster", file, *options), 'pip install "xsent[cluster]"')
