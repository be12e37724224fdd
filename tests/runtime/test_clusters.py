"""Clusters of texts, their names, and the command that prints them."""

import csv
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import Runner, assert_refused, raises, write_lines

from xsent import Clusters, cluster, name_clusters

pytest.importorskip("sklearn", reason="needs scikit-learn: pip install 'xsent[cluster]'")

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
    raises(ValueError, "number = 4 must lie between 1 and 3", cluster, np.eye(3), 4)
    raises(ValueError, "threshold = 2 must lie between -1 and 1", cluster, np.eye(3), threshold=2)


def test_no_groups_and_names() -> None:
    """Names are frequent words as they are spelled, and the central text."""
    for vectors in (np.empty((0, 8)), np.zeros((3, 8)), np.ones((9, 8)), np.eye(1, 8)):
        assert cluster(vectors).count == 0
    labels, cosines = np.array([0, 0, 0, -1, -1, 0]), np.array([0.5, 0.9, 0.6, 1, 1, 0.2], np.float32)
    [name] = name_clusters(Clusters(labels, cosines), TEXTS)
    assert {"Rechnung", "invoice"} < set(name.words) and "the" not in map(str.lower, name.words)
    assert (name.central, name.size) == (1, 4)


def test_tickets_in_five_languages(run: Runner, tmp_path: Path) -> None:
    """The topics are found in all languages at once; rows keep their order and their ids."""
    with TICKETS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    code, _, err = run("cluster", TICKETS, "--column", "text", "--id", "topic", "--output", tmp_path / "found.csv")
    assert code == 0 and re.search(r"\b(?:9|10|11) clusters of 210 texts; \d+ belong to none", err)
    with (tmp_path / "found.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    assert [(row["id"], row["text"]) for row in found] == [(row["topic"], row["text"]) for row in rows]
    invoices = {row["language"] for row, made in zip(rows, found, strict=True) if "Rechnung" in made["name"]}
    assert invoices == {"en", "fr", "de", "es", "pt"}


def test_lines_with_a_number_of_clusters(run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["The invoice is wrong.", "The invoice is late.", *TEXTS[2:5], "Die Rechnung ist falsch.", ""]
    file = write_lines(tmp_path / "mails.txt", texts)
    code, out, err = run("cluster", file, "-n", 2)
    printed = [line.split("\t") for line in out.splitlines()]
    assert code == 0 and [row[2] for row in printed] == list("1234567")
    assert {row[0] for row in printed[:3]} == {printed[5][0]} != {row[0] for row in printed[3:5]}
    assert printed[6] == ["", "", "7", ""] and "2 clusters of 7 texts; 1 belongs to none" in err
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    result = run("cluster", write_lines(tmp_path / "mails.txt", TEXTS))
    assert_refused(result, "pip install 'xsent[cluster]'")
