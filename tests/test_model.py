"""The encoder: what it starts as, and what its vectors do and do not depend on."""

import pytest
import torch
from conftest import MakeEncoder

from xsent.train.model import Encoder, ModelConfig, Tokens

A, B, EMPTY = [5, 9, 9, 30], [7, 2], []


def batch(*sentences: list[int]) -> Tokens:
    ids = torch.tensor([i for sentence in sentences for i in sentence], dtype=torch.long)
    return Tokens(ids, torch.tensor([len(sentence) for sentence in sentences]))


@torch.no_grad()
def test_without_layers_the_vector_is_the_mean_of_the_rows() -> None:
    encoder = Encoder(ModelConfig(vocab_size=40, dim=8, num_layers=0))
    rows = encoder.table.weight
    expected = torch.stack([(rows[5] + 2 * rows[9] + rows[30]) / 4, (rows[7] + rows[2]) / 2, torch.zeros(8)])
    assert torch.allclose(encoder(batch(A, B, EMPTY)), expected, atol=1e-7)


@torch.no_grad()
def test_new_layers_start_as_exactly_the_table() -> None:
    encoder = Encoder(ModelConfig(vocab_size=40, dim=8, num_layers=3, num_heads=2, ffn_dim=16))
    assert torch.allclose(encoder(batch(A, B)), encoder.static(batch(A, B)), atol=1e-7)


@torch.no_grad()
def test_a_vector_does_not_depend_on_its_batch(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    together = encoder(batch(A, EMPTY, B))
    assert torch.allclose(together[[0]], encoder(batch(A)), atol=1e-6)
    assert torch.allclose(together[[2]], encoder(batch(B)), atol=1e-6)
    assert not together[1].any()


@torch.no_grad()
def test_layers_see_the_order_of_words_and_the_table_does_not(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    one, other = batch([5, 9, 30]), batch([30, 9, 5])
    assert torch.allclose(encoder.static(one), encoder.static(other), atol=1e-6)
    assert not torch.allclose(encoder(one), encoder(other), atol=1e-3)


@torch.no_grad()
def test_scaled_layers_lie_between_the_table_and_the_encoder(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    whole = encoder(batch(A, B))
    encoder.scale_layers(0.5)
    assert not torch.allclose(encoder(batch(A, B)), whole, atol=1e-3)
    encoder.scale_layers(0.0)
    assert torch.allclose(encoder(batch(A, B)), encoder.static(batch(A, B)), atol=1e-6)


def test_a_frozen_table_gets_no_gradient(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder()
    encoder.table.weight.requires_grad_(False)
    encoder(batch(A, B, EMPTY)).sum().backward()
    assert encoder.table.weight.grad is None
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.layers.parameters())


@torch.no_grad()
def test_the_encoder_inside_has_the_states_of_the_whole(make_encoder: MakeEncoder) -> None:
    for norm in ("pre", "post"):
        encoder = make_encoder(norm=norm)
        for layers in (0, 1, 2):
            inside = encoder.first(layers)
            assert inside.config.num_layers == layers and not inside.training
            expected = encoder.mean(encoder.states(batch(A, B))[layers], batch(A, B))
            assert torch.allclose(inside(batch(A, B)), expected, atol=1e-6)
        assert inside.table.weight.data_ptr() == encoder.table.weight.data_ptr()  # shared, not copied
        with pytest.raises(ValueError, match="num_layers = 3 must be at most 2"):
            encoder.first(3)
