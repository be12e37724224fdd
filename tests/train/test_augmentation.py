"""Sentences in other spellings, and pairs made of others by swapping two words."""

from difflib import SequenceMatcher
from pathlib import Path

import numpy as np
import pytest
import torch

from xsent_train.data.augmentation import Spellings, Swaps, mistype, other_spelling
from xsent_train.data.vocabulary import ModelProto, SentencePiece, maskable_pieces, open_model
from xsent_train.tokens import Tokens, open_tokenizer, to_tokens


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


# Pieces, how common they are, and where they lie: words and their translations together, nurses near teachers.
KINDS: list[tuple[str, float, list[float]]] = [
    ("▁the ▁die", 0.05, [1, 0, 0, 0, 0]),
    ("▁nurse ▁schw ester", 1e-4, [0, 1, 0, 0, 0]),
    ("▁teacher ▁lehrerin", 1e-4, [0, 1, 1.5, 0, 0]),
    ("▁teachers", 1e-4, [0, 1, 1.6, 0, 0]),
    ("▁doctor ▁arzt", 1e-4, [0, 1, 0, 2, 0]),
    ("▁called ▁rief", 1e-4, [0, -1, 0, 1, 0]),
    ("▁and ▁und", 0.02, [0, 0, 0, 0, 1]),
    ("▁three ▁drei", 1e-4, [0, 0, -1, 1, 2]),
    ("▁four ▁vier", 1e-4, [0, 0, -1, 1.5, 2]),
    ("▁1998", 1e-4, [0, 0, 1, 0, 4]),
    ("▁1989", 1e-4, [0, 0, 1, 0, 4.5]),
    ("▁7", 1e-4, [0, 0, -2, 0, 1]),
    (".", 0.01, [0, 0, 0, 0, 0]),
]
PIECES = {name: (share, place) for names, share, place in KINDS for name in names.split()}
NAMES = list(PIECES)


@pytest.fixture(scope="module")
def swaps() -> Swaps:
    pieces = [SentencePiece(piece=name, score=float(np.log(share))) for name, (share, _) in PIECES.items()]
    unknown = SentencePiece(piece="<unk>", type=SentencePiece.UNKNOWN)
    table = torch.tensor([*(place for _, place in PIECES.values()), [0.0] * 5])
    table[-1] = -table.sum(dim=0)  # so that their mean, which is taken away, is zero
    processor = open_model(ModelProto(pieces=[*pieces, unknown]).SerializeToString())
    return Swaps(table, processor, maskable_pieces(processor))


def ids(text: str) -> np.ndarray:
    return np.array([NAMES.index(name) for name in text.split()])


def text(pieces: np.ndarray) -> str:
    return " ".join(NAMES[piece] for piece in pieces)


def tokens(*texts: str) -> Tokens:
    return to_tokens([ids(one).tolist() for one in texts])


ENGLISH = "▁the ▁nurse ▁called ▁the ▁teacher ."
GERMAN_ALL = np.zeros(5, np.int64)  # all translations are German
GERMAN = "▁die ▁schw ester ▁rief ▁die ▁lehrerin ."


@pytest.mark.parametrize(
    "english, german",
    [
        ("▁the ▁nurse ▁and ▁the ▁teacher", "▁die ▁schw ester ▁und ▁die ▁lehrerin"),  # a list has no order
        ("▁nurse ▁teacher", "▁schw ester ▁lehrerin"),  # nothing between them
        ("▁teacher ▁the ▁teachers", "▁lehrerin ▁die ▁lehrerin"),  # the same said twice
        ("▁nurse ▁the ▁teacher", "▁schw ester ▁die ▁rief"),  # no translation of one
        ("▁nurse ▁the ▁called", "▁schw ester ▁die ▁rief"),  # no words of a kind
        ("▁the ▁the ▁nurse", "▁die ▁die ▁schw ester"),  # one word alone that is not common
        (".", "."),
    ],
)
def test_what_would_mean_the_same_or_nothing_is_left(swaps: Swaps, english: str, german: str) -> None:
    [words] = swaps.align((tokens(english), tokens(german)))
    assert swaps.find(ids(english), words) is None


