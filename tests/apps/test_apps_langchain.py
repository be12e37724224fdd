"""The embeddings, in LangChain."""

import asyncio
from pathlib import Path

import pytest
from conftest import check_long_text, sentences
from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from xsent import SentenceEncoder, nearest
from xsent_apps.langchain import XsentEmbeddings

TEXTS = sentences("en")


def test_vectors_are_the_encoders(mini_bundle: Path) -> None:
    encoder, embeddings = SentenceEncoder(mini_bundle), XsentEmbeddings(mini_bundle)
    assert isinstance(embeddings, Embeddings)
    expected = encoder.encode(TEXTS).tolist()
    assert embeddings.embed_documents(TEXTS) == asyncio.run(embeddings.aembed_documents(TEXTS)) == expected
    assert embeddings.embed_query(TEXTS[1]) == asyncio.run(embeddings.aembed_query(TEXTS[1])) == expected[1]
    assert embeddings.embed_documents([]) == []
    short = XsentEmbeddings(mini_bundle, truncate_dim=8, threads=1)
    assert short.embed_documents(TEXTS) == encoder.encode(TEXTS, truncate_dim=8).tolist()


def test_a_store_finds_what_is_nearest(mini_bundle: Path) -> None:
    store = InMemoryVectorStore.from_texts(TEXTS, XsentEmbeddings(mini_bundle))
    found = [store.similarity_search_with_score(text, k=1)[0] for text in sentences("de")]
    encoder = SentenceEncoder(mini_bundle)
    rows, cosines = nearest(encoder.encode(sentences("de")), encoder.encode(TEXTS))
    assert [document.page_content for document, _ in found] == [TEXTS[row] for row in rows[:, 0]]
    assert [score for _, score in found] == pytest.approx(cosines[:, 0], abs=1e-6)


def test_what_is_too_long(mini_bundle: Path) -> None:
    check_long_text(lambda text, **options: XsentEmbeddings(mini_bundle, **options).embed_query(text), mini_bundle)
