"""The options of an export, and the part of a checkpoint that they ask for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
from commands import raises

from xsent.bundle import builtin_path
from xsent.errors import DataError, ParityError
from xsent_export.export import export
from xsent_export.options import BundleSpec, ExportOptions, count_pieces, pruned, trained_depths, trained_dims
from xsent_export.parity import held_out_pairs
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint


@pytest.fixture
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    """The tiny checkpoint, as if it had been trained with prefixes of both kinds."""
    whole = load_checkpoint(mini_checkpoint)
    stages = [{"num_layers": 2, "prefixes": [15, 16, 32], "layer_prefixes": [1, 2]}]
    return replace(whole, about={**whole.about, "recipe": {"stages": stages}})


def test_only_trained_parts_can_be_kept(checkpoint: Checkpoint, mini_checkpoint: Path) -> None:
    assert (trained_depths(checkpoint), trained_dims(checkpoint)) == ([1, 2], [15, 16, 32])
    assert ExportOptions(num_layers=1, dim=16).spec(checkpoint) == BundleSpec(1, 16)
    whole = load_checkpoint(mini_checkpoint)
    assert (trained_depths(whole), trained_dims(whole)) == ([2], [32])


def test_4_bits_are_not_forced_on_what_cannot_have_them(checkpoint: Checkpoint) -> None:
    read = replace(checkpoint, about={**checkpoint.about, "precision": "int4-table"})
    asked = [ExportOptions(), ExportOptions(precision="int8"), ExportOptions(dim=15)]
    assert [options.spec(read).precision for options in asked] == ["int4-table", "int8", "int8"]


def test_options_that_contradict_each_other_and_the_command_of_some() -> None:
    raises(DataError, "--languages and --sample belong together", ExportOptions, languages=["en"])
    raises(DataError, "--force: not supported by --format onnx", ExportOptions, "onnx", force=True)
    options = ExportOptions("web", languages=["en"], sample=Path("text"), num_layers=0)
    assert options.command == "xsent-export CHECKPOINT OUT --format web --layers 0 --languages en --sample TEXT"


def test_languages_keep_the_vectors_of_their_sentences(checkpoint: Checkpoint, tmp_path: Path) -> None:
    sample, lines = tmp_path / "sample.txt", checkpoint.validation.read_text().splitlines()
    sample.write_text("".join(line.split("\t", 2)[2].replace("\t", "\n") + "\n" for line in lines if "\tfr\t" in line))
    texts = sample.read_text().splitlines()
    with pruned(checkpoint, ["en", "fr"], sample) as small:
        before, after = CheckpointEncoder(checkpoint).encode(texts), CheckpointEncoder(small).encode(texts)
        assert np.array_equal(before, after) and small.languages == ["en", "fr"]
        assert small.config.vocab_size < checkpoint.config.vocab_size
        assert held_out_pairs(small, None).keys() == {"fr"}
        processor = sentencepiece.SentencePieceProcessor(model_file=str(small.tokenizer))
    for text in ("und Ω 猫 🙂", "Zażółć gęślą jaźń"):  # without its pieces it is still encoded
        ids = processor.encode(text)
        assert processor.unk_id() not in ids and max(ids) < small.config.vocab_size
    counts, of_pairs = (count_pieces(checkpoint, ["en", "fr"], file) for file in (sample, checkpoint.validation))
    plain = tmp_path / "plain.tsv"
    plain.write_text("".join(f"test\tfr\t{text}\n" for text in texts) + "test\tde\tNein\n")
    assert np.array_equal(count_pieces(checkpoint, ["en", "fr"], plain), counts)
    assert np.array_equal(counts, of_pairs)
    plain.write_text("".join(f"{text}\tfr\u00ad\n" for text in texts))  # of two columns, which may be any text
    pieces = [piece for text in texts for piece in checkpoint.load_tokenizer().encode(text)]
    assert count_pieces(checkpoint, ["en", "fr"], plain)[pieces].all()


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
@pytest.mark.parametrize(
    ("options", "text", "message"),  # the text is a sample where languages are named, and else pairs
    [
        ({"num_layers": 3}, "", "--layers 3 was not trained, 1 and 2 were; to use others, train with layer_prefixes"),
        ({"num_layers": 0}, "", r"--layers 0 was not trained, .* static\.toml trains a table without layers"),
        ({"dim": 8}, "", "--dim 8 was not trained, 15, 16 and 32 were; to use others, train with prefixes"),
        ({"dim": 15, "precision": "int4-table"}, "", "--int4-table needs an even number"),
        (
            {"languages": ["en", "fr", "de"]},
            "web\tfr\tone\tun\n",
            "no lines in de, so all their pieces would be removed",
        ),
        ({"languages": ["en", "xx"]}, "a\n", "has no language xx; it has en, fr, de"),
        ({"languages": ["en", "fr"]}, "", "no text in en, fr"),
        ({"languages": ["en", "fr"]}, "web\tde\tone\teins\n", "no text in en, fr"),
        ({"languages": ["fr"]}, "a\n", "--languages fr must include en"),
        ({"languages": ["en"]}, "Anna\n", r"validation\.tsv: no pairs in en$"),
        ({}, "web\tfr\tone\tun\n", "pairs.tsv: no pairs in de, only in fr; add some"),
        ({"tests": Path("nowhere")}, "", "no tests in this folder; expected one of tatoeba, xsr, flores"),
        # pieces are blamed before layers, and a table in 4 bits before either
        ({"languages": ["en", "fr"]}, "Anna\n", "fr mean cosine .*; nothing was written; a larger --sample"),
        (
            {"precision": "int4-table", "least_cosine": 0.9999},
            "",
            "mean cosine .*; --int8 keeps .*; de: P@1 of 9 pairs",
        ),
    ],
)
def test_what_cannot_be_made_or_measured_or_lost_too_much_is_refused(
    options: dict[str, Any], text: str, message: str, checkpoint: Checkpoint, tmp_path: Path
) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text(text)
    given = {"sample": file} if "languages" in options else {"gate_data": file if text else None}
    error = ParityError if "mean cosine" in message else DataError
    raises(error, message, export, checkpoint, tmp_path / "out", ExportOptions(**options, **given))
    assert list(tmp_path.iterdir()) == [file]


def test_a_bundle_has_no_pairs_to_measure_with(mini_bundle: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"^{mini_bundle}: has no held-out pairs to measure with; .* with --gate-data"):
        export(mini_bundle, tmp_path / "out")
    raises(DataError, f"{builtin_path()}: has no held-out pairs", export, Path("builtin"), tmp_path / "out")
