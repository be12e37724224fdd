"""One stage of training: the losses of a batch."""

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor, nn

from xsent_train.data.batches import Batch
from xsent_train.data.masking import NOT_HIDDEN, Labelled, MaskedPairs, join_pairs
from xsent_train.data.passages import Asked
from xsent_train.data.scored import ScoredBatch
from xsent_train.losses import (
    Targets,
    Whitening,
    align,
    contrastive_distil,
    distil,
    embedding_match,
    false_negatives,
    generative_loss,
    sentence_ctl,
    sim,
    similarity,
    similarity_distil,
    smlm_targets,
    token_loss,
    ugt_targets,
    uniform_targets,
    word_ctl,
)
from xsent_train.model import Encoder, GenerativeHead, ModelConfig
from xsent_train.recipe import StageConfig
from xsent_train.tokens import Tokens

Losses = dict[str, Tensor]
Read = tuple[Tensor, Tensor, Tensor]  # vectors of sentences [L, b, D], states of labelled tokens [M, D], labels [M]


class TrainingModel(nn.Module):
    """The encoder, the heads that only training needs, and the objectives of a stage."""

    def __init__(
        self, config: ModelConfig, stage: StageConfig, maskable: Tensor, teacher_dim: int | None = None
    ) -> None:
        """Set up a stage for a teacher of `teacher_dim` dimensions. Only `maskable` pieces [V] are ever hidden."""
        super().__init__()
        self.stage = stage
        self.objectives = stage.objectives
        self.encoder = Encoder(config)  # the only part that is exported
        self.depths = sorted(stage.layer_prefixes) or [config.num_layers]  # the last one is all layers
        self.head = GenerativeHead(config) if stage.objectives.predicts else None
        # Only if it takes part in the loss, because processes wait for each other's gradient of every parameter.
        other_dim = self.objectives.copies and teacher_dim not in (None, config.dim)
        self.projection = nn.Linear(config.dim, teacher_dim or 0, bias=False) if other_dim else None
        # From this rank's vectors [L, b, D] to those of all ranks [L, B, D], with gradients; from a number to its mean.
        self.gather: Callable[[Tensor], Tensor] = lambda vectors: vectors
        self.average: Callable[[Tensor], Tensor] = lambda number: number
        self.whitening: Whitening | None = None  # of the teacher's input vectors, for `embedding_match`
        self.mixed = False  # whether matrices are multiplied in bfloat16
        self.register_buffer("_maskable", maskable, persistent=False)
        for parameter in self.encoder.parameters():
            parameter.requires_grad_(stage.learning_rate > 0)
        for parameter in self.encoder.below(stage.frozen_layers) if stage.frozen_layers else ():
            parameter.requires_grad_(False)
        self.encoder.table.weight.requires_grad_(stage.table_learning_rate > 0)

    def forward(self, batch: Batch) -> Losses:
        """The objectives of a batch of B pairs, before their weights."""
        device, full = self.encoder.table.weight.device, self.encoder.table.weight.dtype
        # Not through Fabric, which would also round the teacher's vectors.
        with torch.autocast(device.type, torch.bfloat16, enabled=self.mixed):
            return {name: loss.to(full) for name, loss in self._losses(batch.to(device)).items()}

    def _losses(self, batch: Batch) -> Losses:
        device, full = self.encoder.table.weight.device, self.encoder.table.weight.dtype
        if not self.objectives.of_pairs:
            return self._other_text(batch)[0]
        u, v, read = self._encode(batch.hiding)
        # In full precision, because hard negatives differ by less than bfloat16 rounds a cosine near 1.
        u, v = u.to(full), v.to(full)
        others, taught = self._other_text(batch)
        with torch.autocast(device.type, enabled=False):
            losses = self._contrast(u, v, batch) | self._distil(u, v, batch, taught) | others
            if wanted := self.objectives.word_ctl:
                joined = join_pairs(batch.hiding.sides, 2 * self.stage.max_tokens)
                bag, allowed = uniform_targets(joined.ids, joined.lengths), self.get_buffer("_maskable")
                query, table = (u[-1] + v[-1]) / 2, self.encoder.table.weight
                losses["word_ctl"] = word_ctl(query, table, bag, allowed, **wanted.arguments)
        losses |= self._generate((u[-1], v[-1]), batch.hiding)
        if self.objectives.mlm:
            losses["mlm"] = self._tokens(read)
        if self.objectives.tlm:
            assert batch.hiding.joined is not None
            losses["tlm"] = self._tokens(self._read([batch.hiding.joined]))
        return losses

    def _encode(self, hiding: MaskedPairs) -> tuple[Tensor, Tensor, Read]:
        """Both sides' vectors at each depth, 2 x [L, b, D], and the results of `_read`.

        If no objective reads the English side, it is not encoded, and the translation's vectors take its place.
        """
        sides = hiding.read if self.objectives.reads_english else hiding.read[1:]
        read = self._read(sides)
        parts = [side.contiguous() for side in read[0].chunk(len(sides), dim=1)]
        u, v = parts[0], parts[-1]
        # A sentence without translation or copy replaces it, so that it still learns its teacher's vector.
        return u, torch.where((hiding.read[1].tokens.lengths == 0)[:, None], u, v), read

    def _read(self, sides: Sequence[Labelled]) -> Read:
        """Encode the sides of some pairs together."""
        tokens = Tokens(*map(torch.cat, zip(*(side.tokens for side in sides), strict=True)))
        labels = torch.cat([side.labels for side in sides])
        predicted = self.objectives.mlm or self.objectives.tlm
        labelled = (labels != NOT_HIDDEN).nonzero()[:, 0] if predicted else labels[:0]
        return *self.encoder.vectors_and_states(tokens, self.depths, labelled), labels[labelled]

    def _other_text(self, batch: Batch) -> tuple[Losses, list[tuple[Tensor, Tensor]]]:
        """The losses on text other than pairs, and its vectors [L, b, D] with the teacher's [b, Dt], if there are any.

        For scored pairs, the teacher's vectors are those of their English forms.
        """
        losses: Losses = {}
        taught = []
        device, wanted = self.encoder.table.weight.device, self.objectives
        if (scored := batch.scored) is not None and wanted.similarity is not None:
            a, b = self._vectors(scored.sides)
            with torch.autocast(device.type, enabled=False):
                losses["similarity"] = self._similarity(a, b, scored)
            if scored.teacher is not None:
                taught.append((torch.cat([a, b], dim=1), scored.teacher))
        if (asked := batch.asked) is not None and wanted.retrieve is not None:
            queries, passages = self._vectors(asked.sides)
            with torch.autocast(device.type, enabled=False):
                losses["retrieve"] = self._retrieve(queries, passages, asked, wanted.retrieve.temperature)
            if asked.teacher is not None:
                taught.append((queries, asked.teacher))
        return losses, taught

    def _vectors(self, sides: Sequence[Tokens]) -> tuple[Tensor, Tensor]:
        """The vectors of two sides at each depth, 2 x [L, b, D], in full precision."""
        vectors, _, _ = self._read([Labelled(side, torch.full_like(side.ids, NOT_HIDDEN)) for side in sides])
        first, second = vectors.to(self.encoder.table.weight.dtype).chunk(2, dim=1)
        return first.contiguous(), second.contiguous()

    def _similarity(self, a: Tensor, b: Tensor, scored: ScoredBatch) -> Tensor:
        a, b, score = self.gather(a), self.gather(b), self.gather(scored.score[None, :, None])[0, :, 0]
        prefixes = self.stage.prefixes or (a.shape[2],)
        return self._over_depths(similarity(a[..., :d], b[..., :d], score) for d in prefixes)

    def _retrieve(self, queries: Tensor, passages: Tensor, asked: Asked, temperature: float) -> Tensor:
        """The contrast of each query within its block, except with equal or nearly equal ones."""
        q, p = self.gather(queries), self.gather(passages)
        prefixes, above = self.stage.prefixes or (q.shape[2],), self.stage.ignore_above
        small = min(prefixes)
        ignore = false_negatives(q[-1, :, :small], p[-1, :, :small], asked.passage, above)
        ignore = ignore | (asked.query[:, None] == asked.query) | (asked.block[:, None] != asked.block)
        ignore = ignore.fill_diagonal_(False)
        views = ((q[..., :d], p[..., :d]) for d in prefixes)
        return self._over_depths(align(a, b, temperature=temperature, ignore=ignore) for a, b in views)

    def _contrast(self, u: Tensor, v: Tensor, batch: Batch) -> Losses:
        wanted = self.objectives
        if not (wanted.contrasts or wanted.similarity_distil or wanted.embedding_match):
            return {}
        u, v = self.gather(u), self.gather(v)
        prefixes = self.stage.prefixes or (u.shape[2],)
        views = [(u[..., :d], v[..., :d]) for d in prefixes]
        small = min(prefixes)  # enough to find nearly equal pairs
        ignore = false_negatives(u[-1, :, :small], v[-1, :, :small], batch.group, self.stage.ignore_above)
        if batch.copied is not None:  # the difference between these two is to be learnt, however near they are
            copies = torch.arange(len(ignore) - len(batch.copied), len(ignore), device=ignore.device)
            ignore[copies, batch.copied] = ignore[batch.copied, copies] = False
        losses: Losses = {}
        for name, loss in (("align", align), ("sim", sim), ("sentence_ctl", sentence_ctl)):
            if contrast := getattr(wanted, name):
                given = contrast.arguments | ({} if name == "sim" else {"ignore": ignore})
                losses[name] = self._over_depths(loss(a, b, **given) for a, b in views)
        if batch.teacher is None:
            return losses
        teacher = self.gather(batch.teacher[None])[0]
        views = [(a[:, : len(teacher)], b[:, : len(teacher)]) for a, b in views]  # copies have no targets
        if wanted.similarity_distil:
            both = (similarity_distil(torch.stack([a, b]), a, teacher) for a, b in views)  # each [2, L]
            losses["similarity_distil"] = self._over_depths(loss.mean(dim=0) for loss in both)
        if wanted.embedding_match:
            assert self.whitening is not None
            given = wanted.embedding_match.arguments | {"ignore": ignore}
            losses["embedding_match"] = torch.stack(
                [embedding_match(side[-1], teacher, self.whitening, **given) for side in (u, v)]
            ).mean()
        return losses

    def _distil(self, u: Tensor, v: Tensor, batch: Batch, taught: Sequence[tuple[Tensor, Tensor]]) -> Losses:
        """The distillation losses of a batch; `distil` also covers the other text in `taught`, per sentence alike."""
        losses: Losses = {}
        if batch.teacher is None:
            return losses
        u, v = u[:, : len(batch.teacher)], v[:, : len(batch.teacher)]  # without copies
        if (wanted := self.objectives.distil) is not None:
            sides = [(side, batch.teacher) for side in ((u, v) if wanted.english else (v,))]
            student, teacher = (torch.cat(part, dim=-2) for part in zip(*sides, *taught, strict=True))
            views = self._students((student,), teacher)
            losses["distil"] = self._over_depths(distil(view, teacher[:, :d]) for view, d in views)
        if (contrast := self.objectives.contrastive_distil) is not None and batch.queue is not None:
            views = self._students((u, v) if contrast.english else (v,), batch.teacher)
            given = contrast.model_dump(include={"temperature", "ignore_above"})
            keys = self.gather(batch.teacher[None])[0] if contrast.batch else batch.teacher[:0]
            losses["contrastive_distil"] = self._over_depths(
                contrastive_distil(x, batch.teacher[:, :d], batch.queue[:, :d], batch=keys[:, :d], **given)
                for x, d in views
            )
        return losses

    def _students(self, sides: tuple[Tensor, ...], teacher: Tensor) -> list[tuple[Tensor, int]]:
        """The vectors [L, b, D] to compare with the teacher, each with the number of its dimensions to use."""
        if self.projection is not None:
            return [(self.projection(side), teacher.shape[1]) for side in sides]
        prefixes = self.stage.prefixes or (teacher.shape[1],)
        return [(side[..., :d], d) for side in sides for d in prefixes]

    def _generate(self, vectors: tuple[Tensor, Tensor], hiding: MaskedPairs) -> Losses:
        """SMLM, XTR and UGT, each summed over the sides. The other side is whole, as it is what they reconstruct."""
        losses: Losses = {}
        if not self.objectives.generative:
            return losses
        assert self.head is not None
        weights = self.encoder.table.weight, self.head.bias
        hidden = self.head(torch.cat(vectors))
        for name in self.objectives.generative:
            # Both sides at once, so that the gradient of the whole table is computed once. Times 2: a sum of two means.
            targets = Targets.join([targets_of(hiding, name, side) for side in (0, 1)], len(vectors[0]))
            losses[name] = 2 * generative_loss(hidden, *weights, targets)
        return losses

    def _tokens(self, read: Read) -> Tensor:
        _, states, ids = read
        assert self.head is not None
        weights = self.encoder.table.weight, self.head.bias
        loss = token_loss(self.head(states), *weights, ids)
        # Ranks are averaged but hide different numbers of tokens; this weights all tokens equally.
        count = ids.new_tensor(len(ids), dtype=loss.dtype)
        return loss * (count / self.average(count).clamp_min(1.0 / self.stage.batch_size))

    def _over_depths(self, losses: Iterable[Tensor]) -> Tensor:
        """The mean of some losses, each [L], and then the weighted mean over the depths."""
        means = torch.stack(list(losses)).mean(dim=0)
        weights = means.new_tensor([self.stage.exit_weight] * (len(means) - 1) + [1.0])
        return (means * weights).sum() / weights.sum()


def targets_of(pairs: MaskedPairs, objective: str, side: int) -> Targets:
    """The pieces that the vectors of one side (0 English, 1 translation) predict in SMLM, XTR or UGT."""
    assert pairs.piece is not None and pairs.masked is not None
    if objective == "smlm":
        return smlm_targets(pairs.piece, pairs.masked[0] | pairs.masked[1])
    other = pairs.sides[1 - side]
    uniform = uniform_targets(other.ids, other.lengths)
    return uniform if objective == "xtr" else ugt_targets(pairs.piece, pairs.masked[side], uniform)
