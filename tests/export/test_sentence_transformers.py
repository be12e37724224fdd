"""Folders for sentence-transformers and their tokenizer, read by the libraries that people read them with."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import MakeCheckpoint
from lazy import Lazy, needs
from sentencepiece import SentencePieceProcessor
from texts import multilingual, train_tokenizer

from xsent.clean import remove_format
from xsent.errors import DataError
from xsent_export.export import export
from xsent_export.hub import write_sentence_transformers
from xsent_export.options import BundleSpec, ExportOptions, Precision
from xsent_export.tokenizer import write_tokenizer
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.model import ModelConfig
from xsent_train.teacher.bert import open_sentence_transformer

pytestmark = [pytest.mark.slow, needs("sentence_transformers")]
sentence_transformers, transformers = Lazy("sentence_transformers"), Lazy("transformers")
DIM = 32  # of make_encoder
STATIC = ModelConfig(900, 32, 0, 4, max_length=50)


def test_whoever_the_umask_lets_may_read_the_files(mini_checkpoint: Path, tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        export(mini_checkpoint, tmp_path / "model", ExportOptions(format="sentence-transformers"))
    finally:
        os.umask(before)
    files = [file for file in (tmp_path / "model").rglob("*") if file.is_file()]
    assert {file.name for file in files} >= {"model.safetensors", "modules.json"}
    assert {f"{file.stat().st_mode & 0o777:o}" for file in files} == {"640"}


def test_ids_are_those_of_sentencepiece_for_every_character(tokenizer_of_scripts: Path, tmp_path: Path) -> None:
    tokenizer = read(tokenizer_of_scripts, tmp_path, STATIC)
    processor = SentencePieceProcessor(model_file=str(tokenizer_of_scripts))
    assert isinstance(tokenizer, transformers.PreTrainedTokenizerFast)
    # All but Chinese characters and Korean syllables, which are like each other, and what belongs to nobody. And but
    # those that stand in for others, and one that is two marks, which NFKC joins with the letter before it.
    blocks = (range(1, 0x3400), range(0xA000, 0xAC00), range(0xF900, 0x11000), range(0x1D400, 0x20000))
    others = {0xFDD0, 0xFDD1, 0xFDD2, 0x344}
    texts = [*multilingual(1000), *(f"x{chr(i)}y" for block in blocks for i in block if i not in others)]
    got, expected = tokenizer(texts)["input_ids"], processor.encode([*map(remove_format, texts)])
    assert [text for text, ids, same in zip(texts, got, expected, strict=True) if ids != same] == []


def read(model: Path, folder: Path, config: ModelConfig) -> Any:  # noqa: ANN401  a type of transformers
    """The tokenizer of a model, as transformers reads it."""
    write_tokenizer(model, folder, config)
    return transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)


def test_ids_become_text_again_and_no_piece_for_padding_is_needed(tokenizer_of_scripts: Path, tmp_path: Path) -> None:
    tokenizer = read(tokenizer_of_scripts, tmp_path, STATIC)
    assert tokenizer.decode(tokenizer("The cat, è 猫 🙂 sleeps.")["input_ids"]) == "the cat, è 猫 🙂 sleeps."
    small = train_small(tmp_path)
    tokenizer, processor = read(small, tmp_path, STATIC), SentencePieceProcessor(model_file=str(small))
    assert tokenizer(multilingual(100))["input_ids"] == processor.encode([*map(remove_format, multilingual(100))])
    assert tokenizer.pad_token_id == processor.unk_id()


def train_small(folder: Path, **settings: object) -> Path:
    """A small model, by default of the kind that can be written."""
    return train_tokenizer(folder, ["the cat sleeps", "a dog runs", "two birds sing"] * 20, 300, **settings)


def test_other_models_are_refused(tmp_path: Path) -> None:
    for settings, reason in (
        ({"model_type": "bpe"}, "expected a unigram model with byte fallback"),
        ({"byte_fallback": False}, "expected a unigram model with byte fallback"),
        ({"normalization_rule_name": "identity"}, "expected normalisation nmt_nfkc_cf, got identity"),
        ({"add_dummy_prefix": False}, "one added before the text"),
        ({"user_defined_symbols": ["<city>"]}, "user-defined symbols"),
    ):
        with pytest.raises(DataError, match=f"{reason}.*use --format onnx") as caught:
            write_tokenizer(train_small(tmp_path, **settings), tmp_path, STATIC)
        assert "\n" not in str(caught.value) and not (tmp_path / "tokenizer.json").exists()


def load(folder: Path, **settings: object) -> Any:  # noqa: ANN401  a type of theirs
    return sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True, **settings)


@pytest.mark.parametrize(("activation", "layers", "dim"), [("gelu", 2, DIM), ("silu", 1, DIM), ("gelu", 0, 8)])
def test_the_library_gives_the_vectors_of_the_checkpoint(
    activation: str, layers: int, dim: int, make_checkpoint: MakeCheckpoint, tmp_path: Path
) -> None:
    checkpoint = make_checkpoint(activation)
    write_sentence_transformers(checkpoint, BundleSpec(layers, dim, "int8"), tmp_path)
    model, texts = load(tmp_path), [*multilingual(300), "the cat " * 100]
    ours = CheckpointEncoder(checkpoint, depth=layers, dim=dim)
    expected, vectors = ours.encode(texts), model.encode(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (301, dim) == (301, model.get_embedding_dimension())
    empty = ~expected.any(axis=1)
    assert empty.any()
    assert vectors[empty].any() == (layers > 0)  # to a BERT a first and a last token are something
    assert np.allclose(np.linalg.norm(vectors[~empty], axis=1), 1, atol=1e-5)
    assert (vectors * expected).sum(axis=1)[~empty].min() >= 0.99999
    kinds = {".json", ".safetensors", ".gitattributes"} | ({".onnx"} if layers else set())  # no code
    assert {file.suffix or file.name for file in tmp_path.rglob("*") if file.is_file()} == kinds
    if layers:
        assert json.loads((tmp_path / "config.json").read_text())["model_type"] == "bert"
        assert model.max_seq_length == model.tokenizer.model_max_length == 64 + 2
        _, report = transformers.AutoModel.from_pretrained(tmp_path, local_files_only=True, output_loading_info=True)
        assert {name: list(problems) for name, problems in report.items() if problems} == {}
        parameters = sum(weight.numel() for weight in checkpoint.load_encoder(layers).parameters())
        # More than the weights: two token types, a pooler, and names.
        assert (tmp_path / "model.safetensors").stat().st_size - 4 * parameters < 4 * DIM * (DIM + 3) + 4500
    texts = ["<pad>", "<PAD> <UNK>", "[MASK]", "a <unk> b <0x41>", "猫", "Le chat dort près de la fenêtre. " * 3]
    assert np.allclose(model.encode(texts), ours.encode(texts), atol=1e-4)
    assert np.allclose(model.encode(texts), np.stack([model.encode(text) for text in texts]), atol=1e-6)
    teacher = open_sentence_transformer(tmp_path)
    assert np.allclose(teacher.encode(["The cat sleeps."]), ours.encode(["The cat sleeps."]), atol=1e-5)


@pytest.mark.parametrize("precision", ["float32", "int8"])
@pytest.mark.parametrize("tool", ["fastembed", "onnx", "openvino"])
def test_other_engines_open_the_folder_as_it_is(
    tool: str, precision: Precision, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder = export(mini_checkpoint, tmp_path / "out", ExportOptions("sentence-transformers", precision)).path
    checkpoint = load_checkpoint(mini_checkpoint)
    texts = [text for text in multilingual(200) if text.strip()]
    expected = CheckpointEncoder(checkpoint, depth=2, dim=32).encode(texts)
    if tool == "fastembed":
        vectors = np.array(list(open_fastembed(folder).embed(texts)))
    else:
        pytest.importorskip("optimum.onnxruntime" if tool == "onnx" else "optimum.intel")  # want older transformers
        vectors = load(folder, backend=tool, model_kwargs={"export": tool == "openvino"}).encode(texts)
    nearness = (vectors * expected).sum(axis=1)
    assert nearness.mean() > (0.999999 if precision == "float32" or tool == "openvino" else 0.995)


def open_fastembed(folder: Path) -> Any:  # noqa: ANN401  a type of theirs
    fastembed = pytest.importorskip("fastembed")
    from fastembed.common.model_description import ModelSource, PoolingType

    fastembed.TextEmbedding.add_custom_model(
        model=str(folder),
        pooling=PoolingType.DISABLED,  # the graph does it
        normalization=True,
        sources=ModelSource(hf="none"),
        dim=32,
        model_file="onnx/model.onnx",
    )
    return fastembed.TextEmbedding(str(folder), specific_model_path=str(folder))


def test_a_part_of_the_vector_is_cut_by_its_reader(make_checkpoint: MakeCheckpoint, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"--dim 8: .*omit it and .*truncate_dim=8") as caught:
        write_sentence_transformers(make_checkpoint(), BundleSpec(2, 8), tmp_path)
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())
