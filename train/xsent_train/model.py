"""The compact encoder: a BERT (Devlin et al. 2019, mao2021 section 3.1), a token table, a few layers, the mean.

It has learned positions, puts a first and a last token around every sentence, and takes the mean over all tokens.
Layers run only on real tokens: padding exists only inside attention, and on a GPU in bfloat16 not even there. So the
vector of a sentence depends on the rest of its batch only through rounding, in its last bits.
Without layers, the encoder is the mean of a sentence's rows, without the first and the last token.

An encoder with readouts gives a vector at several depths, including 0 layers. The readout of a depth weighs the tokens
by its own query, which is zero for the plain mean, and maps their mean into the space that all depths share. Map and
query can be fitted to a trained encoder (`xsent_train.fitting`).

Shapes: B sentences, T longest sentence, N tokens of the batch in one row, D dimensions, V pieces.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from xsent_train.tokens import FIRST, FRAME, LAST, TokenGroup, Tokens, by_length, packing, to_tokens

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = MappingProxyType({"gelu": F.gelu, "silu": F.silu})
CHUNK = 64  # sentences encoded at a time; of 256 long ones, the states alone take 200 MB


@dataclass(frozen=True)
class ModelConfig:
    """The shape of an encoder."""

    vocab_size: int  # rows of the token table (V)
    dim: int = 512  # of tokens and sentences (D)
    num_layers: int = 2  # above the table; 0 is the static encoder
    num_heads: int = 8
    ffn_dim: int = 1024  # inner size of the feed-forward block
    max_length: int = 256  # longest sentence in tokens, not counting the first and the last one
    dropout: float = 0.0
    activation: str = "silu"  # as in mao2021, or gelu as in BERT
    norm_eps: float = 1e-5  # added to the variance in the norms
    first: int = FIRST  # piece before every sentence
    last: int = LAST  # piece after every sentence
    depths: tuple[int, ...] = ()  # depths with a readout, ascending, ending with all layers; empty for plain means

    def __post_init__(self) -> None:
        object.__setattr__(self, "depths", tuple(self.depths))  # JSON has lists
        depths = list(self.depths)
        if depths and (depths != sorted(set(depths)) or depths[0] < 0 or depths[-1] != self.num_layers):
            raise ValueError(f"depths = {depths} must ascend from 0 or more to num_layers = {self.num_layers}")
        for field in fields(self):  # the values may come from a file
            value = getattr(self, field.name)
            if field.name == "depths":
                continue
            assert isinstance(field.type, type)
            if not isinstance(value, (int, float) if field.type is float else field.type):
                raise TypeError(f"{field.name} = {value!r:.80} must be of type {field.type.__name__}")
        if not (0 <= self.first < self.vocab_size and 0 <= self.last < self.vocab_size):
            raise ValueError(f"first = {self.first} and last = {self.last} must be pieces, below {self.vocab_size}")
        if self.dim % self.num_heads:
            raise ValueError(f"num_heads = {self.num_heads} must divide dim = {self.dim}")
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation = {self.activation!r} must be one of {', '.join(ACTIVATIONS)}")


class Layer(nn.Module):
    """One layer: norm(x + attention(x)), then norm(x + feed-forward(x))."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.drop = nn.Dropout(config.dropout)
        self.activation = ACTIVATIONS[config.activation]
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.attention_out = nn.Linear(config.dim, config.dim)
        self.attention_norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        self.ffn_in = nn.Linear(config.dim, config.ffn_dim)
        self.ffn_out = nn.Linear(config.ffn_dim, config.dim)
        self.ffn_norm = nn.LayerNorm(config.dim, eps=config.norm_eps)
        for projection in (self.qkv, self.attention_out, self.ffn_in, self.ffn_out):
            nn.init.normal_(projection.weight, std=0.02)
            nn.init.zeros_(projection.bias)

    def forward(self, x: Tensor, groups: Sequence[TokenGroup]) -> Tensor:
        """Transform the tokens [N, D] of sentences in groups, see `xsent_train.tokens`."""
        x = self.attention_norm(x + self.drop(self.attention_out(self._attend(self.qkv(x), groups))))
        hidden: Tensor = self.ffn_norm(x + self.drop(self.ffn_out(self.activation(self.ffn_in(x)))))
        return hidden

    def _attend(self, qkv: Tensor, groups: Sequence[TokenGroup]) -> Tensor:
        mix = self._attend_packed if fits_kernel(qkv, self.num_heads) else self._attend_padded
        parts = torch.split(qkv, [len(group.where[0]) for group in groups])
        return torch.cat([mix(part, group) for part, group in zip(parts, groups, strict=True)])

    def _attend_packed(self, qkv: Tensor, group: TokenGroup) -> Tensor:
        """Attention without padding, in the GPU's kernel for variable lengths."""
        from torch.nn.attention.varlen import varlen_attn  # here, not above: it imports torch's compiler, for seconds

        q, k, v = qkv.view(len(qkv), 3, self.num_heads, -1).unbind(1)
        mixed = varlen_attn(q, k, v, group.starts, group.starts, group.shape[1], group.shape[1])
        assert isinstance(mixed, Tensor)
        return mixed.flatten(1)

    def _attend_padded(self, qkv: Tensor, group: TokenGroup) -> Tensor:
        width = qkv.shape[-1]
        padded = qkv  # [b, T, 3D]
        if group.mask is not None:
            padded = qkv.new_zeros(*group.shape, width)
            padded[group.where] = qkv
        heads = padded.view(*group.shape, 3, self.num_heads, width // (3 * self.num_heads))
        q, k, v = heads.permute(2, 0, 3, 1, 4)  # 3 x [b, H, T, D/H]
        mask = None if group.mask is None else group.mask[:, None, None, :]
        out = attend(q, k, v, mask).transpose(1, 2).flatten(2)
        return out.flatten(0, 1) if group.mask is None else out[group.where]  # [tokens, D]


def fits_kernel(qkv: Tensor, num_heads: int) -> bool:
    """Whether a GPU kernel for attention without padding fits (FlashAttention: Ampere or later, heads of 8 n)."""
    if not qkv.is_cuda or qkv.dtype != torch.bfloat16 or qkv.shape[-1] % (3 * 8 * num_heads):
        return False
    return torch.cuda.get_device_capability(qkv.device) >= (8, 0)


def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """The attention of each token to the others [b, H, T, D/H].

    Written out for bfloat16 on a CPU, where PyTorch's fused form takes six to nine times as long.
    """
    if q.device.type != "cpu" or q.dtype != torch.bfloat16:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with torch.autocast("cpu", enabled=False):
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # [b, H, T, T]
        if mask is not None:
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        mixed: Tensor = scores.softmax(dim=-1) @ v
    return mixed


class Readout(nn.Linear):
    """The linear map from the mean of a sentence's tokens to its vector, and the query that weighs them in that mean.

    A token counts by the exponential of its state's product with the query (the attention of Yang et al. 2016). At
    zero, where the query starts, all tokens count alike. The query is fitted, not trained. Training it brought vectors
    nearer to the teachers', but did not improve similarity.
    """

    query: Tensor

    def __init__(self, dim: int) -> None:
        super().__init__(dim, dim)
        self.register_buffer("query", torch.zeros(dim))
        self._seen: tuple[int, int] | None = None  # place and version of the query when it was last looked at
        self._weighs = False
        for weight in (self.weight, self.bias):
            nn.init.zeros_(weight)
        self.weight.data.diagonal().fill_(1)  # torch.eye would import the compiler on the meta device

    @property
    def weighs(self) -> bool:
        """Whether tokens count differently. Looks at the query only if it has changed: a GPU would wait each time."""
        now = self.query.data_ptr(), self.query._version
        if now != self._seen:
            self._seen, self._weighs = now, bool(self.query.any())
        return self._weighs

    def weighted_mean(self, states: Tensor, tokens: Tokens) -> Tensor:
        """The mean over the tokens of each sentence, in float32: [N, D] to [B, D]."""
        with torch.autocast(states.device.type, enabled=False):  # bfloat16 has integers only up to 256
            states = states.to(self.query.dtype)
            scores = states @ self.query
            # Subtract the largest score of each sentence, so that exponentials are at most 1.
            largest = scores.new_zeros(len(tokens.lengths))
            largest = largest.scatter_reduce(0, tokens.sentence, scores.detach(), "amax", include_self=False)
            weights = (scores - largest[tokens.sentence]).exp()
            total = states.new_zeros(len(largest), states.shape[1]).index_add_(
                0, tokens.sentence, weights[:, None] * states
            )
            count = weights.new_zeros(len(largest)).index_add_(0, tokens.sentence, weights)
            return total / count[:, None]


class _WithoutNumbers(TorchFunctionMode):
    """Skips random numbers for modules on the meta device, for which torch would import its compiler: two seconds."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: object,
        arguments: tuple[Any, ...] = (),
        options: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401
        if getattr(function, "__module__", None) == "torch.nn.init":
            return options["tensor"] if options else arguments[0]
        return function(*arguments, **(options or {}))


class Encoder(nn.Module):
    """Sentences to vectors: table look-up, layers, mean over the tokens."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.table = nn.Embedding(config.vocab_size, config.dim)
        # Small, so that a piece that is rare in training has little weight in the mean.
        nn.init.normal_(self.table.weight, std=0.02)
        # Zero, so that positions that training never reaches add no noise.
        framed = config.num_layers or config.depths
        self.positions = nn.Parameter(torch.zeros(config.max_length + FRAME, config.dim)) if framed else None
        self.table_norm = nn.LayerNorm(config.dim, eps=config.norm_eps) if framed else None
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.readouts = nn.ModuleDict({str(depth): Readout(config.dim) for depth in config.depths})

    def forward(self, tokens: Tokens) -> Tensor:
        """Sentence vectors [B, D], not normalised; every sentence has at most `max_length` tokens."""
        return self.vectors_and_states(tokens, [len(self.layers)], tokens.ids.new_empty(0))[0][0]

    def encode_pieces(self, sentences: Sequence[Sequence[int]]) -> Tensor:
        """The vectors [n, D] of sentences given as pieces, a few at a time; each is cut at `max_length` pieces."""
        parts = (sentences[start : start + CHUNK] for start in range(0, max(len(sentences), 1), CHUNK))
        longest, device = self.config.max_length, self.table.weight.device
        return torch.cat([self(to_tokens(part, longest).to(device)) for part in parts])

    def vectors_and_states(self, tokens: Tokens, depths: Sequence[int], places: Tensor) -> tuple[Tensor, Tensor]:
        """Sentence vectors of each depth [L, B, D], and the last states of the tokens at `places` [M, D]."""
        if self.positions is None:
            return torch.stack([self.static(tokens) for _ in depths]), self.table(tokens.ids[places])
        tokens, back, places = by_length(tokens, places)
        framed = self.framed(tokens)
        states = self.states(framed)
        vectors = torch.stack([self.read_out(states[depth], framed, tokens, depth) for depth in depths])
        labelled = states[-1][tokens.inside()[places]] if len(places) else states[-1][:0]
        return vectors if back is None else vectors.index_select(1, back), labelled

    def read_out(self, states: Tensor, framed: Tokens, tokens: Tokens, depth: int) -> Tensor:
        """The vectors [B, D] of states [N, D] after `depth` layers; `tokens` are the sentences without their frame."""
        if not self.readouts:  # layers trained without readouts: depth 0 is the mean of the rows only
            return self.mean(states, framed) if depth else self.static(tokens)
        vectors: Tensor = self.readout(depth)(self.pool(states, framed, depth))
        return vectors

    def pool(self, states: Tensor, framed: Tokens, depth: int) -> Tensor:
        """The mean [B, D] that the readout of a depth maps to a vector."""
        return self.readout(depth).weighted_mean(states, framed) if self.weighs(depth) else self.mean(states, framed)

    def weighs(self, depth: int) -> bool:
        """Whether the readout of a depth takes a weighted mean instead of the plain one."""
        return bool(self.readouts) and self.readout(depth).weighs

    def readout(self, depth: int) -> Readout:
        """The readout of a depth that has one."""
        readout = self.readouts[str(depth)]
        assert isinstance(readout, Readout)
        return readout

    def below(self, layers: int) -> Iterator[nn.Parameter]:
        """The weights that the states after the first `layers` layers depend on, but for the table."""
        yield from [] if self.positions is None else [self.positions]
        for module in (self.table_norm, self.layers[:layers]):
            yield from module.parameters() if module is not None else ()

    def framed(self, tokens: Tokens) -> Tokens:
        """The sentences as the layers read them, each between the first and the last token."""
        return tokens.framed(self.config.first, self.config.last)

    def states(self, framed: Tokens) -> list[Tensor]:
        """The vectors of all tokens, including first and last, after 0, 1, ... layers, (num_layers + 1) x [N, D]."""
        if self.positions is None or self.table_norm is None:
            raise ValueError("an encoder without layers and readouts has no states; use `static` for its vectors")
        layout = packing(framed.lengths)
        ids, place = framed.ids, framed.positions
        if layout.order is not None:
            ids, place = ids[layout.order], place[layout.order]
        x = self.table_norm(self.table(ids) + F.embedding(place, self.positions))  # [N, D]
        x = F.dropout(x, self.config.dropout, self.training)
        states = [x]
        for layer in self.layers:
            states.append(layer(states[-1], layout.groups))
        return states if layout.back is None else [x.index_select(0, layout.back) for x in states]

    @classmethod
    def empty(cls, config: ModelConfig) -> "Encoder":
        """An encoder without numbers, which allocates nothing; give it weights by `load_state_dict(assign=True)`."""
        with torch.device("meta"), _WithoutNumbers():
            return cls(config)

    def first(self, num_layers: int) -> "Encoder":
        """An encoder of the first `num_layers` layers, which shares the weights of this one."""
        if num_layers > self.config.num_layers:
            raise ValueError(f"num_layers = {num_layers} must be at most {self.config.num_layers}")
        if num_layers == self.config.num_layers:
            return self
        if (depths := self.config.depths) and num_layers not in depths:
            raise ValueError(f"num_layers = {num_layers} has no readout; there are {', '.join(map(str, depths))}")
        depths = tuple(depth for depth in depths if depth <= num_layers)
        encoder = Encoder.empty(replace(self.config, num_layers=num_layers, depths=depths))
        state = self.state_dict()
        encoder.load_state_dict({name: state[name] for name in encoder.state_dict()}, assign=True)
        return encoder.train(self.training)

    @staticmethod
    def mean(states: Tensor, tokens: Tokens) -> Tensor:
        """The mean over the tokens of each sentence: [N, D] to [B, D]."""
        total = states.new_zeros(len(tokens.lengths), states.shape[1]).index_add_(0, tokens.sentence, states)
        vectors: Tensor = total / tokens.lengths.clamp(min=1)[:, None]
        return vectors

    def static(self, tokens: Tokens) -> Tensor:
        """The means of the sentences' rows [B, D]."""
        return F.embedding_bag(tokens.ids, self.table.weight, tokens.offsets, mode="mean")


class GenerativeHead(nn.Module):
    """One dense layer between the sentence vector and the tied softmax; training only (mao2021 section 3.2)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.dense = nn.Linear(config.dim, config.dim)
        self.norm = nn.LayerNorm(config.dim)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def forward(self, vectors: Tensor) -> Tensor:
        """Map sentence vectors [B, D] to vectors that are compared with the token table [B, D]."""
        hidden: Tensor = self.norm(F.silu(self.dense(vectors)))
        return hidden
