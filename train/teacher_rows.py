"""The input side of a teacher: the rows that English pieces start at, and the means that all are brought to.

A table under a teacher's layers does not start from nothing: a piece that is an English word has the teacher's own row
(as in WECHSEL, Minixhofer et al. 2022).
"""

import logging
from collections.abc import Mapping

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.errors import DataError
from xsent.train.data.sampling import evenly
from xsent.train.data.store import Store
from xsent.train.transfer import TeacherBert

logger = logging.getLogger(__name__)

SEEN = 20  # times that a piece must stand in English text to count as English
FOREIGN = 8  # times as often it may stand in the other languages
COUNTED = 200_000  # pairs of which pieces are counted


class TeacherInput:
    """The input side of a teacher as an encoder: the mean of the rows of a sentence, before any layer.

    Attributes:
        path: The teacher's folder.
        identity: Changes when the teacher does.
        dim: Length of a vector.
    """

    def __init__(self, teacher: TeacherBert) -> None:
        self._teacher, self.path = teacher, teacher.path
        self.identity = f"{teacher.identity}-input"
        self.dim = teacher.table.shape[1]

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """The means [n, dim], not of length 1; zero for a sentence without tokens."""
        read = self._teacher.tokenizer.encode_batch(sentences, add_special_tokens=False)
        lengths = torch.tensor([len(sentence.ids) for sentence in read])
        ids = torch.tensor([i for sentence in read for i in sentence.ids], dtype=torch.long)
        means = F.embedding_bag(ids, self._teacher.table, lengths.cumsum(0) - lengths, mode="mean")
        return np.asarray(means.numpy(), np.float32)


def first_rows(teacher: TeacherBert, processor: spm.SentencePieceProcessor, counts: NDArray[np.int64]) -> Tensor:
    """Rows for a vocabulary of ours: a teacher's own where a piece is English, their mean elsewhere [V, D].

    `counts` says how often each piece stands in English, and in other languages [2, V].

    Raises:
        DataError: No piece is an English word or a part of one.
    """
    known = teacher.tokenizer.get_vocab()
    rows = teacher.table.mean(dim=0, keepdim=True).repeat(len(processor), 1)
    english = (counts[0] >= SEEN) & (FOREIGN * counts[0] >= counts[1])
    met = 0
    for piece in english.nonzero()[0].tolist():
        if not processor.is_byte(piece) and (ids := spell(teacher, processor.id_to_piece(piece), known)):
            rows[piece] = teacher.table[ids].mean(dim=0)
            met += 1
    if not met:
        raise DataError(
            f"{teacher.path}: none of {len(processor)} pieces is an English word that it knows; the vocabulary needs "
            "English text"
        )
    for piece, symbol in (
        (processor.bos_id(), "[CLS]"),
        (processor.eos_id(), "[SEP]"),
        (processor.unk_id(), "[UNK]"),
    ):
        rows[piece] = teacher.table[teacher.piece(symbol)]
    logger.info("%d of %d pieces start at the teacher's rows", met, len(processor))
    return rows


def spell(teacher: TeacherBert, piece: str, known: Mapping[str, int]) -> list[int]:
    """A piece as pieces of a teacher; empty where it is unknown to it."""
    inner = f"##{piece}"
    if inner in known:
        return [known[inner]]
    ids: list[int] = teacher.tokenizer.encode(piece.removeprefix("▁"), add_special_tokens=False).ids
    return [] if teacher.piece("[UNK]") in ids else ids


def piece_counts(store: Store, vocab_size: int) -> NDArray[np.int64]:
    """How often each piece stands in the English and in the other sides of a store, by a sample [2, V]."""
    pairs = evenly(len(store), COUNTED)
    longest = np.iinfo(np.int32).max
    return np.stack([np.bincount(store.tokens(pairs, side, longest).ids, minlength=vocab_size) for side in (0, 1)])
