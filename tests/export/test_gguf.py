"""GGUF files: what llama.cpp reads in them, and what it cannot express. Needs `pip install llama-cpp-python`."""

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest
from commands import raises
from conftest import MakeCheckpoint, MakeEncoder, save_encoder, sentences
from texts import multilingual, train_tokenizer

from xsent import DataError, SentenceEncoder
from xsent.bundle import builtin_path
from xsent.tokenizer import Tokenizer
from xsent_export.export import export
from xsent_export.gguf import (
    LlamaEncoder,
    odd_strings,
    read_charsmap,
    unigram_model,
    write_charsmap,
    write_gguf,
)
from xsent_export.options import BundleSpec, ExportOptions, Precision
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint
from xsent_train.data.vocabulary import ModelProto

pytest.importorskip("gguf")

DIM = 32  # of make_encoder
TEXTS = [*multilingual(200), *odd_strings()]


needs_llama = pytest.mark.skipif(not find_spec("llama_cpp"), reason="needs `pip install llama-cpp-python`")


@pytest.fixture(scope="module", autouse=True)
def read_once() -> Iterator[None]:
    """All tokenizers here have the same map of characters, which takes a second to read."""
    with mock.patch("xsent_export.gguf.read_charsmap", cache(read_charsmap)):
        yield


def open_llama(folder: Path) -> LlamaEncoder:
    [file] = folder.glob("*.gguf")
    return LlamaEncoder(file)


@needs_llama
@pytest.mark.parametrize(
    ("precision", "depths", "least"),  # a readout is one more layer; random numbers leave no direction of it unused
    [("float32", (), 0.999), ("int4-table", (1, 2), 0.99)],
)
def test_llama_cpp_gives_our_ids_and_vectors(
    precision: Precision,
    depths: tuple[int, ...],
    least: float,
    make_encoder: MakeEncoder,
    tokenizer_of_scripts: Path,
    tmp_path: Path,
) -> None:
    ours = Tokenizer(tokenizer_of_scripts)
    encoder = make_encoder(vocab_size=ours.vocab_size, activation="gelu", norm_eps=1e-12, depths=depths)
    checkpoint = load_checkpoint(save_encoder(encoder, tmp_path / "checkpoint", tokenizer_of_scripts))
    write_gguf(checkpoint, BundleSpec(2, DIM, precision), tmp_path)
    assert (tmp_path / "Modelfile").read_text().endswith("gguf\nPARAMETER num_ctx 66\n")
    model = open_llama(tmp_path)
    config = checkpoint.config
    assert len(TEXTS) > 2000
    assert [text for text in TEXTS if model.ids(text) != [config.first, *ours.encode(text), config.last]] == []
    texts = [text for text in multilingual(60) if 0 < len(ours.encode(text)) < config.max_length]
    cosines = (model.encode(texts) * CheckpointEncoder(checkpoint).encode(texts)).sum(axis=1)
    assert cosines.min() > least


@pytest.mark.slow
def test_a_map_of_characters_is_read_and_written(tokenizer_of_scripts: Path) -> None:
    charsmap = ModelProto.FromString(tokenizer_of_scripts.read_bytes()).normalizer_spec.precompiled_charsmap
    rules = read_charsmap(charsmap)
    assert rules["Ä".encode()] == "ä".encode() and rules["①".encode()] == b"1"
    written = write_charsmap(rules)
    assert read_charsmap(written) == rules and len(written) < 1.1 * len(charsmap)


def test_another_kind_of_tokenizer_is_refused_with_the_number_of_strings(tmp_path: Path) -> None:
    settings = {"treat_whitespace_as_suffix": True, "normalization_rule_name": "identity"}  # an empty map is quick
    path = train_tokenizer(tmp_path, multilingual(300), 700, **settings)
    raises(DataError, r"other ids for \d,\d+ of \d,\d+ sample strings; use --format onnx", unigram_model, path)


def test_what_llama_cpp_cannot_run_is_refused(
    make_checkpoint: MakeCheckpoint, mini_checkpoint: Path, tmp_path: Path
) -> None:
    for activation, layers, dim, reason in (
        ("silu", 2, DIM, "supports only GELU, but this encoder uses silu"),
        ("gelu", 0, DIM, "without layers"),
        ("gelu", 2, 8, "truncate the vectors"),
    ):
        raises(DataError, reason, write_gguf, make_checkpoint(activation), BundleSpec(layers, dim, "int8"), tmp_path)
    options = ExportOptions("gguf", name="../evil")
    raises(DataError, "'../evil' is not a valid file name", export, mini_checkpoint, tmp_path / "out", options)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def built_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(builtin_path(), tmp_path_factory.mktemp("gguf") / "out", ExportOptions("gguf")).path


@pytest.mark.slow
def test_the_built_in_model_is_small_and_has_its_length(built_in: Path) -> None:
    [file] = built_in.glob("*.gguf")
    assert 28e6 < file.stat().st_size < 28.5e6
    assert (built_in / "Modelfile").read_text().endswith("gguf\nPARAMETER num_ctx 256\n")


@needs_llama
def test_the_built_in_model_as_q8_0(built_in: Path) -> None:
    model = open_llama(built_in)
    ours = Tokenizer(builtin_path() / "sentencepiece.model")
    assert [text for text in TEXTS if model.ids(text)[1:-1] != list(ours.encode(text))] == []
    texts = [*sentences("de")[:9], *sentences("fr")[:9]]
    assert (model.encode(texts) * SentenceEncoder(threads=1).encode(texts)).sum(axis=1).mean() > 0.995
