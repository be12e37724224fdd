"""One stage of training: the loss of a batch, the optimiser, the schedule."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from xsent.train.config import StageConfig
from xsent.train.data.masking import mask_one_side
from xsent.train.data.vocabulary import MASK
from xsent.train.model import Encoder, GenerativeHead, ModelConfig, Tokens
from xsent.train.objectives.contrastive import align, false_negatives, sim
from xsent.train.objectives.generative import generative_loss, ugt_targets, uniform_targets


class TrainingModel(nn.Module):
    """The encoder, the generative head where the stage needs it, and the objectives.

    Attributes:
        encoder: What is trained and exported.
        head: Between sentence vector and softmax; never exported.
    """

    def __init__(self, config: ModelConfig, stage: StageConfig, maskable: NDArray[np.bool_]) -> None:
        super().__init__()
        self.stage = stage
        self.encoder = Encoder(config)
        self.head = GenerativeHead(config) if stage.ugt else None
        self._maskable = torch.from_numpy(maskable)
        self.encoder.table.weight.requires_grad_(stage.table_learning_rate > 0)

    def forward(self, sides: tuple[Tokens, Tokens], group: Tensor, seed: int) -> dict[str, Tensor]:
        """The objectives of a batch of B pairs, before their weights.

        Args:
            sides: English and translation.
            group: Identity of each English sentence [B].
            seed: Seed of masking.
        """
        device = self.encoder.table.weight.device
        read = sides
        if self.head is not None:
            generator = torch.Generator().manual_seed(seed)
            read, hidden, masked = mask_one_side(sides, self._maskable, MASK, generator)
        u, v = self.encoder(Tokens.join(read).to(device)).float().chunk(2)  # 2 x [B, D]
        losses = {}
        # In full precision: bfloat16 rounds a cosine near 1 by more than hard negatives differ.
        with torch.autocast(device.type, enabled=False):
            if self.stage.align:
                losses["align"] = self._align(u, v, group.to(device))
            if self.stage.sim:
                temperature, literal = self.stage.temperature or 1.0, self.stage.sim_literal
                losses["sim"] = sim(u, v, temperature=temperature, literal=literal)
        if self.head is not None:
            losses["ugt"] = self._generate((u, v), sides, hidden, masked)
        return losses

    def _align(self, u: Tensor, v: Tensor, group: Tensor) -> Tensor:
        stage = self.stage
        prefixes = stage.prefixes or (u.shape[1],)
        small = min(prefixes)  # enough to see what is nearly the same
        ignore = false_negatives(u[:, :small], v[:, :small], group, stage.ignore_above)
        losses = [
            align(u[:, :d], v[:, :d], temperature=stage.temperature or None, margin=stage.margin, ignore=ignore)
            for d in prefixes
        ]
        return torch.stack(losses).mean()

    def _generate(
        self,
        vectors: tuple[Tensor, Tensor],
        sides: tuple[Tokens, Tokens],
        hidden: Tensor,
        masked: tuple[Tensor, Tensor],
    ) -> Tensor:
        assert self.head is not None
        device = vectors[0].device
        total = vectors[0].new_zeros(())
        for i in (0, 1):
            other = sides[1 - i].to(device)  # unmasked: the whole sentence is to be reconstructed
            targets = uniform_targets(other.ids, other.lengths)
            targets = ugt_targets(hidden.to(device), masked[i].to(device), targets)
            table = self.encoder.table.weight
            total = total + generative_loss(self.head(vectors[i]), table, self.head.bias, targets)
        return total


def parameter_groups(model: TrainingModel) -> list[dict[str, Any]]:
    """Parameters by how they are trained, each group with its peak learning rate and weight decay.

    Three rates: the table, the projections that write onto its vectors, everything else. Only matrices decay.
    """
    stage = model.stage
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        if parameter is model.encoder.table.weight:
            rate = stage.table_learning_rate
        elif "_out." in name:
            rate = stage.learning_rate * stage.residual_rate
        else:
            rate = stage.learning_rate
        decays = parameter.ndim > 1 and parameter is not model.encoder.table.weight
        if parameter.requires_grad:
            groups.setdefault((rate, stage.weight_decay if decays else 0.0), []).append(parameter)
    return [{"params": params, "peak": peak, "weight_decay": decay} for (peak, decay), params in groups.items()]


def schedule(step: int, stage: StageConfig) -> float:
    """The share of the peak learning rate at a step: linear warm-up, then a cosine to zero."""
    warmup = min(1.0, (step + 1) / max(stage.warmup, 1))
    return warmup * 0.5 * (1 + math.cos(math.pi * step / stage.steps))


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimiser's tensors by parameter name, ready for safetensors."""
    names: dict[Tensor, str] = {p: name for name, p in model.named_parameters()}
    return {f"{names[p]}|{key}": value for p, state in optimizer.state.items() for key, value in state.items()}


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, saved: Mapping[str, Tensor]) -> None:
    """Put back what `optimizer_state` gave."""
    parameters = dict(model.named_parameters())
    for entry, value in saved.items():
        name, key = entry.rsplit("|", 1)
        parameter = parameters[name]
        optimizer.state[parameter][key] = value.to(parameter.device)  # where fused AdamW wants all of it
