"""A translator: an encoder, a decoder over its token states, and beam search (wei2020, sections 3.3 and 4.2).

The decoder reads and predicts the rows of the encoder's token table whose pieces the training's targets have. In an
encoder that was trained before, the cosines of a sentence's vector with these rows are added to every prediction.

Shapes: B sentences, S longest source, T longest target, N target tokens, W beams, D dimensions, K rows.
"""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from xsent_train.model import ACTIVATIONS, Encoder, ModelConfig
from xsent_train.tokens import FIRST, FRAME, LAST, UNK, Tokens, group_of


class Source(NamedTuple):
    """What the decoder sees of some sentences."""

    states: Tensor  # of their tokens [B, S, D]
    padding: Tensor  # which of these belong to no sentence [B, S]
    similar: Tensor  # added to all predictions [B, K]


class Translator(nn.Module):
    """An encoder and a decoder that share the encoder's table."""

    kept: Tensor

    def __init__(self, config: ModelConfig, num_layers: int, kept: Tensor, *, with_vector: bool) -> None:
        """Start at random, with a decoder of `num_layers`.

        The decoder knows the pieces `kept`, in ascending order, [K]; those up to LAST are among them. `with_vector`
        adds the cosines of the sentence's vector.
        """
        super().__init__()
        self.encoder = Encoder(config)
        self.register_buffer("kept", kept)
        self.positions = nn.Parameter(torch.zeros(config.max_length + FRAME, config.dim))
        self.norm = nn.LayerNorm(config.dim)
        shape = config.dim, config.num_heads, config.ffn_dim, config.dropout, ACTIVATIONS[config.activation]
        layer = nn.TransformerDecoderLayer(*shape, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, num_layers)
        for parameter in self.decoder.parameters():  # the layers are copies of one
            if parameter.ndim > 1:
                nn.init.xavier_uniform_(parameter)
        self.gain = nn.Parameter(torch.tensor(float(with_vector)), requires_grad=with_vector)

    @property
    def rows(self) -> Tensor:
        """The rows of the table that the decoder knows [K, D]."""
        return F.embedding(self.kept, self.encoder.table.weight)

    def places(self, pieces: Tensor) -> Tensor:
        """The rows of pieces; UNK's for those that the decoder does not know."""
        places = torch.searchsorted(self.kept, pieces).clamp(max=len(self.kept) - 1)
        return places.where(self.kept[places] == pieces, UNK)

    def forward(self, source: Tokens, target: Tokens, smoothing: float) -> Tensor:
        """The mean cross-entropy of the targets' tokens, with label smoothing."""
        rows, seen = self.rows, self.read(source)
        framed = target.framed(FIRST, LAST)
        group = group_of(framed.lengths)
        padded = framed.ids.new_zeros(group.shape)
        padded[group.where] = self.places(framed.ids)
        known = torch.arange(group.shape[1] - 1, device=padded.device) < (framed.lengths - 1)[:, None]
        states = self.decode(padded[:, :-1], seen, rows)[known]  # [N, D]
        logits = states @ rows.T + seen.similar[known.nonzero()[:, 0]]
        return F.cross_entropy(logits.float(), padded[:, 1:][known], label_smoothing=smoothing)

    def read(self, source: Tokens) -> Source:
        """Encode sentences."""
        framed = self.encoder.framed(source)
        states = self.encoder.states(framed)[-1]
        group = group_of(framed.lengths)
        padded = states.new_zeros(*group.shape, states.shape[1])
        padded[group.where] = states
        padding = torch.arange(group.shape[1], device=states.device) >= framed.lengths[:, None]
        vectors = F.normalize(self.encoder.mean(states, framed), dim=1)
        return Source(padded, padding, self.gain * (vectors @ F.normalize(self.rows, dim=1).T))

    def decode(self, target: Tensor, source: Source, rows: Tensor) -> Tensor:
        """The states [B, T, D] after each token of padded targets [B, T]; padding stands behind."""
        length = target.shape[1]
        x = self.norm(F.embedding(target, rows) + self.positions[:length])
        x = F.dropout(x, self.encoder.config.dropout, self.training)
        future = torch.ones(length, length, dtype=torch.bool, device=target.device).triu(1)
        states: Tensor = self.decoder(
            x, source.states, tgt_mask=future, tgt_is_causal=True, memory_key_padding_mask=source.padding
        )
        return states

    @torch.inference_mode()
    def translate(self, source: Tokens, *, width: int, penalty: float) -> list[list[int]]:
        """The pieces of the translations of sentences, by beam search; at most 1.5 times as long and 10 more."""
        rows = self.rows
        seen = Source(*(part.repeat_interleave(width, dim=0) for part in self.read(source)))  # a row for each beam

        def scores(prefixes: Tensor) -> Tensor:
            states = self.decode(prefixes.flatten(0, 1).to(rows.device), seen, rows)[:, -1]
            logits = (states @ rows.T + seen.similar).float()
            logits[:, :LAST] = -torch.inf  # pieces that are no text
            return logits.log_softmax(dim=1).view(*prefixes.shape[:2], -1).cpu()

        longest = int(1.5 * int(source.lengths.max())) + 10
        most = min(longest, len(self.positions) - 1)
        found = beam_search(scores, len(source.lengths), width=width, most=most, penalty=penalty)
        return [self.kept[sentence.to(rows.device)].tolist() for sentence in found]


def beam_search(
    scores: Callable[[Tensor], Tensor], sentences: int, *, width: int, most: int, penalty: float
) -> list[Tensor]:
    """The best token sequence of each sentence, without the end.

    `scores` gives the log probabilities [B, W, K] after prefixes [B, W, T] that begin with FIRST; LAST ends a sequence.
    A sequence of n tokens, its end among them, is worth its log probability / n^penalty. The search of a sentence ends
    when `width` sequences have ended, or at `most` tokens.
    """
    prefixes = torch.full((sentences, width, 1), FIRST)
    totals = torch.full((sentences, width), -torch.inf)
    totals[:, 0] = 0.0  # all beams are the same yet
    ended: list[list[tuple[float, Tensor]]] = [[] for _ in range(sentences)]
    for length in range(1, most + 1):
        following = scores(prefixes)
        best, where = (totals[:, :, None] + following).flatten(1).topk(2 * width)  # [B, 2W]: half of them may end
        beams, pieces = where // following.shape[2], where % following.shape[2]
        ends = pieces == LAST
        for i, place in (ends & best.isfinite())[:, :width].nonzero().tolist():
            if len(ended[i]) < width:
                ended[i].append((float(best[i, place]) / length**penalty, prefixes[i, beams[i, place], 1:]))
        if all(len(found) == width for found in ended):
            break
        going = ends.int().argsort(dim=1, stable=True)[:, :width]  # the best that have not ended
        totals, beams, pieces = (part.gather(1, going) for part in (best, beams, pieces))
        kept = prefixes.gather(1, beams[:, :, None].expand(-1, -1, length))
        prefixes = torch.cat([kept, pieces[:, :, None]], dim=2)
    return [max(found, key=itemgetter(0))[1] if found else prefixes[i, 0, 1:] for i, found in enumerate(ended)]
