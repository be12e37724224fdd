"""A table made of an encoder with layers: NumPy beside it, and what it is worth."""

from pathlib import Path

import numpy as np
import pytest
import torch
from trainings import export_command

from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent_export import to_static as static
from xsent_export.to_static import PRIOR, without_layers
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint

TEXTS = ["Anna, Boris, Clara and David.", "Greta", "", "David und Greta"]


@pytest.fixture
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(mini_checkpoint)


@torch.no_grad()
def test_the_table_is_a_ridge_regression_towards_pieces_alone(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "CHUNK", 3)
    table = without_layers(checkpoint, TEXTS)
    encoder, processor = checkpoint.load_encoder(), checkpoint.load_tokenizer()

    def states(pieces: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """What enters the layers of a sentence, and what leaves them, with its first and last token."""
        tokens = static.Tokens(torch.tensor(pieces), torch.tensor([len(pieces)]))
        read = encoder.states(encoder.framed(tokens))
        return read[0].double().numpy(), read[-1].double().numpy()

    alone = [states([piece]) for piece in range(checkpoint.config.vocab_size)]
    pieces = np.array([np.concatenate([out.mean(axis=0), into[1]]) for into, out in alone])
    sentences = [ids for ids in map(processor.encode, TEXTS) if ids]
    assert len(sentences) == 3
    x = np.array([pieces[ids].mean(axis=0) for ids in sentences])
    y = np.array([states(ids)[1].mean(axis=0) for ids in sentences]) - x[:, :32]
    penalty = PRIOR * (x**2).mean()
    centred = x - x.mean(axis=0)
    weight = np.linalg.solve(centred.T @ centred + penalty * np.eye(64), centred.T @ (y - y.mean(axis=0)))
    expected = pieces[:, :32] + (pieces - x.mean(axis=0)) @ weight + y.mean(axis=0)
    assert table.config.num_layers == 0 and list(table.weights) == ["encoder.table.weight"]
    np.testing.assert_allclose(table.weights["encoder.table.weight"].numpy(), expected, atol=1e-4)


def test_it_comes_near_what_the_layers_say_of_other_sentences(checkpoint: Checkpoint) -> None:
    lines = [line.split("\t")[2:] for line in checkpoint.validation.read_text().splitlines()]
    seen, unseen = ([text for pair in lines[start::2] for text in pair] for start in (0, 1))
    wanted = CheckpointEncoder(checkpoint).encode(unseen)
    made = CheckpointEncoder(without_layers(checkpoint, seen)).encode(unseen)
    raw = CheckpointEncoder(checkpoint, num_layers=0).encode(unseen)
    assert (made * wanted).sum(axis=1).mean() > (raw * wanted).sum(axis=1).mean() + 0.1


def test_no_layers_is_a_bundle_measured_on_what_it_was_not_fitted_to(mini_checkpoint: Path, tmp_path: Path) -> None:
    lines = (mini_checkpoint / "validation.tsv").read_text().splitlines()
    code, out, err = export_command(mini_checkpoint, tmp_path / "table", "--layers", "0", "--tolerance", "5")
    assert code == 0, err
    bundle = Bundle.open(tmp_path / "table")
    assert (bundle.num_layers, bundle.trained.layers) == (0, (0,))
    measured = sum(language["pairs"] for language in bundle.parity["languages"].values())
    assert "P@1 whole" in out and 2 * measured <= len(lines) + 2
    assert SentenceEncoder(tmp_path / "table").encode(TEXTS[0]).shape == (32,)
    code, _, err = export_command(mini_checkpoint, tmp_path / "onnx", "--layers", "0", "--format", "onnx")
    assert code == 0, err
