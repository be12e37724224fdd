"""The encoder: what it starts as, what its vectors do and do not depend on, and what attends side by side."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from conftest import MakeEncoder
from torch import Tensor

from xsent_train import model
from xsent_train.fitting import fit_queries, fit_space, project_languages, ridge
from xsent_train.model import Encoder, ModelConfig, Readout
from xsent_train.tokens import Packing, Tokens, group_of, group_sizes, to_tokens

A, B, EMPTY = [5, 9, 9, 30], [7, 2], []


@torch.no_grad()
def test_without_layers_the_vector_is_the_mean_of_the_rows() -> None:
    encoder = Encoder(ModelConfig(vocab_size=40, dim=8, num_layers=0))
    rows = encoder.table.weight
    expected = torch.stack([(rows[5] + 2 * rows[9] + rows[30]) / 4, (rows[7] + rows[2]) / 2, torch.zeros(8)])
    assert torch.allclose(encoder(to_tokens([A, B, EMPTY])), expected, atol=1e-7)


@torch.no_grad()
def test_a_vector_does_not_depend_on_its_batch(make_encoder: MakeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = make_encoder()
    alone = torch.cat([encoder(to_tokens([sentence])) for sentence in (A, EMPTY, B)])
    assert torch.allclose(encoder(to_tokens([A, EMPTY, B])), alone, atol=1e-6)
    lengths = torch.tensor([40, 1, 7, 0, 64, 8, 7, 33])
    tokens = Tokens(torch.arange(int(lengths.sum())) % 50, lengths)
    grouped = encoder.states(tokens)
    monkeypatch.setattr(model, "packing", lambda lengths: Packing([group_of(lengths)]))
    for a, b in zip(grouped, encoder.states(tokens), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_vectors_and_states_keep_the_order_of_the_batch(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder(depths=(0, 1, 2)).double()
    lengths = [40, 1, 7, 0, 64, 8, 7, 33]
    generator = torch.Generator().manual_seed(2)
    sentences = [torch.randint(5, 50, (length,), generator=generator).tolist() for length in lengths]
    places = torch.tensor([0, 3, 40, 47, 100])  # the first and the fourth token, a sentence's only one, two of others
    none = torch.empty(0, dtype=torch.long)
    vectors, states = encoder.vectors_and_states(to_tokens(sentences), [0, 1, 2], places)
    for number, sentence in enumerate(sentences):
        alone, _ = encoder.vectors_and_states(to_tokens([sentence]), [0, 1, 2], none)
        torch.testing.assert_close(vectors[:, number], alone[:, 0], rtol=0, atol=1e-12)
    framed = encoder.framed(to_tokens(sentences))
    last = encoder.states(framed)[-1][to_tokens(sentences).inside()]
    torch.testing.assert_close(states, last[places], rtol=0, atol=1e-12)
    assert encoder.vectors_and_states(to_tokens(sentences), [2], none)[1].shape == (0, encoder.config.dim)


@torch.no_grad()
def test_attention_without_padding_is_the_same(make_encoder: MakeEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_sentence(q: Tensor, k: Tensor, v: Tensor, starts: Tensor, *_: object) -> Tensor:  # as the kernel does
        parts = (torch.tensor_split(x.transpose(0, 1), starts[1:-1].tolist(), dim=1) for x in (q, k, v))
        mixed = [F.scaled_dot_product_attention(*part) for part in zip(*parts, strict=True)]
        return torch.cat(mixed, dim=1).transpose(0, 1)

    encoder, tokens = make_encoder(), to_tokens([A, EMPTY, B])
    padded = encoder(tokens)
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", by_sentence)
    monkeypatch.setattr(model.Layer, "_attend_padded", model.Layer._attend_packed)
    torch.testing.assert_close(encoder(tokens), padded, rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_a_query_weighs_the_tokens_of_a_sentence() -> None:
    readout = Readout(2)
    states = torch.tensor([[1.0, 0.0], [0.0, 2.0], [300.0, -1.0]])
    tokens = Tokens(torch.tensor([5, 6, 7]), torch.tensor([2, 1]))
    assert torch.equal(readout.weighted_mean(states, tokens), Encoder.mean(states, tokens))  # at first
    readout.query.copy_(torch.tensor([math.log(3), 0.0]))
    assert torch.allclose(readout.weighted_mean(states, tokens), torch.tensor([[0.75, 0.5], [300.0, -1.0]]))  # 3 to 1
    readout.query.copy_(torch.tensor([100.0, 0.0]))  # the other sentence's score of 30,000 takes nothing off it
    assert torch.allclose(readout.weighted_mean(states, tokens), torch.tensor([[1.0, 0.0], [300.0, -1.0]]))
    assert "query" not in dict(readout.named_parameters())  # it is fitted, not trained

    many = Tokens(torch.zeros(600, dtype=torch.long), torch.tensor([600]))  # more than bfloat16 counts to
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.allclose(readout.weighted_mean(torch.ones(600, 2, dtype=torch.bfloat16), many), torch.ones(1, 2))


@torch.no_grad()
def test_queries_make_common_pieces_count_less(make_encoder: MakeEncoder) -> None:
    encoder = make_encoder(vocab_size=20, num_layers=1, depths=(0, 1))
    assert encoder.positions is not None
    encoder.positions.zero_()  # a state is then its piece's, and the regression exact
    kept = encoder.readout(1).query.clone()
    pieces = [[5] * 6 + [6] * 3 + [7], [5, 5, 8, 8, 9], [10, 11, 12, 5]]
    sides = [to_tokens(pieces[:2]), to_tokens(pieces[2:])]
    for first, counted in ((None, 0.2 / (0.2 + 3 / 25)), (4.0, 4.0)):
        fit_queries(encoder, {0: (0.2, first)}, sides)
        framed = encoder.framed(to_tokens([[5, 6, 7]]))
        weights = (encoder.states(framed)[0] @ encoder.readout(0).query).exp()
        # Of 25 tokens with their frame.
        expected = torch.tensor([counted, *(0.2 / (0.2 + n / 25) for n in (9, 3, 1, 3))])
        assert torch.allclose(weights / weights[-1], expected / expected[-1], rtol=0.1)
    assert torch.equal(encoder.readout(1).query, kept)


@torch.no_grad()
@pytest.mark.parametrize("directions", [1, 2, 8])
def test_the_direction_of_language_is_projected_out(make_encoder: MakeEncoder, directions: int) -> None:
    encoder = make_encoder(vocab_size=60, num_layers=1, depths=(0, 1))
    generator = torch.Generator().manual_seed(3)
    language = torch.tensor([4, 7]).repeat(20)
    english = torch.randint(5, 30, (40, 6), generator=generator)
    sides = [to_tokens(english.tolist()), to_tokens((english + 2 * language[:, None]).tolist())]

    def vectors(depth: int) -> torch.Tensor:
        """Of both sides [80, D]."""
        none = torch.empty(0, dtype=torch.long)
        return torch.cat([encoder.vectors_and_states(side, [depth], none)[0][0] for side in sides])

    before = [vectors(depth) for depth in (0, 1)]
    project_languages(encoder, directions, sides, language)
    for was, now in zip(before, map(vectors, (0, 1)), strict=True):
        assert torch.allclose(was.mean(dim=0), now.mean(dim=0), atol=1e-5)
        assert torch.linalg.matrix_rank(was - now, atol=1e-4) == min(directions, 2)
        shift = F.normalize(was[40:], dim=1) - F.normalize(was[:40], dim=1)
        means = torch.stack([shift[language == number].mean(dim=0) for number in (4, 7)])
        left = (now - now.mean(dim=0)) @ means.T
        assert (left.abs().max() < 1e-4) == (directions > 1)
        assert left.square().sum() < 0.5 * ((was - was.mean(dim=0)) @ means.T).square().sum()


@torch.no_grad()
def test_the_encoder_inside_has_the_states_of_the_whole(make_encoder: MakeEncoder) -> None:
    encoder, sentences = make_encoder(), to_tokens([A, B])
    framed = encoder.framed(sentences)
    for layers in (1, 2):
        inside = encoder.first(layers)
        assert inside.config.num_layers == layers and not inside.training
        assert torch.allclose(inside(sentences), encoder.mean(encoder.states(framed)[layers], framed), atol=1e-6)
    table = encoder.first(0)
    assert torch.equal(table(sentences), encoder.static(sentences))
    assert table.table.weight.data_ptr() == encoder.table.weight.data_ptr()  # shared, not copied
    with pytest.raises(ValueError, match="num_layers = 3 must be at most 2"):
        encoder.first(3)


def test_an_encoder_is_loaded_without_torch_s_compiler(deep_checkpoint: Path) -> None:
    """It would take two seconds of every command that opens a checkpoint."""
    code = "import sys; from pathlib import Path; from xsent_train.checkpoint import load_checkpoint"
    code += "; load_checkpoint(Path(sys.argv[1])); assert 'torch._dynamo' not in sys.modules"
    subprocess.run([sys.executable, "-c", code, deep_checkpoint], check=True)


def test_a_matrix_into_another_space_is_made_for_search(
    make_encoder: MakeEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = torch.Generator().manual_seed(3)
    pieces = torch.randint(5, 50, (400, 6), generator=generator)
    english = pieces.tolist()
    other = torch.cat([pieces[:, 1:], torch.randint(5, 50, (400, 1), generator=generator)], dim=1).tolist()
    with torch.no_grad():
        theirs = F.normalize(make_encoder(num_layers=1)(to_tokens(english)), dim=1)
        ours = [F.normalize(make_encoder()(to_tokens(side)), dim=1) for side in (english, other)]

    def found(matrix: torch.Tensor) -> list[int]:
        ranked = [(F.normalize(vectors @ matrix, dim=1) @ theirs.T).argmax(dim=1) for vectors in ours]
        return [int((best == torch.arange(400)).sum()) for best in ranked]

    def fit() -> torch.Tensor:
        return fit_space(ours, theirs)

    assert torch.equal(fit(), fit())
    monkeypatch.setattr("xsent_train.fitting.SPACE_STEPS", 200)
    matrix = fit()
    before, after = found(ridge(ours[0], theirs)), found(matrix)
    assert after[0] > 350
    assert after[1] > 1.3 * before[1] > 100


def test_a_group_is_of_nearly_one_length() -> None:
    # 4 takes up to 1.2 x 4 + 4 = 8.8, 9 up to 14.8, 20 up to 28, 29 up to 38.8
    assert group_sizes([4, 5, 8, 9, 14, 20, 28, 29]) == [3, 2, 2, 1]
    assert group_sizes([0, 0, 3, 4]) == [4]
    assert group_sizes([]) == []
