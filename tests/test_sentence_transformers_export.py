"""Folders for sentence-transformers: loaded by that library, compared with the trained encoder."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakeCheckpoint
from texts import multilingual

from xsent.errors import DataError
from xsent.export.options import Form
from xsent.export.sentence_transformers import write_sentence_transformers
from xsent.train.checkpoint import CheckpointEncoder
from xsent.train.sentence_transformer import open_sentence_transformer

sentence_transformers = pytest.importorskip("sentence_transformers")
transformers = pytest.importorskip("transformers")

DIM, MAX_LENGTH = 32, 64  # of make_encoder


def load(folder: Path) -> Any:  # noqa: ANN401  a type of theirs
    return sentence_transformers.SentenceTransformer(
        str(folder), device="cpu", local_files_only=True, trust_remote_code=False
    )


@pytest.mark.parametrize(
    ("activation", "layers", "dim"),
    [("gelu", 2, DIM), ("silu", 2, DIM), ("gelu", 1, DIM), ("gelu", 0, DIM), ("gelu", 0, 8)],
)
def test_the_library_gives_the_vectors_of_the_checkpoint(
    activation: str, layers: int, dim: int, make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(activation)
    write_sentence_transformers(checkpoint, Form(layers, dim, "int8"), tmp_path)
    model = load(tmp_path)
    texts = multilingual(1000)
    expected = CheckpointEncoder(checkpoint, num_layers=layers, dim=dim).encode(texts)
    vectors = model.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (1000, dim) == (1000, model.get_embedding_dimension())
    empty = ~expected.any(axis=1)
    assert empty.any()
    assert vectors[empty].any() == (layers > 0)  # to a BERT a first and a last token are something
    assert np.allclose(np.linalg.norm(vectors[~empty], axis=1), 1, atol=1e-5)
    assert (vectors * expected).sum(axis=1)[~empty].min() >= 0.99999
    if layers:
        assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "bert"
        assert model.max_seq_length == MAX_LENGTH + 2


def test_every_weight_is_used_none_is_missing_and_company_moves_no_vector(
    make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint()
    write_sentence_transformers(checkpoint, Form.whole(checkpoint.config), tmp_path)
    _, report = transformers.AutoModel.from_pretrained(
        tmp_path, local_files_only=True, add_pooling_layer=False, output_loading_info=True
    )
    assert {name: list(problems) for name, problems in report.items() if problems} == {}
    parameters = sum(weight.numel() for weight in checkpoint.encoder.parameters())
    assert (tmp_path / "model.safetensors").stat().st_size - 4 * parameters < 4 * DIM + 4000  # token types, and names
    model, texts = load(tmp_path), ["The cat sleeps.", "猫", "Le chat dort près de la fenêtre. " * 3]
    assert np.allclose(model.encode(texts), np.stack([model.encode(text) for text in texts]), atol=1e-6)


@pytest.mark.parametrize("layers", [0, 2])
def test_it_can_teach_holds_no_code_and_takes_control_symbols_for_text(
    layers: int, make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint()
    write_sentence_transformers(checkpoint, Form(layers, DIM), tmp_path)
    assert {file.suffix for file in tmp_path.rglob("*") if file.is_file()} == {".json", ".safetensors"}
    encoder, ours = open_sentence_transformer(tmp_path), CheckpointEncoder(checkpoint, num_layers=layers)
    assert encoder is not None
    assert np.allclose(encoder.encode(["The cat sleeps."]), ours.encode(["The cat sleeps."]), atol=1e-5)
    texts = ["<pad>", "<PAD> <UNK>", "[MASK]", "a <unk> b <0x41>"]
    assert np.allclose(load(tmp_path).encode(texts), ours.encode(texts), atol=1e-4)


def test_a_part_of_the_vector_is_cut_by_its_reader(make_checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--dim 8: .*leave it out and .*truncate_dim=8") as caught:
        write_sentence_transformers(make_checkpoint(), Form(2, 8), tmp_path)
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())
