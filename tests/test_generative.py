"""Generative objectives against values worked out by hand."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from xsent.train.objectives.generative import (
    Targets,
    generative_loss,
    smlm_targets,
    token_loss,
    ugt_targets,
    uniform_targets,
)


def test_uniform_targets_count_a_repeated_piece_once() -> None:
    targets = uniform_targets(torch.tensor([5, 3, 5, 4]), torch.tensor([3, 1]))
    assert targets.ids.tolist() == [3, 5, 4]
    assert targets.sentence.tolist() == [0, 0, 1]
    assert targets.weight.tolist() == [0.5, 0.5, 1.0]


def test_an_empty_sentence_has_no_target() -> None:
    targets = uniform_targets(torch.tensor([65_535, 4]), torch.tensor([0, 2, 0]))
    assert targets.ids.tolist() == [4, 65_535]
    assert targets.sentence.tolist() == [1, 1]


def test_smlm_puts_all_mass_on_the_hidden_piece() -> None:
    targets = smlm_targets(torch.tensor([7, 0, 7]), torch.tensor([True, False, True]))
    assert targets.ids.tolist() == [7, 7]
    assert targets.sentence.tolist() == [0, 2]
    assert targets.weight.tolist() == [1.0, 1.0]


def test_ugt_gives_half_to_the_hidden_piece_of_masked_sentences_only() -> None:
    other = uniform_targets(torch.tensor([3, 5, 4]), torch.tensor([2, 1]))
    targets = ugt_targets(torch.tensor([3, 9]), torch.tensor([True, False]), other)
    mass = {}
    for piece, sentence, weight in zip(targets.ids, targets.sentence, targets.weight, strict=True):
        key = int(sentence), int(piece)
        mass[key] = mass.get(key, 0.0) + float(weight)
    # the hidden piece 3 also stands on the other side: 1/2 + 1/4
    assert mass == {(0, 3): 0.75, (0, 5): 0.25, (1, 4): 1.0}


def test_ugt_gives_all_to_the_hidden_piece_where_the_other_side_is_empty() -> None:
    other = uniform_targets(torch.tensor([4]), torch.tensor([1, 0]))
    targets = ugt_targets(torch.tensor([3, 9]), torch.tensor([True, True]), other)
    assert targets.ids.tolist() == [4, 3, 9]
    assert targets.sentence.tolist() == [0, 0, 1]
    assert targets.weight.tolist() == [0.5, 0.5, 1.0]


def test_generative_loss_equals_dense_cross_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(2, 4, generator=generator)
    table, bias = torch.randn(6, 4, generator=generator), torch.randn(6, generator=generator)
    targets = Targets(torch.tensor([1, 2, 5]), torch.tensor([0, 0, 1]), torch.tensor([0.5, 0.5, 1.0]))
    dense = torch.tensor([[0, 0.5, 0.5, 0, 0, 0], [0, 0, 0, 0, 0, 1.0]])
    expected = -(dense * (hidden @ table.T + bias).log_softmax(dim=1)).sum(dim=1).mean()
    assert torch.allclose(generative_loss(hidden, table, bias, targets), expected)


def test_generative_loss_of_an_ignorant_model_is_log_v() -> None:
    targets = Targets(torch.tensor([2]), torch.tensor([0]), torch.tensor([1.0]))
    loss = generative_loss(torch.zeros(1, 4), torch.ones(3, 4), torch.zeros(3), targets)
    assert loss.item() == pytest.approx(math.log(3))


def test_a_sentence_without_target_predicts_nothing() -> None:
    targets = Targets(torch.tensor([2]), torch.tensor([1]), torch.tensor([1.0]))
    hidden = torch.zeros(2, 4, requires_grad=True)
    table = torch.eye(3, 4)
    loss = generative_loss(hidden, table, torch.zeros(3), targets)
    loss.backward()
    assert loss.item() == pytest.approx(math.log(3) / 2)  # the mean is over both sentences
    assert hidden.grad.tolist() == [[0] * 4, pytest.approx([1 / 6, 1 / 6, -1 / 3, 0])]


def test_a_batch_without_any_target_has_a_loss_of_zero_that_can_go_backward() -> None:
    hidden = torch.ones(2, 4, requires_grad=True)
    nothing = smlm_targets(torch.tensor([0, 0]), torch.tensor([False, False]))
    loss = generative_loss(hidden, torch.ones(3, 4), torch.zeros(3), nothing)
    loss.backward()
    assert loss.item() == 0.0 and torch.equal(hidden.grad, torch.zeros(2, 4))


def leaves(sentences: int, dim: int = 2, pieces: int = 37) -> list[Tensor]:
    """Hidden vectors, table and bias in double precision."""
    generator = torch.Generator().manual_seed(1)
    shapes = ((sentences, dim), (pieces, dim), (pieces,))
    return [torch.randn(s, generator=generator, dtype=torch.float64).requires_grad_() for s in shapes]


def some_targets() -> Targets:
    """Of 7 sentences, in no order; the third has no target."""
    other = uniform_targets(torch.tensor([3, 4, 3, 30, 36, 4, 5, 6]), torch.tensor([2, 2, 0, 1, 1, 1, 1]))
    return ugt_targets(torch.arange(7) + 8, torch.tensor([True, False, False, True, True, False, True]), other)


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 100])
def test_chunks_change_neither_loss_nor_gradients(chunk: int) -> None:
    whole, cut = leaves(7), leaves(7)
    expected, loss = generative_loss(*whole, some_targets()), generative_loss(*cut, some_targets(), chunk=chunk)
    expected.backward()
    loss.backward()
    assert torch.allclose(loss, expected, rtol=1e-14)
    for got, want in zip(cut, whole, strict=True):
        assert torch.allclose(got.grad, want.grad, rtol=1e-12, atol=1e-15)


class Logits(TorchDispatchMode):
    """Notes the rows of the largest matrix over the pieces that was made."""

    def __init__(self, pieces: int) -> None:
        super().__init__()
        self.pieces, self.rows = pieces, 0

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        """Run an operation and look at what came out."""
        out = func(*args, **(kwargs or {}))
        if isinstance(out, Tensor) and out.ndim == 2 and out.shape[1] == self.pieces:
            self.rows = max(self.rows, len(out))
        return out


@pytest.mark.parametrize(("chunk", "rows"), [(0, 7), (3, 3)])
def test_logits_are_made_for_a_chunk_at_a_time_and_not_kept(chunk: int, rows: int) -> None:
    kept = []

    def keep(saved: Tensor) -> Tensor:
        kept.append(saved.shape)
        return saved

    with Logits(37) as forward, torch.autograd.graph.saved_tensors_hooks(keep, lambda saved: saved):
        loss = generative_loss(*leaves(7), some_targets(), chunk=chunk)
    with Logits(37) as backward:
        loss.backward()
    assert forward.rows == backward.rows == rows
    assert ((7, 37) in kept, (3, 37) in kept, (1, 37) in kept) == (not chunk, False, False)


@pytest.mark.parametrize("chunk", [0, 2])
def test_token_loss_is_the_mean_cross_entropy_of_the_hidden_tokens(chunk: int) -> None:
    hidden, table, bias = leaves(5)
    ids = torch.tensor([3, 36, 3, 0, 11])
    expected = F.cross_entropy(hidden @ table.T + bias, ids)
    assert torch.allclose(token_loss(hidden, table, bias, ids, chunk=chunk), expected, rtol=1e-14)


@pytest.mark.parametrize("chunk", [0, 2])
def test_token_loss_of_no_tokens_is_zero_and_can_go_backward(chunk: int) -> None:
    hidden, table, bias = leaves(0)
    loss = token_loss(hidden, table, bias, torch.zeros(0, dtype=torch.int64), chunk=chunk)
    loss.backward()
    assert loss.item() == 0.0
    assert torch.equal(table.grad, torch.zeros(37, 2, dtype=torch.float64))


@pytest.mark.parametrize("chunk", [0, 2])
def test_everything_is_made_on_the_device_of_the_vectors(chunk: int) -> None:
    # As on a GPU: what is made without naming the inputs' device lands on another one, and the two do not mix.
    weights, masked, ids = leaves(7), torch.tensor([True, False] * 3 + [True]), torch.arange(7)
    lengths = torch.ones(7, dtype=torch.int64)
    with torch.device("meta"):
        targets = ugt_targets(ids, masked, uniform_targets(ids, lengths))
        losses = [generative_loss(*weights, t, chunk=chunk) for t in (targets, smlm_targets(ids, masked))]
        losses.append(token_loss(*weights, ids, chunk=chunk))
        torch.stack(losses).sum().backward()
    assert all(weight.grad.device.type == "cpu" for weight in weights)
