"""Tokenised text on disk, memory-mapped, so that neither epochs nor 40 million pairs cost memory.

A store is a folder: `ids.u16`, or `ids.u32` for more than 65,536 pieces (the pieces of all sentences: English,
translation, pair after pair), `ends.u64` (the end of each sentence in it), `group.u32` (hash of each English side),
`rows.u32` (pair numbers ordered by cell), `score.f32` (of each pair, if people gave scores) and `store.json` (its key,
the cells and their sizes, counts of what was cut). Other kinds of text have their own two texts instead of a pair.
"""

import logging
import mmap
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from itertools import compress, islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import sentencepiece as spm
import torch
from numpy.typing import NDArray

from xsent.errors import DataError
from xsent.files.atomic import as_data_error, atomic_folder, read_json, remove_folder, to_json
from xsent.similarity import release_pages
from xsent_train.data.corpus import L, ScoredPair, chunks
from xsent_train.data.sampling import Cell
from xsent_train.tokens import Tokens, open_tokenizer

logger = logging.getLogger(__name__)

N = TypeVar("N", bound=np.generic)
T = TypeVar("T")

CHUNK = 50_000  # pairs tokenised or sorted at a time
OTHERS = "others"
ABOUT = "store.json"
VISIBLE = re.compile("[!-~]")  # no normaliser drops these


