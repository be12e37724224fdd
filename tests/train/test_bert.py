"""Folders of sentence-transformers: opened offline, without pickle and without code; layers and rows to start from."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import sentencepiece as spm
import torch
from commands import flip_byte
from tiny_bert import WIDTH, WORDS, write_tiny_bert
from trainings import toy_store

from xsent.errors import DataError, MissingExtraError
from xsent.similarity import cosine_similarity
from xsent_train.model import Encoder
from xsent_train.teacher.bert import (
    TeacherBert,
    TeacherInput,
    english_rows,
    open_sentence_transformer,
    piece_counts,
    pools_by_mean,
    read_teacher,
)
from xsent_train.teacher.open import open_teacher
from xsent_train.tokens import Tokens, to_tokens


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
    assert "its own code, which xsent does not run" in refusal(model)
    assert not (model / "ran").exists()
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .xsent\[teacher\]."):
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


TEXTS = ["The cat sleeps under the old tree.", "dog", "Never see a wet bird before the stone house!", "King and queen?"]


@pytest.fixture(scope="module")
def teacher(bert: Path) -> TeacherBert:
    return read_teacher(bert)


def read(teacher: TeacherBert, texts: list[str]) -> Tokens:
    """Texts as the pieces of a teacher."""
    ids = [encoding.ids for encoding in teacher.tokenizer.encode_batch(texts, add_special_tokens=False)]
    return to_tokens(ids, 38)


@torch.no_grad()
@pytest.mark.parametrize(("activation", "layers"), [("gelu", 12), ("silu", 3)])
def test_the_whole_teacher_gives_the_vectors_of_sentence_transformers(
    activation: str, layers: int, tmp_path: Path
) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = write_tiny_bert(tmp_path / "bert", layers=layers, hidden_act=activation)
    teacher = read_teacher(folder)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu").encode(TEXTS)
    ours = teacher.encoder(max_length=38)(read(teacher, TEXTS)).numpy()
    assert (np.diag(cosine_similarity(ours, theirs)) > 1 - 1e-6).all()


@torch.no_grad()
def test_chosen_layers_stand_on_each_other(teacher: TeacherBert) -> None:
    whole = teacher.encoder(max_length=20)
    two = Encoder(Encoder(whole.config).first(2).config)
    two.load_state_dict({"table.weight": teacher.table, **teacher.layers([0, 2], max_length=20)})
    del whole.layers[1]
    sentences = read(teacher, TEXTS)
    assert torch.equal(two.eval()(sentences), whole(sentences))
    assert not torch.allclose(two(sentences), teacher.encoder(max_length=20).first(2)(sentences), atol=1e-2)


def test_english_pieces_start_at_its_rows(teacher: TeacherBert, toy_tokenizer: Path, tmp_path: Path) -> None:
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    counts = piece_counts(toy_store(tmp_path, toy_tokenizer, pairs=600), len(processor))
    rows = english_rows(teacher, processor, counts)
    table, known = teacher.table, teacher.tokenizer.get_vocab()
    mean = table.mean(dim=0)
    assert torch.equal(rows[processor.piece_to_id("▁cat")], table[known["cat"]])
    spelled = table[[known[piece] for piece in ("f", "##i", "##s", "##h")]].mean(dim=0)
    assert "fish" not in WORDS and torch.equal(rows[processor.piece_to_id("▁fish")], spelled)
    foreign = ((counts[0] == 0) & (counts[1] > 50)).nonzero()[0].tolist()
    assert len(foreign) > 5
    for piece in (*foreign, processor.piece_to_id("<0x41>")):
        assert torch.equal(rows[piece], mean)
    for piece, symbol in ((3, "[CLS]"), (4, "[SEP]"), (1, "[UNK]")):
        assert torch.equal(rows[piece], table[known[symbol]])
    inputs = TeacherInput(teacher)  # the means of rows
    vectors = inputs.encode(["cat dog", "\u200b", "fish"])
    assert np.allclose(vectors[0], teacher.table[[known["cat"], known["dog"]]].mean(dim=0), atol=1e-6)
    assert np.allclose(vectors[2], spelled, atol=1e-6)
    assert not vectors[1].any() and not inputs.encode(["", ""]).any()
    assert inputs.dim == WIDTH and inputs.identity == f"{teacher.identity}-input"


def test_the_mean_alone_pools() -> None:
    mean, cls = ({"pooling_mode_mean_tokens": mean, "pooling_mode_cls_token": not mean} for mean in (True, False))
    for good in ({}, {"pooling_mode": "mean"}, {"pooling_mode": ["mean"], "include_prompt": True}, mean):
        assert pools_by_mean(good)
    for bad in ({"pooling_mode": ["mean", "cls"]}, cls, {**mean, "pooling_mode_max_tokens": True}):
        assert not pools_by_mean(bad)
