"""Folders of sentence-transformers: opened offline, without pickle and without code of theirs."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import flip_byte
from tiny_bert import WIDTH

from xsent.errors import DataError, MissingExtraError
from xsent_train.teacher.bert import open_sentence_transformer
from xsent_train.teacher.teacher import open_teacher


@pytest.fixture
def model(bert: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(bert, tmp_path / "model"))


def refusal(folder: Path) -> str:
    with pytest.raises(DataError) as caught:
        open_sentence_transformer(folder)
    assert str(folder) in str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_it_encodes_as_the_library_does_and_teaches(model: Path) -> None:
    encoder = open_sentence_transformer(model)
    assert encoder is not None
    from sentence_transformers import SentenceTransformer

    texts = ["a cat", "the dog sleeps", "a cat"]
    reference = SentenceTransformer(str(model), local_files_only=True, device="cpu").encode(texts)
    vectors = encoder.encode(texts)
    assert vectors.dtype == np.float32
    assert np.allclose(vectors, reference / np.linalg.norm(reference, axis=1, keepdims=True), atol=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dim) == (0, WIDTH)
    teacher = open_teacher(model)
    assert teacher.dim == WIDTH
    (model / "README.md").write_text("read me")
    assert open_teacher(model).identity == teacher.identity  # that of its weights
    flip_byte(model / "model.safetensors")
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


def test_code_of_its_own_is_not_run(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = json.loads((model / "modules.json").read_text())
    modules[1]["type"] = "its_own.Pooling"
    (model / "modules.json").write_text(json.dumps(modules))
    (model / "its_own.py").write_text(f"open({str(model / 'ran')!r}, 'w')")
    assert "code of its own, which xsent does not run" in refusal(model)
    assert not (model / "ran").exists()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'xsent\[teacher\]'"):
        open_sentence_transformer(model)


def test_damaged_folders(bert: Path, model: Path) -> None:
    (model / "tokenizer.json").unlink()
    (model / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    assert "its tokenizer is missing" in refusal(model)
    shutil.copytree(bert, model, dirs_exist_ok=True)
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(weights[: len(weights) // 2])
    refusal(model)
    (model / "model.safetensors").unlink()
    assert "model.safetensors" in refusal(model)
    (model / "modules.json").write_text("[{")
    refusal(model)
