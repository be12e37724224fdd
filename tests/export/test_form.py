"""What can be made of a checkpoint: layers, dimensions, languages, size."""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, DataError, ParityError
from xsent.verification import verify
from xsent_export.export import export, export_checkpoint
from xsent_export.options import BundleSpec, ExportOptions, trained_dims, trained_layers
from xsent_export.prune_vocabulary import count_pieces, pruned
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint


@pytest.fixture
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    """The tiny checkpoint, as if it had been trained with prefixes of both kinds."""
    whole = load_checkpoint(mini_checkpoint)
    stages = [{"name": "t", "num_layers": 2, "steps": 7, "prefixes": [16, 32], "layer_prefixes": [1, 2]}]
    return dataclasses.replace(whole, about={**whole.about, "recipe": {"seed": 1, "stages": stages}})


def test_only_what_was_trained_can_be_kept(checkpoint: Checkpoint) -> None:
    assert (trained_layers(checkpoint), trained_dims(checkpoint)) == ([1, 2], [16, 32])
    assert ExportOptions(num_layers=1, dim=16).spec(checkpoint) == BundleSpec(1, 16)
    with pytest.raises(DataError, match=r"--layers 3 was not trained, 1 and 2 were; train with layer_prefixes"):
        ExportOptions(num_layers=3).spec(checkpoint)
    with pytest.raises(DataError, match=r"--layers 0 was not trained, .* static\.toml trains a table without layers"):
        ExportOptions(num_layers=0).spec(checkpoint)
    with pytest.raises(DataError, match=r"--dim 8 was not trained, 16 and 32 were; train with prefixes"):
        ExportOptions(dim=8).spec(checkpoint)
    stages = [{"num_layers": 2, "layer_prefixes": [0, 2]}]
    trained = dataclasses.replace(checkpoint, about={**checkpoint.about, "recipe": {"stages": stages}})
    assert (trained_layers(trained), trained_dims(trained)) == ([0, 2], [32])


def test_a_part_is_exported_and_measured_against_the_whole(checkpoint: Checkpoint, tmp_path: Path) -> None:
    result = export_checkpoint(checkpoint, tmp_path / "out", ExportOptions(num_layers=1, dim=16))
    encoder = SentenceEncoder(result.path)
    assert (encoder.dim, encoder.bundle.num_layers) == (16, 1)
    trained = CheckpointEncoder(checkpoint, num_layers=1, dim=16)
    texts = ["Anna, Boris, Clara and David.", "Greta"]
    assert (np.einsum("nd,nd->n", encoder.encode(texts), trained.encode(texts)) > 0.995).all()
    assert result.parity is not None and set(result.parity.whole) == {"de", "fr"}
    assert "P@1 whole" in (result.path / "README.md").read_text()


def test_languages_keep_the_vectors_of_their_sentences(checkpoint: Checkpoint, tmp_path: Path) -> None:
    sample, lines = tmp_path / "sample.txt", checkpoint.validation.read_text().splitlines()
    sample.write_text("".join(line.split("\t", 2)[2].replace("\t", "\n") + "\n" for line in lines if "\tfr\t" in line))
    texts = sample.read_text().splitlines()
    with pruned(checkpoint, ["en", "fr"], sample) as small:
        before, after = CheckpointEncoder(checkpoint).encode(texts), CheckpointEncoder(small).encode(texts)
        assert np.array_equal(before, after) and small.languages == ["en", "fr"]
        assert small.config.vocab_size < checkpoint.config.vocab_size
        assert {line.split("\t")[1] for line in small.validation.read_text().splitlines()} == {"fr"}
        processor = sentencepiece.SentencePieceProcessor(model_file=str(small.tokenizer))
    for text in ("und Ω 猫 🙂", "Zażółć gęślą jaźń"):  # without its pieces it is still encoded
        ids = processor.encode(text)
        assert processor.unk_id() not in ids and max(ids) < small.config.vocab_size
    counts, of_pairs = (count_pieces(checkpoint, ["en", "fr"], file) for file in (sample, checkpoint.validation))
    assert np.array_equal(counts, of_pairs)


