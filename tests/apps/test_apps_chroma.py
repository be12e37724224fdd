"""The embedding function, in collections of Chroma."""

from pathlib import Path

import chromadb
import numpy as np
import pytest
from chromadb.config import Settings
from conftest import check_long_text, sentences

from xsent import FingerprintError, SentenceEncoder, nearest
from xsent.bundle import builtin_path
from xsent_apps import chroma
from xsent_apps.chroma import XsentEmbeddingFunction

TEXTS = sentences("en")[::4]
IDS = [str(number) for number in range(len(TEXTS))]
QUIET = Settings(anonymized_telemetry=False)  # older versions report their use


def test_a_collection_opened_later_finds_its_function(
    mini_bundle: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(mini_bundle.parent)
    function = XsentEmbeddingFunction(mini_bundle.name, truncate_dim=8, on_long="split")
    notes = chromadb.PersistentClient(str(tmp_path), QUIET).create_collection("notes", embedding_function=function)
    notes.add(IDS, documents=TEXTS)
    expected = SentenceEncoder(mini_bundle).encode(TEXTS, truncate_dim=8)
    assert np.array_equal(notes.get(IDS, include=["embeddings"])["embeddings"], expected)

    monkeypatch.chdir(tmp_path)  # the path does not depend on where one is
    again = chromadb.PersistentClient(str(tmp_path), QUIET).get_collection("notes")
    assert again.configuration["embedding_function"].get_config() == function.get_config()
    found = again.query(query_texts=sentences("de"), n_results=3)
    queries = SentenceEncoder(mini_bundle).encode(sentences("de"), truncate_dim=8)
    rows, cosines = nearest(queries, expected, k=3)
    assert np.array_equal(np.array(found["ids"], int), rows)
    assert np.allclose(found["distances"], 1 - cosines, atol=1e-6)


def test_another_encoder_is_refused_with_both_named(mini_bundle: Path, tmp_path: Path) -> None:
    function, other = XsentEmbeddingFunction(mini_bundle), XsentEmbeddingFunction()
    mine, theirs = function.encoder.fingerprint, other.encoder.fingerprint
    named = f"made with the encoder {mine}, this one is {theirs}"
    with pytest.raises(FingerprintError, match=named):
        XsentEmbeddingFunction.build_from_config({**function.get_config(), "path": None})
    with pytest.raises(FingerprintError, match=named):
        other.validate_config_update(function.get_config(), other.get_config())
    with pytest.raises(ValueError, match="truncate_dim = None, not 8"):
        short = XsentEmbeddingFunction(mini_bundle, truncate_dim=8)
        short.validate_config_update(function.get_config(), short.get_config())
    function.validate_config_update(function.get_config(), function.get_config())

    notes = chromadb.PersistentClient(str(tmp_path), QUIET).create_collection("notes", embedding_function=function)
    with pytest.raises(FingerprintError, match=named):
        notes.modify(configuration={"embedding_function": other})


def test_a_collection_whose_bundle_was_replaced_is_not_searched(mini_bundle: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    bundle.symlink_to(mini_bundle)
    mine = XsentEmbeddingFunction(bundle)
    client = chromadb.PersistentClient(str(tmp_path / "store"), QUIET)
    client.create_collection("notes", embedding_function=mine).add(IDS, documents=TEXTS)
    bundle.unlink()
    bundle.symlink_to(builtin_path())
    chroma._encoder.cache_clear()  # as in another process
    with pytest.raises(
        (ValueError, FingerprintError),
        match=f"made with the encoder {mine.encoder.fingerprint}, this one is [0-9a-f]+:",
    ):
        client.get_collection("notes").query(query_texts=TEXTS)


def test_what_is_too_long(mini_bundle: Path) -> None:
    check_long_text(lambda text, **options: XsentEmbeddingFunction(mini_bundle, **options)([text])[0], mini_bundle)
