"""What a training has of its teacher: the network to start from, its input vectors, its sentence vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import sentencepiece as spm
import torch

from xsent.errors import DataError
from xsent.train.config import Recipe, StageConfig
from xsent.train.data.store import Store
from xsent.train.model import Encoder
from xsent.train.teacher import Teacher, Teaches, files_identity, open_teacher
from xsent.train.teacher_rows import TeacherInput, first_rows, piece_counts
from xsent.train.transfer import TeacherBert, read_teacher


@dataclass(frozen=True)
class Teachers:
    """The teacher of a training, by what is needed of it."""

    bert: TeacherBert | None = None  # its network, where layers are taken over
    vectors: Teacher | None = None  # what gives its sentence vectors

    @property
    def dim(self) -> int | None:
        """Length of a vector; None without teacher."""
        if self.vectors is not None:
            return self.vectors.dim
        return self.bert.table.shape[1] if self.bert is not None else None

    def shape(self, recipe: Recipe) -> Recipe:
        """The recipe in the shape of the layers that are taken over."""
        return self.bert.shape(recipe) if self.bert is not None else recipe

    def of(self, stage: StageConfig) -> Teaches | None:
        """What a stage learns from."""
        if stage.objectives.rows and self.bert is not None:
            return TeacherInput(self.bert)
        return self.vectors if stage.objectives.distils else None

    def reads_out(self, stage: StageConfig, dim: int) -> bool:
        """Whether a stage ends with a readout: it has layers, and vectors in the teacher's space."""
        return bool(stage.num_layers and stage.objectives.distil) and self.dim == dim

    def identities(self, stages: Sequence[StageConfig]) -> dict[str, str | None]:
        """What stages depend on."""
        return {
            "teacher": self.vectors.identity if self.vectors is not None and read_vectors(stages) else None,
            "teacher_layers": self.bert.identity if self.bert is not None else None,
        }

    def start_table(self, encoder: Encoder, processor: spm.SentencePieceProcessor, store: Store) -> None:
        """Start the table at the teacher's rows, as far as its pieces are English."""
        if self.bert is not None:
            counts = piece_counts(store, processor.vocab_size())
            with torch.no_grad():
                encoder.table.weight.copy_(first_rows(self.bert, processor, counts))

    def start_layers(self, encoder: Encoder, numbers: Sequence[int]) -> None:
        """Start the layers, and what stands under them, as the teacher's."""
        layers = encoder.config.num_layers
        if self.bert is not None and layers:
            state = self.bert.layers(numbers[:layers], encoder.config.max_length)
            encoder.load_state_dict(state, strict=False)


def read_vectors(stages: Sequence[StageConfig]) -> bool:
    """Whether one of some stages looks at a teacher's sentence vectors; `rows` looks at its input."""
    return any(stage.objectives.distils and not stage.objectives.rows for stage in stages)


def open_teachers(recipe: Recipe, path: Path | None, fast: Path | None) -> Teachers:
    """Open what the stages of a recipe need of a teacher, which may have an 8-bit form, `fast`.

    Raises:
        DataError: There is none although layers are to be taken over, it cannot be read, or `fast` is of another.
    """
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
