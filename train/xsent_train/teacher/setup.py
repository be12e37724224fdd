"""What a training has of its teacher: where its table and layers start, and what it learns from.

A table under a teacher's layers does not start from nothing: a piece that is an English word has the teacher's own row
(as in WECHSEL, Minixhofer et al. 2022).
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sentencepiece as spm
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from xsent.errors import DataError
from xsent_train.data.corpus import Pair
from xsent_train.data.sampling import evenly
from xsent_train.data.store import Store
from xsent_train.model import Encoder
from xsent_train.recipe import Recipe, StageConfig
from xsent_train.teacher.base import files_identity, open_teacher
from xsent_train.teacher.bert import TeacherBert, read_teacher
from xsent_train.teacher.joined import open_joined
from xsent_train.teacher.vectors import Teaches, english_targets

logger = logging.getLogger(__name__)

SEEN = 20  # times that a piece must stand in English text to count as English
FOREIGN = 8  # times as often it may stand in the other languages
ONLY = ""  # name of a teacher that stands alone
COUNTED = 200_000  # pairs of which pieces are counted


@dataclass(frozen=True)
class Teachers:
    """The teacher of a training, by what is needed of it."""

    bert: TeacherBert | None = None  # its network, where layers are taken over
    vectors: Teaches | None = None  # what gives sentence vectors

    @property
    def dim(self) -> int | None:
        """Length of a target; None without teacher."""
        if self.vectors is not None:
            return self.vectors.dim
        return self.bert.table.shape[1] if self.bert is not None else None

    def of(self, stage: StageConfig) -> Teaches | None:
        """What a stage learns from."""
        if stage.objectives.embedding_match and self.bert is not None:
            return TeacherInput(self.bert)
        return self.vectors if stage.objectives.distils else None

    def identities(self, stages: Sequence[StageConfig]) -> dict[str, str | None]:
        """What stages depend on."""
        return {
            "teacher": self.vectors.identity if self.vectors is not None and read_vectors(stages) else None,
            "teacher_layers": self.bert.identity if self.bert is not None else None,
        }

    @torch.no_grad()
    def start_table(self, encoder: Encoder, processor: spm.SentencePieceProcessor, store: Store) -> None:
        """Start the table at the teacher's rows, as far as its pieces are English."""
        if self.bert is not None:
            counts = piece_counts(store, processor.vocab_size())
            encoder.table.weight.copy_(english_rows(self.bert, processor, counts))

    def start_layers(self, encoder: Encoder, numbers: Sequence[int]) -> None:
        """Start the layers, and what stands under them, as the teacher's."""
        layers = encoder.config.num_layers
        if self.bert is not None and layers:
            encoder.load_state_dict(self.bert.layers(numbers[:layers], encoder.config.max_length), strict=False)


def read_vectors(stages: Sequence[StageConfig]) -> bool:
    """Whether one of some stages looks at a teacher's sentence vectors; `embedding_match` looks at its input."""
    return any(stage.objectives.distils and not stage.objectives.embedding_match for stage in stages)


def open_teachers(recipe: Recipe, paths: Mapping[str, Path], fast: Path | None) -> Teachers:
    """Open what the stages of a recipe need of a teacher, which may have an 8-bit form, `fast`; or several by name."""
    path = paths.get(ONLY)
    if recipe.teachers:
        if recipe.teacher_layers or fast is not None or path is not None:
            raise DataError(
                "a recipe with a table of teachers takes each as --teacher NAME=PATH, in 8 bits or not, and no layers"
            )
        return Teachers(vectors=open_joined(recipe.teachers, paths, recipe.dim))
    if named := [name for name in paths if name != ONLY]:
        raise DataError(f"--teacher {named[0]}=PATH: the recipe has no table [teachers.{named[0]}]; give PATH alone")
    if path is None:
        if recipe.teacher_layers:
            raise DataError("teacher_layers takes over the layers of a teacher; name its folder with --teacher")
        if fast is not None:
            raise DataError(f"{fast}: an 8-bit form stands beside its teacher; name that with --teacher")
        return Teachers()
    bert = read_teacher(path) if recipe.teacher_layers else None
    if bert is not None and not read_vectors(recipe.stages):
        return Teachers(bert)
    vectors = open_teacher(fast or path)
    if fast is not None and vectors.original != (bert.identity if bert is not None else files_identity(path)):
        raise DataError(f"{fast}: is not the 8-bit form of {path}; xsent-export {path} NEW --format teacher makes it")
    return Teachers(bert, vectors)


class TeacherInput:
    """The input side of a teacher as an encoder: the mean of the rows of a sentence, before any layer."""

    def __init__(self, teacher: TeacherBert) -> None:
        self._teacher, self.identity = teacher, f"{teacher.identity}-input"
        self.dim = teacher.table.shape[1]

    def encode(self, sentences: list[str]) -> NDArray[np.float32]:
        """The means [n, dim], not of length 1; zero for a sentence without tokens."""
        read = self._teacher.tokenizer.encode_batch(sentences, add_special_tokens=False)
        lengths = torch.tensor([len(sentence.ids) for sentence in read])
        ids = torch.tensor([i for sentence in read for i in sentence.ids], dtype=torch.long)
        means = F.embedding_bag(ids, self._teacher.table, lengths.cumsum(0) - lengths, mode="mean")
        return np.asarray(means.numpy(), np.float32)

    def targets(self, pairs: Sequence[Pair]) -> NDArray[np.float32]:
        """See `Teaches`: the means of the English sides."""
        return english_targets(self.encode, pairs)


def english_rows(teacher: TeacherBert, processor: spm.SentencePieceProcessor, counts: NDArray[np.int64]) -> Tensor:
    """Rows for a vocabulary of ours: a teacher's own where a piece is English, their mean elsewhere [V, D].

    `counts` says how often each piece stands in English, and in other languages [2, V]; a DataError where none is one.
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
    ends = (processor.bos_id(), "[CLS]"), (processor.eos_id(), "[SEP]"), (processor.unk_id(), "[UNK]")
    for piece, symbol in ends:
        rows[piece] = teacher.table[teacher.piece(symbol)]
    logger.info("%d of %d pieces start at the teacher's rows", met, len(processor))
    return rows


def spell(teacher: TeacherBert, piece: str, known: Mapping[str, int]) -> list[int]:
    """A piece as pieces of a teacher; empty where it is unknown to it."""
    if (inner := f"##{piece}") in known:
        return [known[inner]]
    ids: list[int] = teacher.tokenizer.encode(piece.removeprefix("▁"), add_special_tokens=False).ids
    return [] if teacher.piece("[UNK]") in ids else ids


def piece_counts(store: Store, vocab_size: int) -> NDArray[np.int64]:
    """How often each piece stands in the English and in the other sides of a store, by a sample [2, V]."""
    pairs = evenly(len(store), COUNTED)
    longest = np.iinfo(np.int32).max
    return np.stack([np.bincount(store.tokens(pairs, side, longest).ids, minlength=vocab_size) for side in (0, 1)])
