"""The classes for other people's tools; docs/guides/integrations.md, which is run too, uses each from end to end."""

import asyncio
import io
import json
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from commands import raises
from conftest import sentences
from lazy import Lazy
from numpy.typing import NDArray

from xsent import FingerprintError, LongSentenceWarning, SentenceEncoder, nearest
from xsent.bundle import builtin_path

pytestmark = pytest.mark.slow
XsentEmbeddingFunction = Lazy("xsent_apps.chroma:XsentEmbeddingFunction")
XsentEmbeddings = Lazy("xsent_apps.langchain:XsentEmbeddings")
XsentEmbedding = Lazy("xsent_apps.llamaindex:XsentEmbedding")
XsentEncoder = Lazy("xsent_apps.mteb:XsentEncoder")
SentenceVectorizer = Lazy("xsent_apps.sklearn:SentenceVectorizer")
ENGLISH = sentences("en")
GERMAN = sentences("de")
BOTH = [*ENGLISH, *GERMAN]
SOME = ENGLISH[::4]
LONG = " ".join(ENGLISH)  # more than the tiny bundle reads
IDS = [str(number) for number in range(len(SOME))]


def open_chroma(folder: Path) -> Any:  # noqa: ANN401
    import chromadb

    return chromadb.PersistentClient(str(folder), chromadb.Settings(anonymized_telemetry=False))  # old ones report use


def mteb_encode(encoder: Any, texts: list[str], **options: Any) -> NDArray[np.generic]:  # noqa: ANN401
    batches = [{"text": texts[start : start + 4]} for start in range(0, len(texts), 4)]
    return encoder.encode(batches, task_metadata=None, hf_split="test", hf_subset="default", **options)


# Vectors of texts by each tool, with a bundle and options.
ENCODE: dict[str, Callable[..., Any]] = {
    "chroma": lambda bundle, texts, **options: XsentEmbeddingFunction(bundle, **options)(texts),
    "langchain": lambda bundle, texts, **options: XsentEmbeddings(bundle, **options).embed_documents(texts),
    "llamaindex": lambda bundle, texts, **options: XsentEmbedding(path=str(bundle), **options).get_text_embedding_batch(
        texts
    ),
    "mteb": lambda bundle, texts, **options: mteb_encode(XsentEncoder(bundle, **options), texts),
    "sklearn": lambda bundle, texts, **options: SentenceVectorizer(bundle, **options).fit_transform(texts),
}


@pytest.mark.parametrize("tool", ENCODE)
def test_vectors_are_the_encoders(tool: str, deep_bundle: Path) -> None:
    encode, encoder = partial(ENCODE[tool], deep_bundle), SentenceEncoder(deep_bundle)
    assert np.array_equal(encode(ENGLISH), encoder.encode(ENGLISH))
    short = SentenceEncoder(deep_bundle, layers=1).encode(ENGLISH, truncate_dim=8)
    assert np.array_equal(encode(ENGLISH, layers=1, truncate_dim=8, threads=1), short)
    assert np.array_equal(encode(ENGLISH, space="their-model"), encoder.encode(ENGLISH, space="their-model"))
    with pytest.warns(LongSentenceWarning):
        encode([LONG])
    assert np.array_equal(encode([LONG], on_long="split"), encoder.encode([LONG], on_long="split"))
    raises(ValueError, "at most 64 fit", encode, [LONG], on_long="error")


@pytest.mark.parametrize("space", [None, "all-MiniLM-L6-v2"])
def test_vectors_of_two_spaces_are_not_taken_for_each_other(space: str | None) -> None:
    kept = XsentEmbeddingFunction(space=space).get_config()["fingerprint"]
    assert kept == XsentEmbedding(space=space).fingerprint == SentenceEncoder().fingerprint_of(space)


def test_sklearn_knows_an_estimator_like_others(mini_bundle: Path) -> None:
    from sklearn.base import clone
    from sklearn.exceptions import NotFittedError

    vectorizer = SentenceVectorizer(mini_bundle, layers=2, truncate_dim=8)
    copy = clone(vectorizer)
    assert repr(copy.set_params(layers=None, truncate_dim=None)) == f"SentenceVectorizer(path={mini_bundle!r})"
    raises(NotFittedError, "not fitted yet", copy.transform, BOTH)
    file = io.BytesIO()
    joblib.dump(vectorizer.fit(BOTH), file)
    assert len(file.getvalue()) < 2000  # the path, not the weights
    file.seek(0)
    assert np.array_equal(joblib.load(file).transform(BOTH), vectorizer.transform(BOTH))


def test_sklearn_takes_arrays_and_columns_and_gives_tables(mini_bundle: Path) -> None:
    from sklearn.compose import ColumnTransformer

    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"text": BOTH, "length": range(66)})
    expected = SentenceEncoder(mini_bundle).encode(BOTH)
    for texts in (np.array(BOTH), np.array(BOTH, object)):
        assert np.array_equal(SentenceVectorizer(mini_bundle).fit_transform(texts), expected)
    vectorizer = SentenceVectorizer(mini_bundle).set_output(transform="pandas")
    table = vectorizer.fit_transform(frame["text"])
    assert list(table.columns) == [f"sentencevectorizer{i}" for i in range(32)]
    assert table.to_numpy().dtype == np.float32 and np.array_equal(table, expected)
    both = ColumnTransformer([("text", SentenceVectorizer(mini_bundle), "text")], remainder="passthrough")
    assert both.fit_transform(frame).shape == (66, 33)
    table = r"expected a list or a column of texts, got a table of shape \[66, 1\]"
    raises(ValueError, table, vectorizer.transform, frame[["text"]])
    raises(ValueError, "got one text", vectorizer.transform, "Anna")


