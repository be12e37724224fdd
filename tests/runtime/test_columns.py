"""Texts as programs have them: columns of tables, missing values, one str; and the line that a warning names."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import raises

from xsent import (
    LinearClassifier,
    SentenceEncoder,
    build_index,
    cluster,
    extend_index,
    mine_bitext,
    name_clusters,
    paraphrase_mining,
    strip_boilerplate,
    without_background,
)
from xsent.mining.bitext import Bitext
from xsent.mining.clusters import Clusters
from xsent.mining.paraphrases import split_pairs

TEXTS = ["The invoice is 5 euros.", "Anna sees Boris.", "The invoice is 6 euros.", "N/A"]
VECTORS = np.array([[1, 0, 0.1], [0, 1, 0], [1, 0, 0], [0, 0.1, 1]], np.float32)
LABELS = ["a", "b", "a", "b"]
HEAD = LinearClassifier.fit(VECTORS, LABELS, fingerprint="x")
PAIRS = Bitext(np.array([0]), np.array([2]), np.ones(1, np.float32))

# Every function that takes texts or labels, with the word for one of them in its messages.
TAKES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "cluster": ("text", lambda texts: cluster(VECTORS, texts=texts, smallest=1).labels.tolist()),
    "name": ("text", lambda texts: name_clusters(Clusters(np.zeros(4, np.int64), np.ones(4, np.float32)), texts)),
    "background": ("text", lambda texts: without_background(VECTORS, texts).tolist()),
    "boilerplate": ("text", strip_boilerplate),
    "mine": ("text", lambda texts: mine_bitext(VECTORS, VECTORS, k=1, texts=(texts, TEXTS)).trg.tolist()),
    "split": ("text", lambda texts: split_pairs(PAIRS, texts)[1].trg.tolist()),
    "predict": ("text", lambda texts: HEAD.predict(VECTORS, texts=texts)),
    "score": ("label", lambda texts: HEAD.score(VECTORS, texts)),
    "fit": ("label", lambda texts: LinearClassifier.fit(VECTORS, texts, fingerprint="x").labels),
    "describe": ("label", lambda texts: LinearClassifier.from_descriptions(VECTORS, texts, fingerprint="x").labels),
}


def columns(texts: list[str]) -> Iterable[Iterable[str]]:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    yield pandas.Series(texts, index=range(7, 7 + len(texts)))  # as after df[df.language == "en"]
    yield pandas.Series(texts, dtype="category")
    yield arrow.chunked_array([texts])
    yield np.array(texts)
    yield (text for text in texts)


@pytest.mark.parametrize("name", TAKES)
def test_a_column_is_its_texts_and_nothing_else_is_taken_for_texts(name: str) -> None:
    if name == "cluster":
        pytest.importorskip("sklearn")
    noun, call = TAKES[name]
    given = LABELS if noun == "label" else TEXTS
    expected = call(given)
    assert all(call(column) == expected for column in columns(given))
    raises(TypeError, "expected a list, got one str; put it in a list", call, "abab")
    for missing in (None, float("nan"), np.datetime64("NaT")):
        raises(TypeError, rf"^{noun} 4 \(counted from 1\)", call, [*given[:3], missing])


def test_mined_sentences_and_queries_are_columns_too(encoder: SentenceEncoder, tmp_path: Path) -> None:
    texts = ["Anna sees Boris.", "David voit Elena", "Anna sees Boris."]
    found = paraphrase_mining(encoder, texts)
    assert found and all(paraphrase_mining(encoder, column) == found for column in columns(texts))
    raises(TypeError, r"^sentence 2 .*a missing value", paraphrase_mining, encoder, ["Anna", None])
    for number, column in enumerate(columns(texts)):
        build_index(tmp_path / str(number), column, encoder)
        assert extend_index(tmp_path / str(number), ["Clara"], encoder).lines == 4
    raises(TypeError, r"^line 2: expected str, got NoneType", build_index, tmp_path / "x", ["Anna", None], encoder)
    raises(TypeError, "expected a list, got one str", build_index, tmp_path / "x", "Anna", encoder)
    raises(TypeError, "got SentenceEncoder.*; expected a sentence", build_index, tmp_path / "x", encoder, texts)
    assert not (tmp_path / "x").exists()


def test_a_warning_names_the_line_of_the_program(encoder: SentenceEncoder) -> None:
    long = "Anna sees Boris. " * 60
    for call in (
        lambda: encoder.encode(long),
        lambda: encoder.encode_query([long]),
        lambda: [*encoder.encode_iter([long])],
        lambda: [*encoder.encode_items([long])],
        lambda: LinearClassifier.fit(VECTORS, ["a", "b", "A", "b"], fingerprint="x"),
    ):
        with pytest.warns(UserWarning) as warned:
            call()
        assert [one.filename for one in warned] == [__file__]
