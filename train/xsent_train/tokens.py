"""A batch of sentences as one row of tokens, and the groups in which attention runs.

On a CPU, sentences of similar length are padded and run together, so that little time is spent on padding. Shapes: B
sentences, N tokens.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import sentencepiece as spm
import torch
import torch.nn.functional as F
from torch import Tensor

PAD, UNK, MASK, FIRST, LAST = 0, 1, 2, 3, 4  # special-token ids, in every vocabulary of xsent-train
FRAME = 2  # the first and the last token around a sentence that layers read
# The longest sentence of a group has at most STRETCH times the tokens of its shortest one, plus SLACK.
STRETCH, SLACK = 1.2, 4


class Tokens(NamedTuple):
    """A batch of sentences, with their tokens one after another."""

    ids: Tensor  # piece ids [N]
    lengths: Tensor  # tokens of each sentence [B]; a sentence may be empty

    @property
    def offsets(self) -> Tensor:
        """Where each sentence starts in `ids` [B]."""
        return self.lengths.cumsum(0) - self.lengths

    @property
    def positions(self) -> Tensor:
        """The position of each token in its sentence [N]."""
        return token_positions(self.lengths, len(self.ids))

    @property
    def sentence(self) -> Tensor:
        """The sentence that each token belongs to [N]."""
        return torch.repeat_interleave(self.lengths, output_size=len(self.ids))  # else a GPU waits for the count

    def part(self, start: int, stop: int) -> "Tokens":
        """The sentences from `start` to `stop` (exclusive)."""
        begin, end = (int(self.lengths[:i].sum()) for i in (start, stop))
        return Tokens(self.ids[begin:end], self.lengths[start:stop])

    def cut(self, longest: int) -> "Tokens":
        """The same sentences, each cut at `longest` tokens."""
        return Tokens(self.ids[self.positions < longest], self.lengths.clamp(max=longest))

    def framed(self, first: int, last: int) -> "Tokens":
        """The same sentences, each between a first and a last token."""
        lengths = self.lengths + FRAME
        ids = self.ids.new_full((len(self.ids) + FRAME * len(lengths),), first)
        ids[lengths.cumsum(0) - 1] = last
        return Tokens(ids.index_copy_(0, self.inside(), self.ids), lengths)

    def inside(self) -> Tensor:
        """The place of each token in `framed` [N]."""
        return torch.arange(len(self.ids), device=self.ids.device) + FRAME * self.sentence + 1

    def to(self, device: torch.device) -> "Tokens":
        """The same batch on another device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True))


def open_tokenizer(path: Path) -> spm.SentencePieceProcessor:
    """Open a SentencePiece model."""
    return spm.SentencePieceProcessor(model_file=str(path))


def to_tokens(sentences: Sequence[Sequence[int]], longest: int | None = None) -> Tokens:
    """Lists of piece ids as a batch, each cut at `longest` tokens."""
    cut = [sentence[:longest] for sentence in sentences]
    ids = torch.tensor([i for sentence in cut for i in sentence], dtype=torch.long)
    return Tokens(ids, torch.tensor([len(sentence) for sentence in cut], dtype=torch.long))


def token_positions(lengths: Tensor, count: int | None = None) -> Tensor:
    """The position of each token in its sentence, sentence after sentence [N]; `count` = N saves a GPU the wait."""
    start = torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths, output_size=count)
    return torch.arange(len(start), device=lengths.device) - start


class TokenGroup(NamedTuple):
    """Sentences whose tokens are next to each other."""

    where: tuple[Tensor, Tensor]  # each token's sentence in the group and its position there, 2 x [tokens]
    mask: Tensor | None  # real positions [b, T]; None where all sentences are equally long
    shape: tuple[int, int]  # sentences and the tokens of the longest (b, T)
    starts: Tensor  # the first token of each sentence, and the end of the last one, in 32 bits [b + 1]


class Packing(NamedTuple):
    """The tokens of a batch in groups."""

    groups: Sequence[TokenGroup]
    order: Tensor | None = None  # the token of the batch at each place [N]; None if unchanged
    back: Tensor | None = None  # the place of each token of the batch [N]


def by_length(tokens: Tokens, places: Tensor) -> tuple[Tokens, Tensor | None, Tensor]:
    """The sentences of a batch, the shortest first, where each went [B], and where the tokens at `places` went [M].

    Then nothing else has to be reordered to run sentences of similar length together. On a GPU they stay, see
    `packing`.
    """
    lengths = tokens.lengths
    if lengths.device.type != "cpu":
        return tokens, None, places
    ranks = lengths.argsort(stable=True)
    order = _token_order(tokens, ranks)
    if len(places):
        places = inverse(order)[places]
    return Tokens(tokens.ids[order], lengths[ranks]), inverse(ranks), places


def packing(lengths: Tensor) -> Packing:
    """Group the sentences of a batch, given their lengths [B], into groups of similar length.

    On a CPU, attention over padding takes the time. On a GPU, many small calls do, so all sentences stay together.
    """
    if lengths.device.type != "cpu":
        return Packing([group_of(lengths)])
    counts = lengths.tolist()
    ascending = sorted(counts)
    sizes = group_sizes(ascending)
    if len(sizes) < 2:
        return Packing([group_of(lengths)])
    if counts == ascending:
        return Packing([group_of(part) for part in torch.split(lengths, sizes)])
    ranks = lengths.argsort(stable=True)
    order = _token_order(Tokens(lengths.new_empty(sum(counts)), lengths), ranks)
    return Packing([group_of(part) for part in torch.split(lengths[ranks], sizes)], order, inverse(order))


def _token_order(tokens: Tokens, ranks: Tensor) -> Tensor:
    """The tokens of the sentences in another order [N]."""
    lengths, count = tokens.lengths[ranks], len(tokens.ids)
    first = torch.repeat_interleave(tokens.offsets[ranks], lengths, output_size=count)
    return first + token_positions(lengths, count)


def inverse(order: Tensor) -> Tensor:
    """The place of each item in an order."""
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order), device=order.device)
    return places


def group_sizes(lengths: Sequence[int]) -> list[int]:
    """How many sentences each group takes, given ascending lengths."""
    sizes: list[int] = []
    limit = -1.0
    for length in lengths:
        if length > limit:
            sizes.append(0)
            limit = STRETCH * length + SLACK
        sizes[-1] += 1
    return sizes


def group_of(lengths: Tensor) -> TokenGroup:
    """Some sentences as a group."""
    counts = lengths.tolist()  # once, because a GPU waits for it
    # At least one position per sentence, because a softmax over none would be NaN.
    longest, tokens = max([1, *counts]), sum(counts)
    sentence, position = torch.repeat_interleave(lengths, output_size=tokens), token_positions(lengths, tokens)
    mask = None
    if tokens != longest * len(lengths):
        mask = torch.arange(longest, device=lengths.device) < lengths.clamp(min=1)[:, None]
    starts = F.pad(lengths.cumsum(0), (1, 0)).int()
    return TokenGroup((sentence, position), mask, (len(lengths), longest), starts)