class Store:
    """Tokenised pairs, memory-mapped."""

    def __init__(self, path: Path) -> None:
        """Open a store. Raises DataError if the folder is not a complete store."""
        remedy = "delete the store, and it is rebuilt"
        about = read_json(path / ABOUT, remedy)
        with as_data_error(path, remedy):
            self.key: str = about["key"]
            self.cells: list[Cell] = [(source, language) for source, language, _ in about["cells"]]
            sizes = [size for _, _, size in about["cells"]]
            wide = (path / "ids.u32").exists()
            self._ids = self._map(path / "ids.u32", np.uint32) if wide else self._map(path / "ids.u16", np.uint16)
            self._ends = self._map(path / "ends.u64", np.uint64)
            self._rows = self._map(path / "rows.u32", np.uint32)
            self.group = self._map(path / "group.u32", np.uint32)  # equal for translations of one sentence [pairs]
            scores = path / "score.f32"
            self.score = self._map(scores, np.float32) if scores.exists() else None  # that people gave [pairs]
        # Cell c is cell_starts[c] to cell_starts[c + 1] (exclusive) in the cell order [cells + 1].
        self.cell_starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        tokens = int(self._ends[-1]) if len(self._ends) else 0
        pairs = {int(self.cell_starts[-1]), len(self._rows), len(self.group), len(self._ends) // 2}
        pairs |= {len(self.score)} if self.score is not None else set()
        if len(pairs) > 1 or tokens != len(self._ids):
            raise DataError(f"{path}: its files have inconsistent sizes; {remedy}")

    @classmethod
    def open_or_build(
        cls, path: Path, key: str, read: Callable[[], Iterable[L]], *, tokenizer: Path, max_length: int, threads: int
    ) -> "Store":
        """Open the store if it has this key; else build it from the pairs that `read` returns, see `build_store`.

        The tokenizer need not exist before `read` returns.
        """
        if (path / ABOUT).exists() and (store := cls(path)).key == key:
            return store
        build_store(path, read(), tokenizer, key=key, max_length=max_length, threads=threads)
        return cls(path)

    def __len__(self) -> int:
        return len(self.group)

    def limit(self, limits: Mapping[str, int]) -> None:
        """Keep at most `limits` pairs per cell by source, with `OTHERS` for sources not named; the rest is not drawn.

        Pairs with the smallest hashes of their English sides are kept, so translations of a sentence stay together.
        Raises DataError if a named source has no pair.
        """
        if unknown := sorted(set(limits) - {OTHERS} - {source for source, _ in self.cells}):
            raise DataError(f"corpus.most names sources that no pair has: {', '.join(unknown)}")
        kept = []
        for (source, _), start, end in zip(self.cells, self.cell_starts, self.cell_starts[1:], strict=False):
            rows = self._rows[start:end]
            count = limits.get(source, limits.get(OTHERS, len(rows)))
            if count < len(rows):
                rows = np.sort(rows[np.argpartition(self.group[rows], count - 1)[:count]])
            kept.append(rows)
        self._rows = np.concatenate(kept)
        self.cell_starts = np.concatenate([[0], np.cumsum([len(rows) for rows in kept])]).astype(np.int64)

    def pairs(self, entries: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pair number of each entry of the cell order."""
        return self._rows[entries].astype(np.int64)

    @cached_property
    def cell(self) -> NDArray[np.uint16]:
        """The number of the cell of each pair that is drawn [pairs]."""
        cell = np.zeros(len(self), np.uint16)
        cell[self._rows] = np.repeat(np.arange(len(self.cells)), np.diff(self.cell_starts))
        return cell

    @cached_property
    def languages(self) -> NDArray[np.uint16]:
        """The language of each pair, as the number of its first cell [pairs]."""
        codes = [language for _, language in self.cells]
        return np.array([codes.index(code) for code in codes], np.uint16)[self.cell]

    def lengths(self, pairs: NDArray[np.int64], side: int) -> NDArray[np.int64]:
        """Tokens of one side (0 English, 1 translation) of each pair."""
        return self._spans(2 * pairs + side)[1]

    def tokens(self, pairs: NDArray[np.int64], side: int, max_length: int) -> Tokens:
        """One side of some pairs as a batch, with each sentence cut at `max_length` tokens."""
        starts, lengths = self._spans(2 * pairs + side)
        lengths = np.minimum(lengths, max_length)
        first = np.cumsum(lengths) - lengths
        where = np.repeat(starts - first, lengths) + np.arange(int(lengths.sum()))
        return Tokens(torch.from_numpy(self._ids[where].astype(np.int64)), torch.from_numpy(lengths))

    def release_pages(self) -> None:
        """Release the mapped pages that were read, so that they stop counting toward this process's memory."""
        for array in (self._ids, self._ends, self._rows, self.group, self.score):
            if array is not None:
                release_pages(array)

    def _map(self, path: Path, kind: type[N]) -> NDArray[N]:
        with open(path, "rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), kind)

    def _spans(self, sentences: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        ends = self._ends[sentences].astype(np.int64)
        starts = np.where(sentences > 0, self._ends[sentences - 1].astype(np.int64), 0)
        return starts, ends - starts


def build_store(path: Path, pairs: Iterable[L], tokenizer: Path, *, key: str, max_length: int, threads: int) -> None:
    """Tokenise pairs into a store, in constant memory. It replaces an older one, and appears when it is complete.

    `key` is the identity of corpus, vocabulary and settings, by which a later run checks whether the store still fits.
    Sentences are cut at `max_length` tokens, and their number is logged.
    """
    processor = open_tokenizer(tokenizer)
    kind, ids_name = (np.uint16, "ids.u16") if len(processor) <= 1 << 16 else (np.uint32, "ids.u32")
    sizes = Counter[Cell]()
    end = cut = read = 0
    score: BinaryIO | None = None
    if path.exists():
        remove_folder(path)  # first, because the disk may not have room for two
    with atomic_folder(path, private=True) as folder:
        with ExitStack() as files:
            names = (ids_name, "ends.u64", "group.u32", "cell.u16")
            ids, ends, group, cell = (files.enter_context(open(folder / name, "wb")) for name in names)
            for chunk in chunks(pairs, CHUNK):
                read += len(chunk)
                kept, sentences = tokenise(processor, chunk, threads)
                lengths = np.array([len(sentence) for sentence in sentences], np.int64)
                cut += int((lengths > max_length).sum())
                lengths = np.minimum(lengths, max_length)
                ids.write(np.array([i for sentence in sentences for i in sentence[:max_length]], kind).tobytes())
                ends.write((end + np.cumsum(lengths)).astype(np.uint64).tobytes())
                end += int(lengths.sum())
                group.write(np.array([pair.digest & 0xFFFFFFFF for pair in kept], np.uint32).tobytes())
                if scores := [pair.score for pair in kept if isinstance(pair, ScoredPair)]:
                    score = score or files.enter_context(open(folder / "score.f32", "wb"))
                    score.write(np.array(scores, np.float32).tobytes())
                sizes.update(pair.cell for pair in kept)
                numbers = {name: number for number, name in enumerate(sizes)}
                if len(numbers) > 1 << 16:
                    raise DataError("more than 65,536 sources; the first column is the same in all lines of one origin")
                cell.write(np.array([numbers[pair.cell] for pair in kept], np.uint16).tobytes())
        if not sizes:
            raise DataError(
                "no pair to train on: all have a side of only invisible characters, or are held out; add text"
            )
        sort_by_cell(folder, list(sizes.values()))
        about: dict[str, Any] = {"key": key, "tokens": end, "cut_sentences": cut, "max_length": max_length}
        about["cells"] = [[*name, size] for name, size in sizes.items()]
        (folder / ABOUT).write_bytes(to_json(about))
    total = sizes.total()
    logger.info("%s: %d pairs, %d tokens, %d sentences cut at %d tokens", path, total, end, cut, max_length)
    if read > total:
        logger.warning("skipped %d pairs with a side of only invisible characters", read - total)


def tokenise(processor: spm.SentencePieceProcessor, pairs: list[L], threads: int) -> tuple[list[L], list[list[int]]]:
    """Tokenise pairs: English, translation, pair after pair; without pairs that have an empty side."""
    texts = [text for pair in pairs for text in pair.texts]
    sentences: list[list[int]] = processor.encode(texts, num_threads=threads)
    sides = list(zip(sentences[::2], sentences[1::2], strict=True))
    whole = [bool(sides[i][0]) and (not pair.texts[1] or bool(sides[i][1])) for i, pair in enumerate(pairs)]
    return list(compress(pairs, whole)), [sentence for side in compress(sides, whole) for sentence in side]


def kept_pairs(pairs: Iterable[L], processor: spm.SentencePieceProcessor) -> Iterator[L]:
    """Yields the pairs that the store keeps, in its order, as its tokenizer decides, see `tokenise`.

    Only sides without any visible ASCII character are tokenised, to check whether any pieces are left.
    """
    for pair in pairs:
        if all(VISIBLE.search(text) or processor.encode(text) for text in filter(None, pair.texts)):
            yield pair


def chosen_pairs(pairs: Iterable[T], numbers: NDArray[np.int64]) -> Iterator[T]:
    """The pairs of a stream with these sorted numbers; stops reading after the last one."""
    wanted = np.zeros(numbers[-1] + 1 if len(numbers) else 0, np.bool_)
    wanted[numbers] = True
    return compress(islice(pairs, len(wanted)), wanted)


def sort_by_cell(folder: Path, sizes: list[int]) -> None:
    """Write `rows.u32`, the pair numbers ordered by cell (a counting sort in chunks), and drop `cell.u16`."""
    cells = np.memmap(folder / "cell.u16", np.uint16, "r")
    with open(folder / "rows.u32", "wb") as file:  # in full first: a map of a full disk kills the process
        for start in range(0, len(cells), CHUNK):
            file.write(bytes(4 * min(CHUNK, len(cells) - start)))
    rows = np.memmap(folder / "rows.u32", np.uint32, "r+")
    free = np.cumsum(sizes) - sizes
    for start in range(0, len(cells), CHUNK):
        chunk = cells[start : start + CHUNK]
        order = np.argsort(chunk, kind="stable")
        counts = np.bincount(chunk, minlength=len(sizes))
        rank = np.arange(len(chunk)) - np.repeat(np.cumsum(counts) - counts, counts)
        rows[np.repeat(free, counts) + rank] = start + order
        free += counts
    rows.flush()
    (folder / "cell.u16").unlink()