def test_queries_and_texts_are_encoded_alike(mini_bundle: Path) -> None:
    langchain, llamaindex = XsentEmbeddings(mini_bundle), XsentEmbedding(path=str(mini_bundle))
    expected = SentenceEncoder(mini_bundle).encode(ENGLISH).tolist()
    for many in (langchain.aembed_documents, llamaindex.aget_text_embedding_batch):
        assert asyncio.run(many(ENGLISH)) == expected
    for one in (langchain.embed_query, llamaindex.get_query_embedding, llamaindex.get_text_embedding):
        assert one(ENGLISH[1]) == expected[1]
    for later in (langchain.aembed_query, llamaindex.aget_query_embedding, llamaindex.aget_text_embedding):
        assert asyncio.run(later(ENGLISH[1])) == expected[1]
    assert langchain.embed_documents([]) == []


def test_llamaindex_is_stored_and_opened_again(
    mini_bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(mini_bundle.parent)
    embedding = XsentEmbedding(path=mini_bundle.name, truncate_dim=8, on_long="split")
    assert (embedding.model_name, embedding.class_name()) == ("mini", "XsentEmbedding")
    monkeypatch.chdir(tmp_path)  # the path does not depend on where one is
    stored = json.loads(embedding.to_json())
    for again in (XsentEmbedding.from_dict(stored), pickle.loads(pickle.dumps(embedding))):
        assert again.to_dict() == stored
        assert again.get_text_embedding(LONG) == embedding.get_text_embedding(LONG)
    mine, other = stored["fingerprint"], SentenceEncoder().fingerprint
    message = f"has fingerprint {other}, expected {mine}"
    raises(FingerprintError, message, XsentEmbedding.from_dict, {**stored, "path": None})
    raises(ValueError, "truncate_dims", XsentEmbedding, truncate_dims=128)


def test_a_collection_opened_later_finds_its_function(
    mini_bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(mini_bundle.parent)
    function = XsentEmbeddingFunction(mini_bundle.name, truncate_dim=8, on_long="split")
    notes = open_chroma(tmp_path).create_collection("notes", embedding_function=function)
    notes.add(IDS, documents=SOME)
    expected = SentenceEncoder(mini_bundle).encode(SOME, truncate_dim=8)
    assert np.array_equal(notes.get(IDS, include=["embeddings"])["embeddings"], expected)

    monkeypatch.chdir(tmp_path)  # the path does not depend on where one is
    again = open_chroma(tmp_path).get_collection("notes")
    assert again.configuration["embedding_function"].get_config() == function.get_config()
    found = again.query(query_texts=GERMAN, n_results=3)
    queries = SentenceEncoder(mini_bundle).encode(GERMAN, truncate_dim=8)
    rows, cosines = nearest(queries, expected, k=3)
    assert np.array_equal(np.array(found["ids"], int), rows)
    assert np.allclose(found["distances"], 1 - cosines, atol=1e-6)


def test_another_encoder_is_refused_with_both_named(mini_bundle: Path, tmp_path: Path) -> None:
    function, other = XsentEmbeddingFunction(mini_bundle), XsentEmbeddingFunction()
    notes = open_chroma(tmp_path).create_collection("notes", embedding_function=function)
    notes.modify(configuration={"embedding_function": function})
    named = f"created with the encoder {function.encoder.fingerprint}, this one is {other.encoder.fingerprint}"
    raises(FingerprintError, named, notes.modify, configuration={"embedding_function": other})
    short = XsentEmbeddingFunction(mini_bundle, truncate_dim=8)
    raises(ValueError, "truncate_dim = None, not 8", notes.modify, configuration={"embedding_function": short})


def test_a_collection_whose_bundle_was_replaced_is_not_searched(mini_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.symlink_to(mini_bundle)
    mine = XsentEmbeddingFunction(bundle)
    client = open_chroma(tmp_path / "store")
    client.create_collection("notes", embedding_function=mine).add(IDS, documents=SOME)
    bundle.unlink()
    bundle.symlink_to(builtin_path())
    Lazy("xsent_apps.chroma:_encoder").cache_clear()  # as in another process
    named = f"created with the encoder {mine.encoder.fingerprint}, this one is [0-9a-f]+;"
    with pytest.raises((ValueError, FingerprintError), match=named):
        client.get_collection("notes").query(query_texts=SOME)


def test_mteb_compares_vectors_as_we_do(mini_bundle: Path) -> None:
    encoder = SentenceEncoder(mini_bundle)
    ours = XsentEncoder(mini_bundle)
    vectors = mteb_encode(ours, ENGLISH, batch_size=4)
    assert np.allclose(ours.similarity(vectors, vectors), encoder.similarity(vectors, vectors), atol=1e-6)
    assert mteb_encode(ours, ENGLISH, precision="int8").dtype == np.int8
    raises(ValueError, "packed bits", mteb_encode, ours, ENGLISH, precision="binary")


def test_mteb_keeps_results_of_other_settings_apart(mini_bundle: Path) -> None:
    metas = [XsentEncoder(mini_bundle, truncate_dim=dim, on_long=on) for dim in (None, 8) for on in ("warn", "split")]
    metas += [XsentEncoder(space="all-MiniLM-L6-v2"), XsentEncoder()]
    assert len({meta.mteb_model_meta.model_name_with_experiment for meta in metas}) == 6
    meta = XsentEncoder().mteb_model_meta
    assert (meta.embed_dim, meta.max_tokens, meta.license) == (384, 254, "cc-by-sa-4.0")
    assert 30 < meta.memory_usage_mb < 33
