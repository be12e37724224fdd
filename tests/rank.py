"""One of two processes that train together, and the losses and gradients of its half of a batch."""

import os
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from xsent_train import main
from xsent_train.data.batches import Batch
from xsent_train.data.masking import MaskedPairs, hide
from xsent_train.devices import average, gather, launch
from xsent_train.losses import Whitening
from xsent_train.model import ModelConfig
from xsent_train.recipe import Objectives, StageConfig
from xsent_train.stage_model import TrainingModel
from xsent_train.tokens import Tokens

PIECES, PAIRS, DIM = 50, 8, 16
MASKABLE = torch.arange(PIECES) > 2
PLAIN = dict.fromkeys(("smlm", "ugt", "xtr", "sim", "sentence_ctl", "distil", "similarity_distil"), 1)
SET = {"mlm": {"share": 0.4}, "tlm": {"share": 0.4}, "align": {"margin": 0.1}, "contrastive_distil": {"queue": 4}}
COMMON = {"steps": 1, "table_learning_rate": 0.1, "ignore_above": 0.9}
SHAPE = {"num_layers": 2, "prefixes": (8, 16), "layer_prefixes": (0, 1, 2), "batch_size": PAIRS}
BOTH = StageConfig(name="both", **SHAPE, **COMMON, objectives=Objectives(**PLAIN, **SET))
ROWS = StageConfig(name="rows", num_layers=0, **COMMON, objectives=Objectives(embedding_match=1))
STAGES = (BOTH, ROWS)


def joined_batch(rank: int = 0, ranks: int = 1) -> Batch:
    """A rank's part of one batch."""
    generator = torch.Generator().manual_seed(5)
    sides = []
    for _ in range(2):
        lengths = torch.randint(1, 7, (PAIRS,), generator=generator)
        sides.append(Tokens(torch.randint(3, PIECES, (int(lengths.sum()),), generator=generator), lengths))
    teacher, queue = (torch.randn(n, DIM, generator=generator) for n in (PAIRS, 4))
    each = PAIRS // ranks
    start, stop = rank * each, (rank + 1) * each
    hiding = hide((sides[0], sides[1]), BOTH.objectives, MASKABLE, 20, generator)
    group = torch.tensor([0, 1, 2, 3, 0, 5, 6, 7])
    return Batch(part(hiding, start, stop), group, teacher[start:stop], queue)


def part(hiding: MaskedPairs, start: int, stop: int) -> MaskedPairs:
    """What is hidden of some pairs of a batch."""
    assert hiding.piece is not None and hiding.masked is not None and hiding.joined is not None
    return MaskedPairs(
        (hiding.sides[0].part(start, stop), hiding.sides[1].part(start, stop)),
        (hiding.read[0].part(start, stop), hiding.read[1].part(start, stop)),
        hiding.piece[start:stop],
        (hiding.masked[0][start:stop], hiding.masked[1][start:stop]),
        hiding.joined.part(start, stop),
    )


def training_model(stage: StageConfig) -> TrainingModel:
    """The same model in every process."""
    torch.manual_seed(1)
    config = ModelConfig(PIECES, dim=DIM, num_layers=stage.num_layers, num_heads=2, ffn_dim=24, max_length=20)
    model = TrainingModel(config, stage, MASKABLE, DIM)
    model.whitening = Whitening.fit(torch.randn(50, DIM))
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter.data, std=0.3).add_(1.0 if name.endswith("norm.weight") else 0.0)
    return model


def found(stage: StageConfig, losses: Mapping[str, Tensor], model: TrainingModel) -> dict[str, Tensor]:
    """Losses and gradients of a stage by name."""
    gradients = {f"{stage.name}.{name}": p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {**{f"{stage.name}.loss.{name}": loss for name, loss in losses.items()}, **gradients}


def be_one_of_two(rank: int, port: int, said: Path, action: Callable[[], object]) -> None:
    """Do what a rank does, without torchrun, which would end the other one; what it says goes into a file."""
    os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 2)
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test", "GROUP_RANK": "0"}
    shared |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "1", "CUDA_VISIBLE_DEVICES": ""}
    os.environ.update({**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)})
    torch.set_num_threads(1)
    action()


def run_command(arguments: list[str]) -> None:
    """Run `xsent-train`."""
    sys.argv = arguments
    main()


def write_gradients(out: Path) -> None:
    """Take one step of each stage of half of `joined_batch`; write the losses and gradients that all ranks agree on."""
    fabric = launch(1)
    everything: dict[str, Tensor] = {}
    for stage in STAGES:
        model = training_model(stage)
        model.gather, model.average = partial(gather, fabric), partial(average, fabric)
        wrapped, _ = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
        losses = wrapped(joined_batch(fabric.global_rank, fabric.world_size))
        fabric.backward(torch.stack(list(losses.values())).sum())
        mean = {name: fabric.all_reduce(loss.detach(), reduce_op="mean") for name, loss in losses.items()}
        everything |= found(stage, mean, model)
    if fabric.is_global_zero:
        save_file(everything, out)
