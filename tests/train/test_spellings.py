"""Sentences in other spellings: still near to what they were, and a function of the seed."""

from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import torch

from xsent_train.data.changes import Spellings, mistype, other_spelling
from xsent_train.tokens import open_tokenizer, to_tokens


def test_accents_go_and_umlauts_are_two_letters() -> None:
    for text, expected in (
        ("über die straße", {"uber die strasse", "ueber die strasse"}),
        ("é già così", {"e gia cosi"}),
        ("мой ёж", {"мой еж"}),
        ("がんばる", {"がんばる"}),  # its marks make other letters
        ("", {""}),
    ):
        assert expected <= {other_spelling(text, np.random.default_rng(seed)) for seed in range(50)}


def test_typing_errors_stay_inside_words() -> None:
    text = "The 1989 treaty was signed by all of them."
    for seed in range(100):
        wrong = mistype(text, np.random.default_rng(seed))
        assert wrong[:10] == "The 1989 t" and wrong.endswith(".")
        assert SequenceMatcher(None, text, wrong).ratio() > 0.9
    assert mistype("東京は雨です 12345 a", np.random.default_rng(0)) == "東京は雨です 12345 a"


def test_a_share_of_the_sentences_is_respelled_and_a_resume_finds_the_same(mini_checkpoint: Path) -> None:
    processor = open_tokenizer(mini_checkpoint / "sentencepiece.model")
    batch = to_tokens(processor.encode(["the cat sleeps in the kitchen", "die katze schläft in der küche"] * 50))
    one, same, other = (Spellings(processor, 0.3, 12).respell(batch, [1, seed]) for seed in (2, 2, 3))
    assert torch.equal(one.ids, same.ids) and not torch.equal(one.ids[:50], other.ids[:50])
    assert int(one.lengths.sum()) == len(one.ids) and int(one.lengths.max()) <= max(12, int(batch.lengths.max()))
    before, after = (side.ids.split(side.lengths.tolist()) for side in (batch, one))
    changed = sum(not torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert 15 <= changed <= 45
