"""The model of a stage and a batch for it, random, the same in every process."""

import torch

from xsent_train.data.batches import Batch
from xsent_train.data.masking import hide
from xsent_train.model import ModelConfig
from xsent_train.recipe import StageConfig
from xsent_train.stage_model import TrainingModel
from xsent_train.tokens import Tokens

PIECES, PAIRS, DIM = 40, 8, 16
MASKABLE = torch.arange(PIECES) > 3


def model_and_batch(stage: StageConfig, teacher_dim: int = 12) -> tuple[TrainingModel, Batch]:
    """In double precision."""
    torch.manual_seed(3)
    config = ModelConfig(PIECES, dim=DIM, num_layers=stage.num_layers, num_heads=2, ffn_dim=24, max_length=20)
    model = TrainingModel(config, stage, MASKABLE, teacher_dim).double()
    for name, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter.data, std=0.3).add_(1.0 if name.endswith("norm.weight") else 0.0)
    sides = []
    for _ in range(2):
        lengths = torch.randint(1, 9, (PAIRS,))
        sides.append(Tokens(torch.randint(3, PIECES, (int(lengths.sum()),)), lengths))
    hiding = hide((sides[0], sides[1]), stage.objectives, MASKABLE, 20, torch.Generator().manual_seed(2))
    teacher, queue = torch.randn(PAIRS, teacher_dim).double(), torch.randn(9, teacher_dim).double()
    return model, Batch(hiding, torch.arange(PAIRS), teacher, queue)
