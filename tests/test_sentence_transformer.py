"""Folders of sentence-transformers: opened offline, without pickle and without code of theirs."""

import json
import shutil
import socket
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from xsent import models
from xsent.errors import DataError, MissingExtraError
from xsent.train.sentence_transformer import open_sentence_transformer
from xsent.train.teacher import open_teacher

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{letter}" for letter in LETTERS)]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of one random layer that reads letters, as the library saves it."""
    pytest.importorskip("sentence_transformers")
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    words = Transformer(str(folder))
    saved = tmp_path_factory.mktemp("sentence") / "model"
    SentenceTransformer(modules=[words, Pooling(words.get_embedding_dimension())], device="cpu").save(str(saved))
    return saved


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(original, tmp_path / "model"))


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        open_sentence_transformer(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_encodes_as_the_library_does_and_offline(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> NoReturn:
        raise AssertionError("nothing may be looked up")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    encoder = open_sentence_transformer(model)
    assert encoder is not None
    from sentence_transformers import SentenceTransformer

    texts = ["a cat", "the dog sleeps", "a cat"]
    reference = SentenceTransformer(str(model), local_files_only=True, device="cpu").encode(texts)
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, reference / np.linalg.norm(reference, axis=1, keepdims=True), atol=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dim) == (0, 16)


def test_it_teaches_and_its_identity_is_its_weights(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name = "sentence-transformers"
        load = staticmethod(lambda: open_sentence_transformer)

    monkeypatch.setattr(models, "entry_points", lambda group: [Entry])
    teacher = open_teacher(model)
    assert teacher.dim == 16
    (model / "README.md").write_text("read me")
    assert open_teacher(model).identity == teacher.identity
    weights = bytearray((model / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (model / "model.safetensors").write_bytes(weights)
    assert open_teacher(model).identity != teacher.identity


def test_pickled_weights_are_refused_or_not_read(model: Path, tmp_path: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(b"anything")  # beside safetensors
    assert open_sentence_transformer(model) is not None
    folder = tmp_path / "pickled"
    (folder / "0_Transformer").mkdir(parents=True)
    assert open_sentence_transformer(folder) is None
    (folder / "modules.json").write_text("[]")
    (folder / "0_Transformer/pytorch_model.bin").write_bytes(b"anything")
    assert "pytorch_model.bin: pickled weights" in refusal(folder)


def test_code_of_its_own_is_not_run(model: Path) -> None:
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["type"] = "its_own.Pooling"
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "its_own.py").write_text(f"open({str(model / 'ran')!r}, 'w')")
    assert "code of its own, which xsent does not run" in refusal(model)
    assert not (model / "ran").exists()


def test_damaged_folders(original: Path, model: Path) -> None:
    for name in ("tokenizer.json", "vocab.txt"):
        (model / name).unlink(missing_ok=True)
    assert "its tokenizer is missing" in refusal(model)
    shutil.copytree(original, model, dirs_exist_ok=True)
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    refusal(model)
    (model / "model.safetensors").unlink()
    assert "model.safetensors" in refusal(model)
    (model / "modules.json").write_text("[{")
    refusal(model)


def test_the_library_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "modules.json").write_text("[]")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'xsent\[teacher\]'"):
        open_sentence_transformer(tmp_path)
