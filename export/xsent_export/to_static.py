"""A table that does without the layers above it: made of an encoder that has some, without training.

What the layers would say of a sentence is guessed from its pieces alone. Each piece is read as a sentence of its own
(as in model2vec, Tulkens and van Dongen 2024). Its vector, and beside it what enters the layers there, is mapped so
that the mean over the pieces of a sentence lies near what the whole encoder says (ridge regression). The map of a mean
is the mean of what is mapped: a table is all that is left.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from xsent_train.checkpoint import TABLE, Checkpoint, to_tokens
from xsent_train.model import Encoder
from xsent_train.tokens import Tokens

logger = logging.getLogger(__name__)

CHUNK = 256  # sentences at a time
PRIOR = 50  # sentences' worth of belief that a sentence is the mean of its pieces, each read alone


@torch.no_grad()
def without_layers(checkpoint: Checkpoint, sentences: Sequence[str]) -> Checkpoint:
    """The checkpoint as a table alone, fitted to what its layers say of some sentences in all its languages."""
    encoder, processor = checkpoint.load_encoder(), checkpoint.load_tokenizer()
    logger.info("a table of %s pieces, fitted to %s sentences", f"{len(processor):,}", f"{len(sentences):,}")
    pieces = _alone(encoder)
    means, vectors = [], []
    for start in range(0, len(sentences), CHUNK):
        tokens = to_tokens(processor.encode(list(sentences[start : start + CHUNK])), encoder)
        tokens = Tokens(tokens.ids, tokens.lengths[tokens.lengths > 0])
        means.append(Encoder.mean(pieces[tokens.ids], tokens))
        vectors.append(encoder(tokens))
    table = _map_pieces(pieces, torch.cat(means), torch.cat(vectors))
    model = {**checkpoint.about["model"], "num_layers": 0, "depths": []}
    about = {**checkpoint.about, "model": model, "precision": None}
    return replace(checkpoint, about=about, weights={TABLE: table})


def _alone(encoder: Encoder) -> Tensor:
    """The vector of every piece as a sentence of its own, and beside it what enters the layers [V, 2D]."""
    rows = []
    for part in torch.split(torch.arange(encoder.config.vocab_size), CHUNK):
        tokens = Tokens(part, torch.ones_like(part))
        framed = encoder.framed(tokens)
        states = encoder.states(framed)
        vectors = encoder.read_out(states[-1], framed, tokens, len(encoder.layers))
        rows.append(torch.cat([vectors, states[0][tokens.inside()]], dim=1))
    return torch.cat(rows)


def _map_pieces(pieces: Tensor, means: Tensor, vectors: Tensor) -> Tensor:
    """Pieces [V, 2D] mapped so that these means of them [n, 2D] come near vectors [n, D]: a table [V, D].

    Ridge regression of what a sentence is beyond the mean of its pieces' own vectors, the first D of each.
    """
    dim = vectors.shape[1]
    x, y = means.double(), vectors.double() - means[:, :dim].double()
    middle, offset = x.mean(dim=0), y.mean(dim=0)
    x, y = x - middle, y - offset
    squares = x.T @ x
    squares.diagonal().add_(PRIOR * means.double().square().mean())
    weight = torch.linalg.solve(squares, x.T @ y)
    table: Tensor = pieces[:, :dim] + (pieces - middle.to(pieces)) @ weight.to(pieces) + offset.to(pieces)
    return table