@pytest.mark.parametrize(
    ("languages", "text", "message"),
    [
        (["en", "fr", "de"], "web\tfr\tone\tun\n", "no pairs in de; their pieces would all go"),
        (["en", "xx"], "a\n", "has no language xx; it has en, fr, de"),
        (["en", "fr"], "", "no text in en, fr"),
        (["en", "fr"], "web\tde\tone\teins\n", "no text in en, fr"),
        (["fr"], "a\n", "--languages fr must name en too"),
    ],
)
def test_samples_that_do_not_fit_are_refused(
    checkpoint: Checkpoint, tmp_path: Path, languages: list[str], text: str, message: str
) -> None:
    sample = tmp_path / "sample.txt"
    sample.write_text(text)
    with pytest.raises(DataError, match=message):
        count_pieces(checkpoint, languages, sample)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"languages": ["en"]}, "--languages and --sample belong together"),
        ({"format": "sentence-transformers", "precision": "int8"}, "--format sentence-transformers is float32"),
        ({"format": "onnx", "tatoeba": Path("t"), "force": True}, "--tatoeba, --force: not for --format onnx"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        ExportOptions(**options)


def test_a_bundle_is_exported_again_in_another_form(mini_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="no held-out pairs to measure with; name a file of pairs by --gate-data, lines of"
    ):
        export(mini_bundle, tmp_path / "none")
    with pytest.raises(DataError, match=rf"^{mini_bundle}: --layers 5 was not trained"):
        export(mini_bundle, tmp_path / "none", ExportOptions(num_layers=5))
    pairs = mini_checkpoint / "validation.tsv"
    options = ExportOptions(languages=["en", "fr"], sample=pairs, gate_data=pairs, tolerance=5)
    result = export(mini_bundle, tmp_path / "out", options)
    assert verify(result.path).sentences >= 5
    assert SentenceEncoder(result.path).languages == ("en", "fr")


def test_what_cannot_be_measured_is_refused(mini_checkpoint: Path, tmp_path: Path) -> None:
    pairs, held_out = tmp_path / "pairs.tsv", mini_checkpoint / "validation.tsv"
    pairs.write_text("web\tfr\tone\tun\nweb\tfr\ttwo\tdeux\n")
    for options, message in (
        ({"gate_data": pairs}, r"pairs.tsv: no pairs in de, but in fr; every language has to be measured"),
        ({"languages": ["en"], "sample": held_out, "gate_data": held_out}, "no text in en"),
        ({"tests": tmp_path / "nowhere"}, "no tests; expected a folder with one of tatoeba, xsr, flores"),
    ):
        with pytest.raises(DataError, match=message):
            export(mini_checkpoint, tmp_path / "out", ExportOptions(**options))
    with pytest.raises(BundleError, match="exists; name another folder"):
        export(tmp_path / "no checkpoint", tmp_path)  # before anything is done


def test_the_card_names_the_command(mini_checkpoint: Path, tmp_path: Path) -> None:
    options = ExportOptions(precision="int4-table", num_layers=2, tolerance=5.0)
    card = (export(mini_checkpoint, tmp_path / "out", options).path / "README.md").read_text()
    assert "`xsent-export CHECKPOINT OUT --int4-table --layers 2 --tolerance 5.0`" in card
    plain = ExportOptions("web", languages=["en"], sample=Path("text"), num_layers=0)
    assert plain.command == "xsent-export CHECKPOINT OUT --format web --layers 0 --languages en --sample TEXT"


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
def test_pieces_are_blamed_before_layers(mini_checkpoint: Path, tmp_path: Path) -> None:
    sample = tmp_path / "sample.txt"
    sample.write_text("Anna\n")
    pairs = mini_checkpoint / "validation.tsv"
    options = ExportOptions(languages=["en", "fr"], sample=sample, gate_data=pairs)
    with pytest.raises(ParityError, match=r"fr mean cosine .*; nothing was written; a larger --sample"):
        export(mini_checkpoint, tmp_path / "out", options)
