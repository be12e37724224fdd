"""The embedding, in LlamaIndex."""

import asyncio
import json
import pickle
from pathlib import Path

import pytest
from conftest import LONG, check_long_text, sentences
from llama_index.core import Document, VectorStoreIndex

from xsent import FingerprintError, SentenceEncoder, nearest
from xsent_apps.llamaindex import XsentEmbedding

TEXTS = sentences("en")


def test_vectors_are_the_encoders(mini_bundle: Path) -> None:
    encoder, embedding = SentenceEncoder(mini_bundle), XsentEmbedding(path=str(mini_bundle))
    expected = encoder.encode(TEXTS).tolist()
    assert embedding.get_text_embedding_batch(TEXTS) == expected  # in batches of 10
    assert asyncio.run(embedding.aget_text_embedding_batch(TEXTS)) == expected
    assert embedding.get_text_embedding(TEXTS[1]) == asyncio.run(embedding.aget_text_embedding(TEXTS[1])) == expected[1]
    query = embedding.get_query_embedding(TEXTS[1])
    assert query == asyncio.run(embedding.aget_query_embedding(TEXTS[1])) == expected[1]
    short = XsentEmbedding(path=str(mini_bundle), truncate_dim=8, threads=1)
    assert short.get_text_embedding_batch(TEXTS) == encoder.encode(TEXTS, truncate_dim=8).tolist()


def test_an_index_finds_what_is_nearest(mini_bundle: Path) -> None:
    documents = [Document(text=text) for text in TEXTS]
    index = VectorStoreIndex.from_documents(documents, embed_model=XsentEmbedding(path=str(mini_bundle)))
    retriever = index.as_retriever(similarity_top_k=1)
    found = [retriever.retrieve(text)[0] for text in sentences("de")]
    encoder = SentenceEncoder(mini_bundle)
    rows, cosines = nearest(encoder.encode(sentences("de")), encoder.encode(TEXTS))
    assert [hit.text for hit in found] == [TEXTS[row] for row in rows[:, 0]]
    assert [hit.score for hit in found] == pytest.approx(cosines[:, 0], abs=1e-6)


def test_it_is_stored_and_opened_again(mini_bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(mini_bundle.parent)
    embedding = XsentEmbedding(path=mini_bundle.name, truncate_dim=8, on_long="split")
    assert (embedding.model_name, embedding.class_name()) == ("mini", "XsentEmbedding")
    monkeypatch.chdir(tmp_path)  # the path does not depend on where one is
    stored = json.loads(embedding.to_json())
    for again in (XsentEmbedding.from_dict(stored), pickle.loads(pickle.dumps(embedding))):
        assert again.to_dict() == stored
        assert again.get_text_embedding(LONG) == embedding.get_text_embedding(LONG)
    mine, other = stored["fingerprint"], SentenceEncoder().fingerprint
    with pytest.raises(FingerprintError, match=f"has fingerprint {other}, expected {mine}"):
        XsentEmbedding.from_dict({**stored, "path": None})


def test_what_is_too_long(mini_bundle: Path) -> None:
    check_long_text(
        lambda text, **options: XsentEmbedding(path=str(mini_bundle), **options).get_text_embedding(text), mini_bundle
    )
    with pytest.raises(ValueError, match="on_long"):
        XsentEmbedding(path=str(mini_bundle), on_long="cut")


def test_a_misspelt_option_is_refused() -> None:
    with pytest.raises(ValueError, match="truncate_dims"):
        XsentEmbedding(truncate_dims=128)
