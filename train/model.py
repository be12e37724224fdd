"""The compact encoder: a token table, a few layers, the mean.

The paper's encoder (mao2021, section 3.1) is post-norm, like BERT. Ours is pre-norm with output projections that start
at zero, so that N layers begin as exactly the table they stand on (the sentence vector is the mean of the rows) and
can only learn to correct it; the paper's form stays selectable. Layers run on the real tokens alone: padding exists
only inside attention, so the vector of a sentence does not depend on its batch mates.

Shapes: B sentences, T longest sentence, N tokens of the batch in one row, D dimensions, V pieces.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xsent.train.packing import Group, pack, token_positions


@dataclass(frozen=True)
class ModelConfig:
    """The shape of an encoder.

    Attributes:
        vocab_size: Rows of the token table (V).
        dim: Hidden size and sentence dimension (D).
        num_layers: Layers above the table; 0 is the static encoder.
        num_heads: Attention heads; must divide `dim`.
        ffn_dim: Inner size of the feed-forward block.
        max_length: Longest sentence in tokens.
        dropout: Share of activations dropped in training.
        norm: "pre", or "post" for the paper's form.
    """

    vocab_size: int
    dim: int = 512
    num_layers: int = 2
    num_heads: int = 8
    ffn_dim: int = 1024
    max_length: int = 256
    dropout: float = 0.0
    norm: str = "pre"

    def __post_init__(self) -> None:
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        if not 0 <= self.num_layers <= 6:
            raise ValueError(f"num_layers = {self.num_layers} must lie between 0 and 6")
        if self.norm not in ("pre", "post"):
            raise ValueError(f"norm = {self.norm!r} must be 'pre' or 'post'")


class Tokens(NamedTuple):
    """A batch of sentences as one row of tokens.

    Attributes:
        ids: Piece ids of all sentences, one after the other, shape [N].
        lengths: Tokens of each sentence, shape [B]; a sentence may be empty.
    """

    ids: Tensor
    lengths: Tensor

    @property
    def offsets(self) -> Tensor:
        """Where each sentence starts in `ids`, shape [B]."""
        return self.lengths.cumsum(0) - self.lengths

    @property
    def sentence(self) -> Tensor:
        """The sentence that each token belongs to, shape [N]."""
        return torch.repeat_interleave(self.lengths)

    @property
    def position(self) -> Tensor:
        """The position of each token in its sentence, shape [N]."""
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

    def to(self, device: torch.device) -> "Tokens":
        """The same batch on another device."""
        return Tokens(self.ids.to(device, non_blocking=True), self.lengths.to(device, non_blocking=True))


class Layer(nn.Module):
    """One pre-norm transformer layer: x + attention(norm(x)), then x + feed-forward(norm(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.dropout = config.dropout
        self.attention_norm = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.attention_out = nn.Linear(config.dim, config.dim)
        self.ffn_norm = nn.LayerNorm(config.dim)
        self.ffn_in = nn.Linear(config.dim, config.ffn_dim)
        self.ffn_out = nn.Linear(config.ffn_dim, config.dim)
        for projection in (self.attention_out, self.ffn_out):
            nn.init.zeros_(projection.weight)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, positions: Tensor | None, groups: Sequence[Group]) -> Tensor:
        """Transform tokens.

        Args:
            x: Tokens [N, D].
            positions: Position vectors to add to the attention's input [N, D]; the first layer only.
            groups: The sentences of the tokens, see `xsent.train.packing`.
        """
        hidden = self.attention_norm(x)
        if positions is not None:
            hidden = hidden + positions
        x = x + self._drop(self.attention_out(self._attend(self.qkv(hidden), groups)))
        return x + self._drop(self.ffn_out(F.silu(self.ffn_in(self.ffn_norm(x)))))

    def _attend(self, qkv: Tensor, groups: Sequence[Group]) -> Tensor:
        parts = torch.split(qkv, [group.tokens for group in groups])
        return torch.cat([self._attend_group(part, group) for part, group in zip(parts, groups, strict=True)])

    def _attend_group(self, qkv: Tensor, group: Group) -> Tensor:
        width = qkv.shape[-1]
        padded = qkv  # [b, T, 3D]
        if group.mask is not None:
            padded = qkv.new_zeros(*group.shape, width)
            padded[group.where] = qkv
        heads = padded.view(*group.shape, 3, self.num_heads, width // (3 * self.num_heads))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # 3 x [b, H, T, D/H]
        mask = None if group.mask is None else group.mask[:, None, None, :]
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).flatten(2)
        return out.flatten(0, 1) if group.mask is None else out[group.where]  # [tokens, D]

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class PostNormLayer(Layer):
    """One post-norm layer, as in the paper and in BERT: norm(x + attention(x)), then norm(x + feed-forward(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        for projection in (self.qkv, self.attention_out, self.ffn_in, self.ffn_out):
            nn.init.normal_(projection.weight, std=0.02)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, positions: Tensor | None, groups: Sequence[Group]) -> Tensor:
        """Transform tokens; positions are part of them already."""
        x = self.attention_norm(x + self._drop(self.attention_out(self._attend(self.qkv(x), groups))))
        hidden: Tensor = self.ffn_norm(x + self._drop(self.ffn_out(F.silu(self.ffn_in(x)))))
        return hidden


class Encoder(nn.Module):
    """Sentences to vectors: table look-up, layers, mean over the tokens (mao2021, section 3.1)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Embedding(config.vocab_size, config.dim)
        # Small, so that a piece that training hardly meets hardly weighs in the mean.
        nn.init.normal_(self.table.weight, std=0.02)
        post = config.norm == "post" and config.num_layers > 0
        # Zero, so that positions which training never reaches carry no noise.
        self.positions = nn.Parameter(torch.zeros(config.max_length, config.dim)) if config.num_layers else None
        self.table_norm = nn.LayerNorm(config.dim) if post else None
        self.layers = nn.ModuleList((PostNormLayer if post else Layer)(config) for _ in range(config.num_layers))

    def forward(self, tokens: Tokens) -> Tensor:
        """Encode a batch.

        Args:
            tokens: The batch; every sentence at most `max_length` tokens.

        Returns:
            Sentence vectors [B, D], not normalised; an empty sentence is the zero vector.
        """
        return self.mean(self.states(tokens)[-1], tokens) if self.layers else self.static(tokens)

    def states(self, tokens: Tokens) -> list[Tensor]:
        """The vectors of the tokens after 0, 1, ... layers, num_layers + 1 times [N, D]."""
        x = self.table(tokens.ids)  # [N, D]
        states = [x]
        if self.positions is None:
            return states
        packing, place = pack(tokens.lengths), tokens.position
        if packing.order is not None:
            x, place = x.index_select(0, packing.order), place[packing.order]
        positions: Tensor | None = F.embedding(place, self.positions)
        if self.table_norm is not None:
            x = F.dropout(self.table_norm(x + positions), self.config.dropout, self.training)
        for layer in self.layers:
            x = layer(x, positions, packing.groups)
            states.append(x if packing.back is None else x.index_select(0, packing.back))
            positions = None
        return states

    def first(self, num_layers: int) -> "Encoder":
        """The encoder inside this one that stops after some of its layers; it shares the weights.

        Raises:
            ValueError: This one has fewer layers.
        """
        if num_layers > self.config.num_layers:
            raise ValueError(f"num_layers = {num_layers} must be at most {self.config.num_layers}")
        with torch.device("meta"):
            encoder = Encoder(replace(self.config, num_layers=num_layers))
        state = self.state_dict()
        encoder.load_state_dict({name: state[name] for name in encoder.state_dict()}, assign=True)
        return encoder.train(self.training)

    @staticmethod
    def mean(states: Tensor, tokens: Tokens) -> Tensor:
        """The mean over the tokens of each sentence: [N, D] to [B, D]."""
        total = states.new_zeros(len(tokens.lengths), states.shape[1]).index_add_(0, tokens.sentence, states)
        vectors: Tensor = total / tokens.lengths.clamp(min=1)[:, None]
        return vectors

    @torch.no_grad()
    def scale_layers(self, factor: float) -> None:
        """Scale what every layer adds to the table's vectors; 0 leaves the table alone."""
        for layer in self.layers:
            assert isinstance(layer, Layer)
            for projection in (layer.attention_out, layer.ffn_out):
                projection.weight.mul_(factor)
                projection.bias.mul_(factor)

    def static(self, tokens: Tokens) -> Tensor:
        """The vectors of the table alone, the 0-layer encoder inside this one [B, D]."""
        return F.embedding_bag(tokens.ids, self.table.weight, tokens.offsets, mode="mean")


class GenerativeHead(nn.Module):
    """One dense layer between the sentence vector and the tied softmax; training only (mao2021 section 3.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, vectors: Tensor) -> Tensor:
        """Sentence vectors [B, D] to what is compared with the token table [B, D]."""
        hidden: Tensor = self.norm(F.silu(self.dense(vectors)))
        return hidden
