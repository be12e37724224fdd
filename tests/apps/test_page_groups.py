"""The groups of the page's map, run in Node, beside those of `xsent cluster`."""

import csv
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from page_modules import page_modules

import xsent.languages
from xsent import SentenceEncoder, cluster, name_clusters, without_background
from xsent.bundle import builtin_path

CLIENT = Path(__file__).parent / "page_groups.mjs"
TICKETS = Path(__file__).parents[2] / "bench/tickets.tsv"

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("node") is None, reason="needs node")]


def test_groups_of_tickets_are_those_of_python() -> None:
    """Languages, vectors without their backgrounds, groups and names; a text without words is in none."""
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    with TICKETS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [row["text"] for row in rows] + ["請求書が間違っています。", "Я не получил счёт.", "?!"]
    vectors = SentenceEncoder(threads=1).encode(texts)
    model = builtin_path() / "sentencepiece.model"
    command = ["node", str(CLIENT), str(page_modules()), str(model), str(xsent.languages.FUNCTION_WORDS)]
    asked = json.dumps({"texts": texts, "vectors": vectors.tolist()})
    done = subprocess.run(command, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    here = json.loads(done.stdout)
    assert here["languages"] == [*map(xsent.languages.language_of, texts[:-1]), None]
    assert {"en", "fr", "de", "es", "pt", "ru", "ja"} <= set(here["languages"])
    rest = without_background(vectors, texts)
    assert not rest[-1].any()
    np.testing.assert_allclose(np.reshape(here["rest"], rest.shape), rest, atol=1e-5)
    found = cluster(vectors, texts=texts)
    names = name_clusters(found, texts)
    assert here["labels"] == found.labels.tolist() and found.labels[-1] == -1
    np.testing.assert_allclose(here["cosines"][:-1], found.cosines[:-1], atol=1e-5)
    assert here["central"] == [name.central for name in names]
    assert here["names"] == [str(name) for name in names] and len(names) > 8
