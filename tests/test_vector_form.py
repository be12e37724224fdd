"""Evaluating vectors as they are stored."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from xsent.cli import app
from xsent.encoder import SentenceEncoder
from xsent.evaluation.protocols import VectorForm

TEXTS = ["The cat sleeps.", "Pay the rent before the first.", ""]


def test_what_is_stored_as_it_is_stays_the_encoder(mini_bundle: Path) -> None:
    encoder = SentenceEncoder(mini_bundle)
    assert VectorForm().of(encoder) is encoder


@pytest.mark.parametrize("precision", ["float16", "int8", "binary"])
def test_cosines_are_those_of_what_was_stored(mini_bundle: Path, precision: str) -> None:
    encoder = SentenceEncoder(mini_bundle)
    stored = encoder.encode(TEXTS, precision=precision, truncate_dim=16)  # type: ignore[arg-type]
    vectors = VectorForm(precision, 16).of(encoder).encode(TEXTS)  # type: ignore[arg-type]
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    unit = vectors / lengths
    np.testing.assert_allclose(unit @ unit.T, encoder.similarity(stored, stored), atol=1e-5)


def test_only_bundles_are_stored() -> None:
    with pytest.raises(ValueError, match="are for bundles; export the checkpoint first"):
        VectorForm("int8").of(object())  # type: ignore[arg-type]


def test_the_command_takes_a_precision(tmp_path: Path) -> None:
    (tmp_path / "en-fr.tsv").write_text("The cat sleeps.\tLe chat dort.\nPay the rent.\tPaie le loyer.\n")
    arguments = ["evaluate", "tatoeba", str(tmp_path), "--precision", "binary", "--truncate-dim", "128"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "100.0" in result.stdout
    assert CliRunner().invoke(app, [*arguments[:-1], "100"]).exit_code == 1  # no whole number of bytes
