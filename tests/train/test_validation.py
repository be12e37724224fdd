"""Validation against values worked out by hand."""

import math
from pathlib import Path

import pytest
import sentencepiece as spm
import torch

from xsent_train.model import Encoder, ModelConfig
from xsent_train.stage_loop import Validation


def test_p1_and_loss_over_the_english_sentences_of_all_languages(toy_tokenizer: Path, tmp_path: Path) -> None:
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    cat, dog, fish = (processor.piece_to_id(f"▁{word}") for word in ("cat", "dog", "fish"))
    pairs = [("de", "cat", "dog"), ("de", "dog", "fish"), ("fr", "cat", "cat"), ("fr", "fish", "fish")]
    path = tmp_path / "validation.tsv"
    path.write_text("".join(f"talk\t{language}\t{en}\t{other}\n" for language, en, other in pairs))
    encoder = Encoder(ModelConfig(vocab_size=processor.vocab_size(), dim=8, num_layers=0))
    with torch.no_grad():  # three sentences at right angles
        for axis, piece in enumerate((cat, dog, fish)):
            encoder.table.weight[piece] = 3.0 * torch.eye(8)[axis]

    measured = Validation(path, toy_tokenizer).measure(encoder)

    assert measured["p1"] == {"de": 0.0, "fr": 100.0}  # "cat" stands in two pairs and is one candidate
    wrong, right = math.log(math.exp(20) + 2), math.log(1 + 2 * math.exp(-20))
    assert measured["loss"]["de"] == pytest.approx(wrong, rel=1e-5)
    assert measured["loss"]["fr"] == pytest.approx(right, abs=1e-6)
