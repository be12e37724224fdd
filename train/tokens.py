"""A batch of sentences as one row of tokens. Shapes: B sentences, N tokens of all of them."""

from typing import NamedTuple

import torch
from torch import Tensor

FRAME = 2  # the first and the last token around a sentence that layers read


class Tokens(NamedTuple):
    """A batch of sentences, their tokens one after the other."""

    ids: Tensor  # piece ids [N]
    lengths: Tensor  # tokens of each sentence [B]; a sentence may be empty

    @property
    def offsets(self) -> Tensor:
        """Where each sentence starts in `ids` [B]."""
        return self.lengths.cumsum(0) - self.lengths

    @property
    def sentence(self) -> Tensor:
        """The sentence that each token belongs to [N]."""
        return torch.repeat_interleave(self.lengths)

    @property
    def position(self) -> Tensor:
        """The position of each token in its sentence [N]."""
        return token_positions(self.lengths)

    @staticmethod
    def join(sides: "tuple[Tokens, Tokens]") -> "Tokens":
        """Two batches as one."""
        return Tokens(torch.cat([s.ids for s in sides]), torch.cat([s.lengths for s in sides]))

    def part(self, start: int, stop: int) -> "Tokens":
        """The sentences from `start` to `stop` (exclusive)."""
        if start == 0 and stop == len(self.lengths):
            return self
        begin, end = (int(self.lengths[:i].sum()) for i in (start, stop))
        return Tokens(self.ids[begin:end], self.lengths[start:stop])

    def framed(self, first: int, last: int) -> "Tokens":
        """The same sentences, each between a first and a last token."""
        lengths = self.lengths + FRAME
        ids = self.ids.new_full((len(self.ids) + FRAME * len(lengths),), first)
        ids[lengths.cumsum(0) - 1] = last
        return Tokens(ids.index_copy_(0, self.inside(), self.ids), lengths)

    def inside(self) -> Tensor:
        """Where each token stands in `framed` [N]."""
        return torch.arange(len(self.ids), device=self.ids.device) + FRAME * self.sentence + 1

    def to(self, device: torch.device) -> "Tokens":
        """The same batch on another device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True))


def token_positions(lengths: Tensor) -> Tensor:
    """The position of each token in its sentence, sentence after sentence [N]."""
    start = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    return torch.arange(len(start), device=lengths.device) - start
