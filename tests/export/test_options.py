"""The options of an export, and the part of a checkpoint that they ask for."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece

from xsent.errors import DataError, ParityError
from xsent_export.export import export
from xsent_export.options import BundleSpec, ExportOptions, count_pieces, pruned, trained_depths, trained_dims
from xsent_export.parity import held_out_pairs
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint


@pytest.fixture
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(mini_checkpoint)


def test_only_trained_parts_can_be_kept(checkpoint: Checkpoint) -> None:
    stages = [{"num_layers": 2, "prefixes": [16, 32], "layer_prefixes": [1, 2]}]
    checkpoint = replace(checkpoint, about={**checkpoint.about, "recipe": {"stages": stages}})
    assert (trained_depths(checkpoint), trained_dims(checkpoint)) == ([1, 2], [16, 32])
    assert ExportOptions(num_layers=1, dim=16).spec(checkpoint) == BundleSpec(1, 16)
    for options, message in (
        (ExportOptions(num_layers=3), "--layers 3 was not trained, 1 and 2 were; train with layer_prefixes to have"),
        (ExportOptions(num_layers=0), r"--layers 0 was not trained, .* static\.toml trains a table without layers"),
        (ExportOptions(dim=8), "--dim 8 was not trained, 16 and 32 were; train with prefixes"),
    ):
        with pytest.raises(DataError, match=message):
            options.spec(checkpoint)
    stages = [{"num_layers": 2, "layer_prefixes": [0, 2]}]
    trained = replace(checkpoint, about={**checkpoint.about, "recipe": {"stages": stages}})
    assert (trained_depths(trained), trained_dims(trained)) == ([0, 2], [32])


def test_options_that_contradict_each_other_and_the_command_of_some() -> None:
    with pytest.raises(DataError, match="--languages and --sample belong together"):
        ExportOptions(languages=["en"])
    with pytest.raises(DataError, match="--force: not for --format onnx"):
        ExportOptions("onnx", force=True)
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
    assert np.array_equal(counts, of_pairs)


def test_samples_that_do_not_fit_are_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    for languages, text, message in (
        (["en", "fr", "de"], "web\tfr\tone\tun\n", "no pairs in de; their pieces would all go"),
        (["en", "xx"], "a\n", "has no language xx; it has en, fr, de"),
        (["en", "fr"], "", "no text in en, fr"),
        (["en", "fr"], "web\tde\tone\teins\n", "no text in en, fr"),
        (["fr"], "a\n", "--languages fr must name en too"),
    ):
        (tmp_path / "sample.txt").write_text(text)
        with pytest.raises(DataError, match=message):
            count_pieces(checkpoint, languages, tmp_path / "sample.txt")


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
def test_exports_that_cannot_be_measured_or_lost_too_much_are_refused(
    mini_checkpoint: Path, mini_bundle: Path, tmp_path: Path
) -> None:
    pairs, sample, held_out = tmp_path / "pairs.tsv", tmp_path / "sample.txt", mini_checkpoint / "validation.tsv"
    pairs.write_text("web\tfr\tone\tun\nweb\tfr\ttwo\tdeux\n")
    sample.write_text("Anna\n")
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"gate_data": pairs}, DataError, "pairs.tsv: no pairs in de, but in fr; every language has to be measured"),
        ({"languages": ["en"], "sample": held_out, "gate_data": held_out}, DataError, "no text in en"),
        ({"tests": tmp_path / "nowhere"}, DataError, "no tests; expected a folder with one of tatoeba, xsr, flores"),
        (
            {"languages": ["en", "fr"], "sample": sample, "gate_data": held_out},
            ParityError,
            "fr mean cosine .*; nothing was written; a larger --sample",  # pieces are blamed before layers
        ),
    ]
    for options, error, message in cases:
        with pytest.raises(error, match=message):
            export(mini_checkpoint, tmp_path / "out", ExportOptions(**options))
    with pytest.raises(DataError, match="no held-out pairs to measure with; name a file of pairs by --gate-data"):
        export(mini_bundle, tmp_path / "out")
    with pytest.raises(DataError, match=rf"^{mini_bundle}: --layers 5 was not trained"):
        export(mini_bundle, tmp_path / "out", ExportOptions(num_layers=5))