def test_words_are_found_in_each_sentence_as_if_it_were_alone(swaps: Swaps) -> None:
    # The second begins inside a word, the third is empty, the fourth has no word that counts.
    texts = [ENGLISH, "ester ▁nurse .", "", "▁the .", GERMAN]
    words = swaps.words(tokens(*texts))
    found = [words.spans[words.of(number)].tolist() for number in range(len(texts))]
    assert found == [[[1, 2], [2, 3], [4, 5]], [[1, 2]], [], [], [[1, 3], [3, 4], [5, 6]]]
    for number, one in enumerate(texts):
        alone = swaps.words(tokens(one))
        assert alone.spans.tolist() == found[number]
        np.testing.assert_allclose(alone.vectors, words.vectors[words.of(number)], rtol=1e-6)


def test_the_last_pairs_become_copies_of_those_with_the_likest_words(swaps: Swaps) -> None:
    less = "▁nurse ▁the ▁doctor", "▁schw ester ▁die ▁arzt"
    pairs = [("▁the .", "▁die ."), less, (ENGLISH, GERMAN), less, ("▁and", "▁und")]
    sides = tokens(*(pair[0] for pair in pairs)), tokens(*(pair[1] for pair in pairs))
    (english, german), copied = swaps.replace_last(sides, GERMAN_ALL, 1)
    assert copied.tolist() == [2]
    assert english.part(0, 4).ids.equal(sides[0].part(0, 4).ids)
    assert text(english.part(4, 5).ids.numpy()) == "▁the ▁teacher ▁called ▁the ▁nurse ."
    assert text(german.part(4, 5).ids.numpy()) == "▁die ▁lehrerin ▁rief ▁die ▁schw ester ."
    # Three are wanted, and of the two that stay before them only one has two words.
    (english, _), copied = swaps.replace_last(sides, GERMAN_ALL, 3)
    assert copied.tolist() == [1] and english.part(0, 4).ids.equal(sides[0].part(0, 4).ids)
    alone = sides[0], Tokens(torch.zeros(0, dtype=torch.long), torch.zeros(5, dtype=torch.long))  # untranslated
    same, copied = swaps.replace_last(alone, GERMAN_ALL, 1)
    assert len(copied) == 0 and same[0].ids.equal(alone[0].ids) and same[1].lengths.equal(alone[1].lengths)


def test_numbers_are_taken_from_the_pair_of_the_same_language_with_the_likest(swaps: Swaps) -> None:
    pairs = [
        ("▁called ▁1998 .", "▁1998 ▁rief"),
        ("▁the ▁7", "▁die ▁7"),
        ("▁nurse ▁1989", "▁schw ester ▁1989"),
        ("▁nurse ▁1989", "▁schw ester ▁7"),  # none that both have
        ("▁the ▁three", "▁die ▁drei"),
        ("▁four ▁nurse", "▁vier ▁schw ester"),
        ("▁four ▁nurse", "▁vier ▁schw ester"),  # in another language
        (ENGLISH, GERMAN),
        *[("▁the", "▁die")] * 12,
    ]
    languages = np.array([0] * 6 + [1] * 14)
    sides = tokens(*(pair[0] for pair in pairs)), tokens(*(pair[1] for pair in pairs))
    (english, german), copied = swaps.replace_last(sides, languages, 12)
    assert copied.tolist() == [0, 2, 4, 5, 7]
    made = [[text(side.part(i, i + 1).ids.numpy()) for side in (english, german)] for i in range(15, 20)]
    assert made == [
        ["▁called ▁1989 .", "▁1989 ▁rief"],
        ["▁nurse ▁1998", "▁schw ester ▁1998"],
        ["▁the ▁four", "▁die ▁vier"],
        ["▁three ▁nurse", "▁drei ▁schw ester"],
        ["▁the ▁teacher ▁called ▁the ▁nurse .", "▁die ▁lehrerin ▁rief ▁die ▁schw ester ."],
    ]
    # A third of the copies of a batch, at most; the rest have two words swapped.
    assert swaps.replace_last(sides, languages, 8)[1].tolist() == [0, 2, 7]
