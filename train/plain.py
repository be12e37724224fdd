"""What an encoder would say of sentences in a language that it cannot read, by teachers that can.

A ridge regression leads from what the teachers say into the encoder's own space. It is fitted on sentences of languages
that all of them know, and so a language can be learnt without a single pair.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import compress

import numpy as np
import torch

from xsent.similarity import Floats, unit_rows
from xsent.train.data.corpus import Pair
from xsent.train.data.sampling import evenly
from xsent.train.readouts import ridge
from xsent.train.teacher import Teacher

FEWEST = 8  # sentences a number of the teachers' vectors that the regression is fitted on, at least
MOST = 20_000  # more find little more


class Interpreted:
    """An encoder as its own teacher (see `Teaches`); of a pair with equal sides, a plain sentence, others tell it."""

    def __init__(self, encoder: Teacher, teachers: Sequence[Teacher], known: Callable[[], Sequence[str]]) -> None:
        """Lead from the teachers to the encoder by `known`, sentences that all can read."""
        self.dim, self._encoder, self._teachers, self._known = encoder.dim, encoder, teachers, known

    @property
    def identity(self) -> str:
        """Identity of what it says."""
        return "-".join(teacher.identity for teacher in (self._encoder, *self._teachers))

    def targets(self, pairs: Sequence[Pair]) -> Floats:
        """What the encoder says of the English sides, or would say of plain sentences [n, dim]."""
        vectors = np.empty((len(pairs), self.dim), np.float32)
        plain = np.array([bool(self._teachers) and pair.english == pair.translation for pair in pairs], np.bool_)
        if not plain.all():
            vectors[~plain] = self._encoder.targets(list(compress(pairs, ~plain)))
        if plain.any():
            told = self._told([pair.english for pair in compress(pairs, plain)])
            vectors[plain] = unit_rows((told @ self._matrix).numpy())
        return vectors

    @cached_property
    def _matrix(self) -> torch.Tensor:
        known = self._known()
        known = [known[number] for number in evenly(len(known), MOST)]
        return ridge(self._told(known), torch.from_numpy(self._encoder.encode(known)))

    def _told(self, sentences: list[str]) -> torch.Tensor:
        """What the teachers say of sentences, and a one for what their means are apart."""
        ones = np.ones((len(sentences), 1), np.float32)
        return torch.from_numpy(np.hstack([*(teacher.encode(sentences) for teacher in self._teachers), ones]))
