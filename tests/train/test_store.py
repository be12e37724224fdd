"""The tokenised store: what goes in comes out, by cell, and damage is seen at once."""

from pathlib import Path

import numpy as np
import pytest
import sentencepiece as spm
from toy import toy_pairs

from xsent.errors import DataError
from xsent_train.data.corpus import Pair
from xsent_train.data.store import Store, build_store
from xsent_train.data.vocabulary import maskable_pieces, with_pieces
from xsent_train.tokens import FIRST, LAST, MASK

PAIRS = [Pair(*pair) for pair in toy_pairs(300)]


def build(folder: Path, tokenizer: Path, pairs: list[Pair], max_length: int = 200) -> Store:
    build_store(folder, pairs, tokenizer, key="k", max_length=max_length, threads=1)
    return Store(folder)


def test_every_pair_is_found_in_its_cell(tmp_path: Path, toy_tokenizer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xsent_train.data.store.CHUNK", 64)  # so that cells run over several chunks
    store = build(tmp_path / "store", toy_tokenizer, PAIRS)
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    assert len(store) == 300
    languages = [store.cells[number][1] for number in store.languages[:300]]
    assert languages == [pair.language for pair in PAIRS]
    for number, cell in enumerate(store.cells):
        entries = np.arange(store.cell_starts[number], store.cell_starts[number + 1])
        pairs = store.pairs(entries)
        assert pairs.tolist() == [i for i, pair in enumerate(PAIRS) if pair.cell == cell]
        for side, column in ((0, "english"), (1, "translation")):
            tokens = store.tokens(pairs, side, 200)
            sentences = [processor.encode(getattr(PAIRS[i], column)) for i in pairs]
            assert tokens.ids.tolist() == [i for sentence in sentences for i in sentence]
            assert tokens.lengths.tolist() == [len(sentence) for sentence in sentences]
            assert store.lengths(pairs, side).tolist() == tokens.lengths.tolist()


def test_pieces_beyond_16_bits(tmp_path: Path, toy_tokenizer: Path) -> None:
    wide = tmp_path / "wide.model"
    wide.write_bytes(with_pieces(toy_tokenizer.read_bytes(), [(f"▁{n}", -20.0) for n in range(1 << 16)]))
    store = build(tmp_path / "store", wide, [*PAIRS, Pair("new", "fr", "65535", "0 65535")])
    assert (tmp_path / "store" / "ids.u32").exists()
    size = len(spm.SentencePieceProcessor(model_file=str(wide)))
    new = np.array([300])
    assert store.tokens(new, 0, 9).ids.tolist() == [size - 1]
    assert store.tokens(new, 1, 9).ids.tolist() == [size - (1 << 16), size - 1]


def test_long_sentences_are_cut_and_invisible_ones_left_out(tmp_path: Path, toy_tokenizer: Path) -> None:
    alone = [Pair("wiki", "en", "The cat sleeps.", ""), Pair("wiki", "en", "\u200b", "")]
    invisible = Pair("talk", "de", "\u200b", "Hallo.")
    store = build(tmp_path / "store", toy_tokenizer, [*alone, *PAIRS, invisible, *alone], max_length=6)
    assert len(store) == 302 and store.cells[0] == ("wiki", "en")
    everything = np.arange(302)
    assert store.lengths(everything, 0).max() == 6 and store.tokens(everything, 1, 4).lengths.max() == 4
    for number in (0, 301):
        lengths = [int(store.lengths(np.array([number]), side)[0]) for side in (0, 1)]
        assert lengths[0] > 3 and lengths[1] == 0


def test_a_damaged_store_is_refused(tmp_path: Path, toy_tokenizer: Path) -> None:
    folder = tmp_path / "store"
    build(folder, toy_tokenizer, PAIRS)
    for name in ("ids.u16", "ends.u64", "rows.u32", "group.u32", "store.json"):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 16 * 8])
        with pytest.raises(DataError, match=r"delete the .*, and it is rebuilt"):
            Store(folder)
        (folder / name).write_bytes(content)


def test_the_mask_is_a_piece_that_no_text_has(toy_tokenizer: Path) -> None:
    processor = spm.SentencePieceProcessor(model_file=str(toy_tokenizer))
    assert processor.id_to_piece(MASK) == "[MASK]"
    assert MASK not in processor.encode("a [MASK] in the text")
    maskable = maskable_pieces(processor)
    assert maskable[processor.piece_to_id("▁cat")]
    assert not maskable[MASK] and not maskable[processor.piece_to_id(".")]
    assert (processor.bos_id(), processor.eos_id()) == (FIRST, LAST) and not maskable[[FIRST, LAST]].any()
    assert not any(maskable[i] for i in range(len(maskable)) if processor.is_byte(i))
