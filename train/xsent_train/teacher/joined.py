"""The teachers of a training: one, several joined into one, or a network whose layers are taken over.

To join several teachers, each teacher's vectors lose their mean, are normalised, and are concatenated with the roots of
the teachers' weights. The cosine of such vectors is the weighted mean of the teachers' cosines. Their first principal
axes span the student's space, most important first, so that its prefixes are useful on their own. A pair has one
target: each teacher's mean of both sides, as far as it knows their languages. For a teacher that knows neither, the
vector is estimated by ridge regression from the others.

Shapes: n pairs, E numbers of all teachers' vectors together, D axes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load_file, save

from xsent.errors import DataError
from xsent.files.atomic import as_data_error, atomic_file
from xsent.similarity import Floats, unit_rows
from xsent_train.data.corpus import ENGLISH, Pair, digest
from xsent_train.fitting import solve_ridge
from xsent_train.recipe import Recipe, StageConfig, TeacherConfig
from xsent_train.teacher.bert import TeacherBert, TeacherInput, read_teacher
from xsent_train.teacher.cache import CACHE_REMEDY, SENTENCES, TeacherVectors
from xsent_train.teacher.open import TargetSource, Teacher, open_teacher, short_hash

ONLY = ""  # name of a single teacher
FEWEST = 2  # minimum pairs per axis to fit the axes on

Fit = Mapping[str, Floats]  # `means` [E], `moments` [E, E], `axes` [E, D]


@dataclass(frozen=True)
class Member:
    """One of several teachers."""

    name: str
    teacher: Teacher
    settings: TeacherConfig

    def sides(self, pair: Pair) -> list[str]:
        """The sentences of a pair that are in languages it knows."""
        sides = [(pair.english, pair.language if pair.alone else ENGLISH)]
        if not pair.alone:
            sides.append((pair.translation, pair.language))
        known = self.settings.languages or self.teacher.languages
        return [text for text, language in sides if not known or language in known]

    @property
    def identity(self) -> str:
        """Identity of its vectors."""
        identity, prompt = self.teacher.identity, self.settings.prompt
        return short_hash([identity, prompt]) if prompt else identity


class JoinedTeacher:
    """Several teachers as one. Each encodes a sentence once, and the vectors are kept in a folder."""

    def __init__(self, members: Sequence[Member], dim: int) -> None:
        self.members = members
        self.dim = dim
        if dim > (width := sum(member.teacher.dim for member in members)):
            raise DataError(f"dim = {dim}: the teachers' vectors have {width} numbers together; dim is at most that")
        self._vectors: dict[str, TeacherVectors] = {}
        self._fit: Fit = {}
        self._key = ""

    @property
    def identity(self) -> str:
        """Identity of the joined vectors: of the teachers, their settings, and the text that the axes are fitted on."""
        parts = [[m.name, m.identity, m.settings.weight, list(m.settings.languages)] for m in self.members]
        return short_hash([parts, self.dim, self._key])

    @property
    def matrices(self) -> Fit:
        """The matrices from the teachers' vectors to targets: `means` [E] and `axes` [E, D]."""
        return {name: self._fit[name] for name in ("means", "axes")}

    def prepare(self, folder: Path, key: str, sample: Callable[[], Sequence[Pair]]) -> None:
        """Open the vectors and axes in a folder for the store with this key; fit missing axes on a sample of pairs."""
        self._key = key
        for member in self.members:
            path, about = folder / f"{member.name}-{member.identity}", {"teacher": member.identity}
            opened = TeacherVectors(path, dim=member.teacher.dim, about=about, keys=SENTENCES)
            self._vectors[member.name] = opened
        file = folder / f"joined-{self.identity}.safetensors"
        if not file.exists():
            # The file gets the bytes in memory order.
            fit = {name: np.ascontiguousarray(array) for name, array in self._fitted(sample()).items()}
            with atomic_file(file) as out:
                out.write(save(fit))
        with as_data_error(file, CACHE_REMEDY):
            self._fit = load_file(file)

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """The student's targets [n, D], not of length 1. Raises DataError if no teacher knows a pair's language."""
        joined, known = self._joined(pairs, self._fit["means"])
        for pattern in np.unique(known, axis=0):
            rows = (known == pattern).all(axis=1)
            if not pattern.any():
                pair = pairs[int(rows.argmax())]
                raise DataError(f"no teacher knows {pair.language!r}, the language of {pair.english[:60]!r}")
            joined[rows] = self._filled(joined[rows], pattern)
        return unit_rows(joined) @ self._fit["axes"]

    def vectors(self, name: str, sentences: Sequence[str]) -> Floats:
        """The unit vectors of sentences by one of the teachers [n, its dim], computed or read from disk."""
        member, kept = next(m for m in self.members if m.name == name), self._vectors[name]
        digests = np.array([digest(sentence) for sentence in sentences], np.uint64)
        texts = dict(zip(digests.tolist(), sentences, strict=True))
        missing = np.unique(kept.missing(digests))
        if len(missing):
            made = member.teacher.encode([member.settings.prompt + texts[key] for key in missing.tolist()])
            kept.add(missing, made.astype(np.float16))
        return kept.rows(digests)

    @cached_property
    def _columns(self) -> list[slice]:
        """The columns of each teacher in the joined vectors."""
        ends = np.cumsum([member.teacher.dim for member in self.members]).tolist()
        return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]

    def _joined(self, pairs: Sequence[Pair], means: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """Weighted vectors of pairs [n, E] minus these means, and which teachers know each pair [n, teachers]."""
        joined = np.zeros((len(pairs), self._columns[-1].stop), np.float32)
        known = np.zeros((len(pairs), len(self.members)), np.bool_)
        for number, (member, columns) in enumerate(zip(self.members, self._columns, strict=True)):
            sides = [member.sides(pair) for pair in pairs]
            rows = np.repeat(np.arange(len(pairs)), [len(texts) for texts in sides])
            vectors = self.vectors(member.name, [text for texts in sides for text in texts])
            np.add.at(joined[:, columns], rows, unit_rows(unit_rows(vectors) - means[columns]))
            joined[:, columns] = unit_rows(joined[:, columns]) * member.settings.weight**0.5
            known[rows, number] = True
        return joined, known

    def _fitted(self, pairs: Sequence[Pair]) -> Fit:
        """Means, moments and axes of the pairs that every teacher knows. Raises DataError if there are too few."""
        complete = [pair for pair in pairs if all(member.sides(pair) for member in self.members)]
        if len(complete) < FEWEST * self.dim:
            raise DataError(f"{len(complete)} pairs that all teachers know; the axes need {FEWEST * self.dim} or more")
        means = np.concatenate([self._mean(member, complete) for member in self.members])
        joined = unit_rows(self._joined(complete, means)[0])
        moments = np.asarray(joined.T @ joined / len(joined), np.float32)
        axes = np.linalg.eigh(moments.astype(np.float64))[1][:, ::-1][:, : self.dim]
        return {"means": means, "moments": moments, "axes": axes.astype(np.float32)}

    def _mean(self, member: Member, pairs: Sequence[Pair]) -> Floats:
        """The mean of a teacher's unit vectors."""
        texts = [text for pair in pairs for text in member.sides(pair)]
        mean: Floats = unit_rows(self.vectors(member.name, texts)).mean(axis=0)
        return mean

    def _filled(self, joined: Floats, known: NDArray[np.bool_]) -> Floats:
        """Joined vectors [n, E] of pairs that only `known` teachers know, with estimates for the other teachers."""
        if known.all():
            return joined
        have = np.concatenate([np.full(m.teacher.dim, knows) for m, knows in zip(self.members, known, strict=True)])
        moments = self._fit["moments"].astype(np.float64)
        squares, products = (torch.from_numpy(moments[np.ix_(have, columns)]) for columns in (have, ~have))
        matrix = solve_ridge(squares, products).float().numpy()
        filled = joined.copy()
        filled[:, ~have] = joined[:, have] @ matrix
        return filled


@dataclass(frozen=True)
class Teachers:
    """The teachers of a training."""

    source: TargetSource | None = None  # of the vectors to learn
    bert: TeacherBert | None = None  # the network whose layers are taken over

    @property
    def dim(self) -> int | None:
        """Dimension of a target; None without a teacher."""
        if self.source is not None:
            return self.source.dim
        return self.bert.table.shape[1] if self.bert is not None else None

    @property
    def joined(self) -> JoinedTeacher | None:
        """The joined teacher, if there are several."""
        return self.source if isinstance(self.source, JoinedTeacher) else None

    def of(self, stage: StageConfig) -> TargetSource | None:
        """The teacher that a stage learns from."""
        if stage.objectives.embedding_match and self.bert is not None:
            return TeacherInput(self.bert)
        return self.source if stage.objectives.distils else None

    def identities(self, stages: Sequence[StageConfig]) -> dict[str, str | None]:
        """Identities of the teachers that stages depend on."""
        needed = any(stage.objectives.distils_vectors for stage in stages)
        return {
            "teacher": self.source.identity if self.source is not None and needed else None,
            "teacher_layers": self.bert.identity if self.bert is not None else None,
        }


def open_teachers(recipe: Recipe, paths: Mapping[str, Path]) -> Teachers:
    """Open the teachers that a recipe needs, by their names in it."""
    if recipe.teachers:
        return Teachers(source=open_joined(recipe.teachers, paths, recipe.dim))
    if named := [name for name in paths if name != ONLY]:
        raise DataError(f"--teacher {named[0]}=PATH: the recipe has no table [teachers.{named[0]}]; give only PATH")
    if not paths:
        if recipe.teacher_layers:
            raise DataError("teacher_layers takes over layers of a teacher; name its folder with --teacher")
        return Teachers()
    path = paths[ONLY]
    bert = read_teacher(path) if recipe.teacher_layers else None
    if bert is not None and not any(stage.objectives.distils_vectors for stage in recipe.stages):
        return Teachers(bert=bert)
    return Teachers(open_teacher(path), bert)


def open_joined(settings: Mapping[str, TeacherConfig], paths: Mapping[str, Path], dim: int) -> JoinedTeacher:
    """Open the teachers of a recipe's table. Raises DataError if paths are missing or superfluous."""
    if missing := [name for name in settings if name not in paths]:
        raise DataError(f"the recipe's teachers need paths: add --teacher {missing[0]}=PATH")
    if unknown := [name for name in paths if name not in settings]:
        known = ", ".join(settings)
        text = f"{unknown[0]}=..." if unknown[0] else "PATH"
        raise DataError(f"--teacher {text}: the recipe has no such teacher; its teachers are {known}")
    return JoinedTeacher([Member(name, open_teacher(paths[name]), own) for name, own in settings.items()], dim)
