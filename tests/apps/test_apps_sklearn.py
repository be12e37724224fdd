"""The transformer, in pipelines of scikit-learn."""

import io
from pathlib import Path

import joblib
import numpy as np
import pytest
from conftest import check_long_text, sentences
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from xsent import SentenceEncoder
from xsent_apps.sklearn import SentenceVectorizer

TEXTS = [*sentences("en"), *sentences("de")]
LABELS = ["en"] * 33 + ["de"] * 33


def test_vectors_are_the_encoders(mini_bundle: Path) -> None:
    encoder = SentenceEncoder(mini_bundle)
    for texts in (TEXTS, np.array(TEXTS), np.array(TEXTS, object)):
        vectors = SentenceVectorizer(mini_bundle).fit_transform(texts)
        assert vectors.dtype == np.float32 and np.array_equal(vectors, encoder.encode(TEXTS))
    short = SentenceVectorizer(mini_bundle, truncate_dim=8, threads=1).fit(TEXTS)
    assert np.array_equal(short.transform(TEXTS), encoder.encode(TEXTS, truncate_dim=8))
    assert list(short.get_feature_names_out()) == [f"sentencevectorizer{i}" for i in range(8)]


def test_it_is_an_estimator_like_others(mini_bundle: Path) -> None:
    vectorizer = SentenceVectorizer(mini_bundle, layers=2, truncate_dim=8)
    copy = clone(vectorizer)
    settings = {"path": mini_bundle, "layers": 2, "truncate_dim": 8, "on_long": "warn", "threads": None}
    assert copy.get_params() == settings
    assert repr(copy.set_params(layers=None, truncate_dim=None)) == f"SentenceVectorizer(path={mini_bundle!r})"
    with pytest.raises(NotFittedError):
        copy.transform(TEXTS)
    file = io.BytesIO()
    joblib.dump(vectorizer.fit(TEXTS), file)
    assert len(file.getvalue()) < 2000  # the path, not the weights
    file.seek(0)
    assert np.array_equal(joblib.load(file).transform(TEXTS), vectorizer.transform(TEXTS))


def test_cross_validation_in_many_processes(mini_bundle: Path) -> None:
    pipeline = make_pipeline(SentenceVectorizer(mini_bundle, threads=1), LogisticRegression(C=100))
    scores = cross_val_score(pipeline, TEXTS, LABELS, cv=3, n_jobs=2)
    assert scores.min() > 0.9  # "and" or "und"
    search = GridSearchCV(pipeline, {"sentencevectorizer__truncate_dim": [1, 32]}, cv=3).fit(TEXTS, LABELS)
    assert search.best_params_ == {"sentencevectorizer__truncate_dim": 32}


def test_tables_come_out_and_columns_go_in(mini_bundle: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": TEXTS, "length": range(66)})
    vectorizer = SentenceVectorizer(mini_bundle).set_output(transform="pandas")
    table = vectorizer.fit_transform(frame["text"])
    assert list(table.columns) == [f"sentencevectorizer{i}" for i in range(32)]
    assert np.array_equal(table.to_numpy(), SentenceEncoder(mini_bundle).encode(TEXTS))
    both = ColumnTransformer([("text", SentenceVectorizer(mini_bundle), "text")], remainder="passthrough")
    assert both.fit_transform(frame).shape == (66, 33)
    with pytest.raises(ValueError, match=r"expected a list or a column of texts, got a table of shape \[66, 1\]"):
        vectorizer.transform(frame[["text"]])
    with pytest.raises(ValueError, match="got one text"):
        vectorizer.transform("Anna")


def test_what_is_too_long(mini_bundle: Path) -> None:
    check_long_text(
        lambda text, **options: SentenceVectorizer(mini_bundle, **options).fit_transform([text])[0], mini_bundle
    )
