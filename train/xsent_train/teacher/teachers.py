"""The teachers of a training: one, several joined, or a network whose layers are taken over."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xsent.errors import BundleError, DataError
from xsent.open_model import SupportsEncode, open_model
from xsent_train.recipe import Recipe, StageConfig, TeacherConfig
from xsent_train.teacher.bert import TeacherBert, TeacherInput, read_teacher
from xsent_train.teacher.joined import JoinedTeacher, Member
from xsent_train.teacher.teacher import Teacher, Teaches, files_identity
from xsent_train.teacher.usem3 import open_usem3

ONLY = ""  # name of a teacher that stands alone


def open_teacher(path: Path) -> Teacher:
    """Open a bundle, a checkpoint, a folder of sentence-transformers, its 8-bit form, or the package `usem3`.

    Raises DataError or MissingExtraError if it cannot be opened.
    """
    try:
        usem3 = path == Path("usem3") and not path.exists()
        encoder: SupportsEncode = open_usem3() if usem3 else open_model(path)
    except BundleError as error:
        raise DataError(f"teacher {error}") from error
    return Teacher(path, encoder, getattr(encoder, "fingerprint", None) or files_identity(path))


@dataclass(frozen=True)
class Teachers:
    """The teachers of a training."""

    vectors: Teaches | None = None  # gives sentence vectors
    bert: TeacherBert | None = None  # the network whose layers are taken over

    @property
    def dim(self) -> int | None:
        """Length of a target; None without teacher."""
        if self.vectors is not None:
            return self.vectors.dim
        return self.bert.table.shape[1] if self.bert is not None else None

    @property
    def joined(self) -> JoinedTeacher | None:
        """The teacher, where it is several."""
        return self.vectors if isinstance(self.vectors, JoinedTeacher) else None

    def of(self, stage: StageConfig) -> Teaches | None:
        """The teacher that a stage learns from."""
        if stage.objectives.embedding_match and self.bert is not None:
            return TeacherInput(self.bert)
        return self.vectors if stage.objectives.distils else None

    def identities(self, stages: Sequence[StageConfig]) -> dict[str, str | None]:
        """Identities of the teachers that stages depend on."""
        return {
            "teacher": self.vectors.identity if self.vectors is not None and reads_vectors(stages) else None,
            "teacher_layers": self.bert.identity if self.bert is not None else None,
        }


def reads_vectors(stages: Sequence[StageConfig]) -> bool:
    """Whether one of some stages learns from a teacher's sentence vectors, not from its input alone."""
    return any(stage.objectives.distils and not stage.objectives.embedding_match for stage in stages)


def open_teachers(recipe: Recipe, paths: Mapping[str, Path], fast: Path | None) -> Teachers:
    """Open the teachers that a recipe needs, by their names in it; one that stands alone may have an 8-bit form."""
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
            raise DataError(f"{fast}: an 8-bit form needs its teacher; name that with --teacher")
        return Teachers()
    bert = read_teacher(path) if recipe.teacher_layers else None
    if bert is not None and not reads_vectors(recipe.stages):
        return Teachers(bert=bert)
    vectors = open_teacher(fast or path)
    if fast is not None and vectors.original != (bert.identity if bert is not None else files_identity(path)):
        raise DataError(f"{fast}: is not the 8-bit form of {path}; xsent-export {path} NEW --format teacher makes it")
    return Teachers(vectors, bert)


def open_joined(settings: Mapping[str, TeacherConfig], paths: Mapping[str, Path], dim: int) -> JoinedTeacher:
    """Open the teachers of a recipe's table. Raises DataError if a path is missing or too many."""
    if missing := [name for name in settings if name not in paths]:
        raise DataError(f"the recipe's teachers need paths: add --teacher {missing[0]}=PATH")
    if unknown := [name for name in paths if name not in settings]:
        known = ", ".join(settings)
        raise DataError(f"--teacher {unknown[0]}=...: the recipe has no such teacher; its teachers are {known}")
    return JoinedTeacher([Member(name, open_teacher(paths[name]), one) for name, one in settings.items()], dim)
