"""The paper's system written plainly, as a baseline to measure the trainer against.

A stock post-norm transformer over padded batches, dense [B, V] targets, float32, Adam with AMSGrad (mao2021 sections 3
and 4, and its authors' settings). Nothing in it is tuned.

Shapes: B pairs, T the longest sentence of a side, D dimensions, V pieces.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xsent.train.data.hiding import Hiding
from xsent.train.model import ModelConfig
from xsent.train.tokens import Tokens

PAD = 0


class PlainSystem(nn.Module):
    """Encoder, generative head and the loss UGT + 2 align + 2 sim."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocab_size, config.dim, padding_idx=PAD)
        self.positions = nn.Embedding(config.max_length, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.dropout = nn.Dropout(config.dropout)
        layer = nn.TransformerEncoderLayer(
            config.dim, config.num_heads, config.ffn_dim, config.dropout, F.silu, batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, config.num_layers, enable_nested_tensor=False)
        self.dense = nn.Linear(config.dim, config.dim)
        self.head_norm = nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.words.weight, std=0.02)
        nn.init.normal_(self.positions.weight, std=0.02)

    def forward(self, hiding: Hiding) -> Tensor:
        """The loss of a batch of B pairs."""
        u, v = (self.encode(side.tokens) for side in hiding.read)
        ugt = self.reconstruct((u, v), hiding)
        return ugt + 2 * inner_align(u, v) + 2 * literal_sim(u, v)

    def encode(self, tokens: Tokens) -> Tensor:
        """Sentence vectors [B, D]: the mean of the final states over the real positions."""
        ids = padded(tokens)
        real = torch.arange(ids.shape[1], device=ids.device) < tokens.lengths[:, None]
        x = self.words(ids) + self.positions.weight[: ids.shape[1]]
        x = self.encoder(self.dropout(self.norm(x)), src_key_padding_mask=~real)
        vectors: Tensor = (x * real[:, :, None]).sum(dim=1) / real.sum(dim=1, keepdim=True)
        return vectors

    def reconstruct(self, vectors: tuple[Tensor, Tensor], hiding: Hiding) -> Tensor:
        """UGT of both sides (mao2021 eq. 4) with dense targets."""
        assert hiding.piece is not None and hiding.masked is not None
        losses = []
        for side in (0, 1):
            hidden = self.head_norm(F.silu(self.dense(vectors[side])))
            targets = dense_targets(hiding.sides[1 - side], hiding.piece, hiding.masked[side], len(self.bias))
            losses.append(dense_loss(hidden @ self.words.weight.T + self.bias, targets))
        return torch.stack(losses).sum()


def padded(tokens: Tokens) -> Tensor:
    """A batch as a rectangle as wide as its longest sentence [B, T]."""
    sentences = [
        tokens.ids[end - length : end] for end, length in zip(tokens.lengths.cumsum(0), tokens.lengths, strict=True)
    ]
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True, padding_value=PAD)


def dense_targets(other: Tokens, piece: Tensor, masked: Tensor, pieces: int) -> Tensor:
    """UGT's targets [B, V]: even over the other side's pieces; half on the hidden one [B] where masked [B]."""
    targets = torch.zeros(len(other.lengths), pieces, device=other.ids.device)
    targets[other.sentence, other.ids] = 1
    targets /= targets.sum(dim=1, keepdim=True)
    hidden = F.one_hot(piece, pieces).float()
    return torch.where(masked[:, None], 0.5 * targets + 0.5 * hidden, targets)


def dense_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of logits [B, V] against targets [B, V], the mean over the batch."""
    return -(targets * F.log_softmax(logits, dim=1)).sum(dim=1).mean()


def inner_align(u: Tensor, v: Tensor) -> Tensor:
    """Find the translation by inner product, both directions (mao2021 eq. 5)."""
    gold = torch.arange(len(u), device=u.device)
    return F.cross_entropy(u @ v.T, gold) + F.cross_entropy(v @ u.T, gold)


def literal_sim(u: Tensor, v: Tensor) -> Tensor:
    """Equal similarity matrices (mao2021 eq. 6), diagonal included, the sum."""
    difference = F.softmax(u @ u.T, dim=1) - F.softmax(v @ v.T, dim=1)
    return -torch.log(torch.cos(torch.pi / 2 * difference).clamp(min=1e-6)).sum()


def adam(system: nn.Module) -> torch.optim.Optimizer:
    """The authors' optimiser."""
    return torch.optim.Adam(system.parameters(), lr=1e-3, weight_decay=1e-5, amsgrad=True)
