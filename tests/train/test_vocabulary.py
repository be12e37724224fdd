"""Growing a vocabulary and a checkpoint by a language: what is new, and that nothing old moves."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import sentencepiece as spm
import torch
from commands import raises
from toy import GREEK, toy_pairs

from xsent.errors import DataError
from xsent_train.checkpoint import TABLE, load_checkpoint
from xsent_train.data.vocabulary import (
    grow_vocabulary,
    harmless_pieces,
    missing_pieces,
    train_vocabulary,
    with_pieces,
)
from xsent_train.language import first_rows, grow_checkpoint

SIZE = 320
OLD_TEXT = [side for pair in toy_pairs(600) for side in pair[2:]]
VOWELS = str.maketrans("aeiou", "eioua")
# Words of its own, between words that English has too.
DUTCH = [f"{pair[2]} {pair[2].translate(VOWELS)}" for pair in toy_pairs(300, seed=5)]
GREEKISH = [pair[2].translate(GREEK) for pair in toy_pairs(300, seed=6)]


def processor(model: bytes | Path) -> spm.SentencePieceProcessor:
    return spm.SentencePieceProcessor(model_proto=model if isinstance(model, bytes) else model.read_bytes())


def tokens(model: bytes | Path, text: list[str]) -> int:
    return sum(map(len, processor(model).encode(text)))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary of English and two made-up languages."""
    path = tmp_path_factory.mktemp("old") / "sentencepiece.model"
    path.write_bytes(train_vocabulary(iter(OLD_TEXT), size=312, threads=1))
    return path


def grow(old: Path, text: list[str], out: Path, keep: list[str]) -> int:
    return grow_vocabulary(old, iter(text), out, size=SIZE, keep=iter(keep), threads=1)


def test_ctrl_c_while_it_reads_its_text_is_no_error_of_the_text() -> None:
    def text() -> Iterator[str]:
        yield OLD_TEXT[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_vocabulary(text(), size=312, threads=1)


@pytest.mark.parametrize("text", [DUTCH, GREEKISH], ids=["same-script", "new-script"])
def test_old_text_is_cut_as_before_and_new_text_into_fewer_pieces(text: list[str], old: Path, tmp_path: Path) -> None:
    out = tmp_path / "grown.model"
    added = grow(old, text, out, OLD_TEXT)
    before, after = processor(old), processor(out)
    assert 0 < added == len(after) - len(before)
    assert out.read_bytes().startswith(old.read_bytes())  # so the old pieces and their scores are the same
    assert after.encode(OLD_TEXT) == before.encode(OLD_TEXT)
    assert tokens(out, text) < 0.8 * tokens(old, text)
    assert [after.decode(after.encode(line)) for line in text] == text
    assert min(after.get_score(i) for i in range(len(after))) == min(before.get_score(i) for i in range(len(before)))
    new = [after.id_to_piece(i) for i in range(len(before), len(after))]
    assert len(set(new)) == len(new)
    if text is DUTCH:  # without a sample old text would change
        assert grow(old, text, out, []) > added and processor(out).encode(OLD_TEXT) != before.encode(OLD_TEXT)


def test_pieces_that_are_harmless(old: Path) -> None:
    model, sample = old.read_bytes(), ["a qqqq"]
    first, second, lynx = ("qqqq", -1.0), ("qqq", -1.5), ("▁lynx", -2.0)
    for pieces in ([first, second], [second]):  # the second is used once the first is gone
        assert processor(with_pieces(model, pieces)).encode(sample) != processor(model).encode(sample)
    assert harmless_pieces(model, [first, second, lynx], sample, threads=1) == [lynx]
    greek, sample = [("▁αλφα", -3.0), ("·", -4.0)], ["the greek αλφα· is a letter", "no letter · at all"]
    assert harmless_pieces(model, greek, sample[:1], threads=1) == greek  # a quotation costs no piece
    assert harmless_pieces(model, greek, sample, threads=1) == greek[:1]
    lowest = min(processor(model).get_score(i) for i in range(len(processor(model))))
    rare = with_pieces(b"", [("zebra", lowest - 30)])
    assert missing_pieces(model, model + rare) == [("zebra", pytest.approx(lowest))]  # as an unknown character


def test_what_cannot_grow_is_refused(old: Path, tmp_path: Path) -> None:
    out, damaged = tmp_path / "grown.model", tmp_path / "damaged.model"
    damaged.write_bytes(b"\x0a\x05abc")
    for model, wrong in ((tmp_path / "missing.model", "missing"), (damaged, "damaged .*")):
        raises(DataError, f"{model.name}: {wrong}; expected a SentencePiece model", grow, model, DUTCH, out, [])
    raises(DataError, "cannot train a vocabulary of 320 pieces", grow, old, [], out, [])
    for size, message in (
        (5_000_000_000, "cannot train a vocabulary of 5000000000 pieces"),
        (265, r"set --pieces to \d+ or more"),
    ):
        raises(DataError, message, grow_vocabulary, old, iter(DUTCH), out, size=size, keep=[], threads=1)
    assert not out.exists()
    assert 0 < grow(old, ["xyxyx"], out, []) < 10  # little text gives fewer pieces


@pytest.mark.parametrize(("size", "bound"), [(5000, "or less, or take more text"), (265, "or more")])
def test_a_size_that_is_not_possible_is_refused_with_one_that_is(size: int, bound: str) -> None:
    with pytest.raises(DataError, match=rf"set vocabulary.size to \d+ {bound}$") as raised:
        train_vocabulary(iter(OLD_TEXT), size=size, threads=1)
    assert not re.search(r"src/|INTERNAL", str(raised.value))
    possible = int(re.findall(r"\d+", str(raised.value))[-1])
    assert len(processor(train_vocabulary(iter(OLD_TEXT), size=possible, threads=1))) == possible
    with pytest.raises(DataError, match=f"to {possible} {bound}"):
        train_vocabulary(iter(OLD_TEXT), size=possible + (1 if size > possible else -1), threads=1)


def test_the_first_rows(old: Path) -> None:
    model = old.read_bytes()
    before = processor(model)
    table = torch.arange(len(before), dtype=torch.float32)[:, None].repeat(1, 400)
    cat, s, dog = before.piece_to_id("▁cat"), before.piece_to_id("s"), before.piece_to_id("▁dog")
    assert before.unk_id() not in (cat, s, dog)
    grown = with_pieces(model, [("▁cats", -1.0), ("s▁dog", -1.0), ("▁αs", -1.0)])
    rows = first_rows(table, model, grown)
    assert rows.shape == (3, 400)
    assert (rows[0] == (cat + s) / 2).all()
    assert (rows[1] == (s + dog) / 2).all()
    assert 0.015 < float(rows[2].std()) < 0.025  # spelled in bytes: small noise


def test_a_checkpoint_grows_by_its_own_vocabulary(old: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    before = load_checkpoint(mini_checkpoint)
    same = load_checkpoint(grow_checkpoint(before, before.tokenizer, "de", tmp_path / "same"))
    assert same.languages == ["en", "fr", "de"]  # a language is named once
    assert torch.equal(same.weights[TABLE], before.weights[TABLE])
    assert same.validation.read_bytes() == before.validation.read_bytes()
    raises(DataError, "does not extend", grow_checkpoint, before, old, "el", tmp_path / "out")
    assert not (tmp_path / "out").exists()
