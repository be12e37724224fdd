"""A teacher's layers in our encoder, and its first rows: sentence-transformers beside ours."""

from pathlib import Path

import numpy as np
import pytest
import sentencepiece as spm
import torch
from tiny_bert import WIDTH, WORDS, write_tiny_bert
from trainings import toy_store

from xsent.similarity import cosine_similarity
from xsent_train.data.store import Store
from xsent_train.model import Encoder
from xsent_train.teacher.bert import TeacherBert, TeacherInput, english_rows, piece_counts, pools_by_mean, read_teacher
from xsent_train.tokens import Tokens, to_tokens

TEXTS = ["The cat sleeps under the old tree.", "dog", "Never see a wet bird before the stone house!", "King and queen?"]


@pytest.fixture(scope="module")
def teacher(bert: Path) -> TeacherBert:
    return read_teacher(bert)


def read(teacher: TeacherBert, texts: list[str]) -> Tokens:
    """Texts as the pieces of a teacher."""
    ids = [encoding.ids for encoding in teacher.tokenizer.encode_batch(texts, add_special_tokens=False)]
    return to_tokens(ids, 38)


@torch.no_grad()
@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_the_whole_teacher_gives_the_vectors_of_sentence_transformers(activation: str, tmp_path: Path) -> None:
    sentence_transformers = pytest.importorskip("sentence_transformers")
    folder = write_tiny_bert(tmp_path / "bert", hidden_act=activation)
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


@pytest.mark.parametrize(("layers", "width"), [(12, 32), (7, 16)])
def test_a_teacher_may_have_more_layers_than_an_encoder(layers: int, width: int, tmp_path: Path) -> None:
    teacher = read_teacher(write_tiny_bert(tmp_path / "bert", layers=layers, hidden_size=width))
    assert len(teacher.encoder(max_length=8).layers) == layers


@pytest.fixture(scope="module")
def store(toy_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, spm.SentencePieceProcessor]:
    store = toy_store(tmp_path_factory.mktemp("store"), toy_tokenizer, pairs=600)
    return store, spm.SentencePieceProcessor(model_file=str(toy_tokenizer))


def test_english_pieces_start_at_the_teachers_rows(
    teacher: TeacherBert, store: tuple[Store, spm.SentencePieceProcessor]
) -> None:
    processor = store[1]
    counts = piece_counts(store[0], len(processor))
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


def test_the_input_of_a_teacher_is_the_mean_of_its_rows(teacher: TeacherBert) -> None:
    inputs = TeacherInput(teacher)
    known = teacher.tokenizer.get_vocab()
    vectors = inputs.encode(["cat dog", "\u200b", "fish"])
    assert np.allclose(vectors[0], teacher.table[[known["cat"], known["dog"]]].mean(dim=0), atol=1e-6)
    assert np.allclose(vectors[2], teacher.table[[known[p] for p in ("f", "##i", "##s", "##h")]].mean(dim=0), atol=1e-6)
    assert not vectors[1].any() and not inputs.encode(["", ""]).any()
    assert inputs.dim == WIDTH and inputs.identity == f"{teacher.identity}-input"


@pytest.mark.parametrize(
    ("pooling", "good"),
    [
        ({}, True),
        ({"pooling_mode": "mean"}, True),
        ({"pooling_mode": ["mean"], "include_prompt": True}, True),
        ({"pooling_mode": "cls"}, False),
        ({"pooling_mode": ["mean", "cls"]}, False),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, True),
        ({"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}, False),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": True}, False),
    ],
)
def test_the_mean_alone_pools(pooling: dict[str, object], good: bool) -> None:
    assert pools_by_mean(pooling) is good
