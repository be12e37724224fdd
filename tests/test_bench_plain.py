"""The plain baseline says the same as our objectives: it is slower, not another system."""

import pytest
import torch

from xsent.bench.training.plain import PlainSystem, adam, dense_loss, dense_targets, inner_align, literal_sim, padded
from xsent.train.data.hiding import hide
from xsent.train.model import ModelConfig
from xsent.train.objectives.contrastive import align, sim
from xsent.train.objectives.generative import generative_loss, ugt_targets, uniform_targets
from xsent.train.objectives.settings import Align, Generative, Objectives, Sim
from xsent.train.tokens import Tokens

ENGLISH = Tokens(torch.tensor([3, 4, 4, 5, 6, 7, 8]), torch.tensor([4, 1, 2]))
OTHER = Tokens(torch.tensor([9, 3, 10, 11, 12]), torch.tensor([2, 2, 1]))


@pytest.mark.parametrize("masked", [[True, False, True], [False, False, False]])
def test_ugt_is_ours(masked: list[bool]) -> None:
    generator = torch.Generator().manual_seed(1)
    hidden, table = torch.randn(3, 8, generator=generator), torch.randn(20, 8, generator=generator)
    bias, piece, where = torch.randn(20, generator=generator), torch.tensor([3, 6, 8]), torch.tensor(masked)
    plain = dense_loss(hidden @ table.T + bias, dense_targets(OTHER, piece, where, 20))
    ours = ugt_targets(piece, where, uniform_targets(OTHER.ids, OTHER.lengths))
    torch.testing.assert_close(plain, generative_loss(hidden, table, bias, ours))


def test_targets_by_hand() -> None:
    targets = dense_targets(OTHER, torch.tensor([3, 6, 8]), torch.tensor([True, False, True]), 13)
    expected = torch.zeros(3, 13)
    expected[0, 3], expected[0, 9] = 0.75, 0.25  # the hidden piece stands on the other side too
    expected[1, 10], expected[1, 11] = 0.5, 0.5
    expected[2, 8], expected[2, 12] = 0.5, 0.5
    torch.testing.assert_close(targets, expected)


def test_contrastive_losses_are_ours() -> None:
    u, v = torch.randn(2, 6, 5, generator=torch.Generator().manual_seed(2)).unbind()
    torch.testing.assert_close(inner_align(u, v), align(u, v))
    torch.testing.assert_close(literal_sim(u, v), sim(u, v, literal=True))


def test_padding_does_not_move_a_vector() -> None:
    assert padded(ENGLISH).tolist() == [[3, 4, 4, 5], [6, 0, 0, 0], [7, 8, 0, 0]]
    system = PlainSystem(ModelConfig(vocab_size=20, dim=16, num_layers=2, num_heads=2, ffn_dim=32)).eval()
    alone = system.encode(Tokens(torch.tensor([7, 8]), torch.tensor([2])))
    torch.testing.assert_close(system.encode(ENGLISH)[2:], alone)


def test_it_learns() -> None:
    torch.manual_seed(3)
    system = PlainSystem(ModelConfig(vocab_size=20, dim=16, num_layers=1, num_heads=2, ffn_dim=32))
    objectives = Objectives(ugt=Generative(), align=Align(), sim=Sim())
    hiding = hide((ENGLISH, OTHER), objectives, torch.ones(20, dtype=torch.bool), 10, torch.Generator().manual_seed(4))
    optimizer, losses = adam(system), []
    for _ in range(20):
        optimizer.zero_grad()
        loss = system(hiding)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
