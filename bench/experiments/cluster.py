"""Clusters beside k-means, HDBSCAN and what `xsent cluster` was: docs/cluster.md.

python bench/experiments/cluster.py DATA/eval/sib200 bench/tickets.tsv --layers 6
"""

import csv
import random
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, v_measure_score

from xsent import SentenceEncoder, cluster, strip_boilerplate
from xsent.cli.options import BundleOption, LayersOption
from xsent.cli.terminal import format_table, one_line_errors
from xsent.evaluation.topics import COLUMNS, TEST_FILES, read_examples, topic_files

NONE = "none"  # label of the tickets that belong to no topic
GREETED = 5  # mails of each ticket
# Greetings and ends of mails, of which each mail has one; {} is a number.
GREETINGS = {
    "en": ["Hello,", "Hi there,", "Good morning,", "Dear Sir or Madam, I hope you are well.", "Dear support team,"],
    "fr": [
        "Bonjour,",
        "Bonsoir,",
        "Madame, Monsieur,",
        "Cher service client,",
        "Bonjour, j'espère que vous allez bien.",
    ],
    "de": [
        "Hallo,",
        "Guten Tag,",
        "Guten Morgen,",
        "Sehr geehrte Damen und Herren,",
        "Liebes Team, ich hoffe, es geht gut.",
    ],
    "es": ["Hola,", "Buenos días,", "Buenas tardes,", "Estimados señores,", "Estimado equipo, espero que estén bien."],
    "pt": ["Olá,", "Bom dia,", "Boa tarde,", "Prezados senhores,", "Caro suporte, espero que estejam bem."],
}
ENDS = {
    "en": [
        "Kind regards",
        "Many thanks in advance!",
        "My customer number is {}. Thanks",
        "Please get back to me soon.",
    ],
    "fr": ["Cordialement", "Merci d'avance !", "Mon numéro de client est le {}. Merci", "J'attends votre réponse."],
    "de": ["Mit freundlichen Grüßen", "Danke im Voraus!", "Meine Kundennummer ist {}. Danke", "Ich bitte um Antwort."],
    "es": ["Un saludo", "¡Gracias de antemano!", "Mi número de cliente es {}. Gracias", "Espero su respuesta."],
    "pt": ["Atenciosamente", "Desde já agradeço!", "Meu número de cliente é {}. Obrigado", "Aguardo a sua resposta."],
}

Labels = NDArray[np.int64]


class Collection(NamedTuple):
    """Texts with the labels that people gave."""

    texts: list[str]
    topics: list[str]
    languages: list[str]


class Vectors(NamedTuple):
    """Vectors of the texts, and of what is left of them without boilerplate."""

    texts: list[str]
    whole: NDArray[np.float32]
    stripped: NDArray[np.float32]


def hdbscan(vectors: NDArray[np.float32], size: int) -> Labels:
    """Groups of at least so many in 50 principal components, in which it is quick and finds more than in 384."""
    reduced = PCA(50, random_state=0).fit_transform(vectors).astype(np.float64)
    groups: Labels = HDBSCAN(min_cluster_size=size, min_samples=5, copy=False).fit_predict(reduced)
    return groups


WAYS: dict[str, Callable[[Vectors, int], Labels]] = {
    "cluster": lambda of, number: cluster(of.stripped, texts=of.texts).labels,
    "cluster, number": lambda of, number: cluster(of.stripped, number, texts=of.texts).labels,
    "cluster, languages not told": lambda of, number: cluster(of.stripped).labels,
    "cluster, with greetings": lambda of, number: cluster(of.whole, texts=of.texts).labels,
    "cluster, neither": lambda of, number: cluster(of.whole).labels,
    "k-means": lambda of, number: KMeans(number, n_init=4, random_state=0).fit_predict(of.whole),
    "HDBSCAN 10": lambda of, number: hdbscan(of.whole, 10),
    "HDBSCAN 25": lambda of, number: hdbscan(of.whole, 25),
}


def read_tickets(path: Path) -> Collection:
    """Tickets as they are."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    return Collection(*([row[name] for row in rows] for name in ("text", "topic", "language")))


def greeted(tickets: Collection) -> Collection:
    """Several mails of each ticket, with greetings and sign-offs."""
    draw = random.Random(0)
    texts = [
        f"{draw.choice(GREETINGS[language])} {text} {draw.choice(ENDS[language]).format(draw.randrange(1000, 99999))}"
        for text, language in zip(tickets.texts, tickets.languages, strict=True)
        for _ in range(GREETED)
    ]
    return Collection(texts, *([one for one in column for _ in range(GREETED)] for column in tickets[1:]))


def read_news(folder: Path, languages: tuple[str, ...]) -> Collection:
    """SIB-200 in all languages at once."""
    files = topic_files(folder, TEST_FILES)
    examples = {code: read_examples(files[code], COLUMNS) for code in languages if code in files}
    return Collection(
        [text for one in examples.values() for text in one.texts],
        [label for one in examples.values() for label in one.labels],
        [code for code, one in examples.items() for _ in one.texts],
    )


@one_line_errors()
def clusters(
    sib: Annotated[Path, typer.Argument(help="SIB-200: LANG/test.tsv.")],
    tickets: Annotated[Path, typer.Argument(help="bench/tickets.tsv.")],
    model: BundleOption = None,
    layers: LayersOption = None,
) -> None:
    """Measure how well clusters agree with the labels that people gave; texts in no cluster count as one cluster."""
    encoder = SentenceEncoder(model, layers=layers)
    plain = read_tickets(tickets)
    collections = {
        "SIB-200": read_news(sib, encoder.languages),
        "SIB-200, English": read_news(sib, ("en",)),
        "tickets": plain,
        "tickets with greetings": greeted(plain),
    }
    rows = list[dict[str, object]]()
    for name, collection in collections.items():
        texts, topics, languages = collection
        whole = encoder.encode(texts, on_long="split")
        vectors = Vectors(texts, whole, encoder.encode(strip_boilerplate(texts), on_long="split"))
        number = len({*topics} - {NONE})
        for way, find in WAYS.items():
            began = process_time()
            labels = find(vectors, number)
            seconds = process_time() - began
            agreement = {"ARI": adjusted_rand_score(topics, labels), "V": v_measure_score(topics, labels)}
            agreement |= {"V, languages": v_measure_score(languages, labels)}
            shape = {"texts": len(texts), "labels": number, "clusters": len({*labels.tolist()} - {-1})}
            none = {"none %": float(100 * np.mean(labels == -1)), "CPU s": seconds}
            rows.append({"set": name, "way": way, **shape, **agreement, **none})
    typer.echo(format_table(rows))


if __name__ == "__main__":
    typer.run(clusters)
