"""How parameters are trained: learning rates, the schedule, the optimiser's state on disk."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from xsent.train.config import StageConfig
from xsent.train.stage import TrainingModel


def parameter_groups(model: TrainingModel) -> list[dict[str, Any]]:
    """Parameters by how they are trained, each group with its peak learning rate and weight decay.

    Two rates: the table, and everything else. Only matrices decay.
    """
    stage = model.stage
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for parameter in model.parameters():
        table = parameter is model.encoder.table.weight
        rate = stage.table_learning_rate if table else stage.learning_rate
        decays = parameter.ndim > 1 and not table
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
