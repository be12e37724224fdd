"""`xsent verify`: bundles with each backend, and indexes."""

import json
from pathlib import Path

from typer.testing import CliRunner

from xsent.cli import app
from xsent.encoder import SentenceEncoder
from xsent.search.building import build_index


def test_a_bundle_is_verified_with_the_backend_asked_for() -> None:
    for backend in ("onnx", "numpy"):
        result = CliRunner().invoke(app, ["verify", "--backend", backend, "--json"])
        assert result.exit_code == 0, result.output
        found = json.loads(result.stdout)
        assert found["difference"] <= found["tolerance"] and found["files"] == 5
    result = CliRunner().invoke(app, ["verify", "--backend", "abacus"])
    assert result.exit_code == 1
    assert "backend 'abacus' is not available; available: numpy, onnx, openvino" in result.stderr


def test_an_index_is_verified_too(mini_bundle: Path, tmp_path: Path) -> None:
    index = tmp_path / "notes.index"
    build_index(index, ["Anna", "", "Boris"], SentenceEncoder(mini_bundle))
    result = CliRunner().invoke(app, ["verify", str(index)])
    assert result.exit_code == 0, result.output
    assert "rows         2" in result.stdout
    vectors = index / "vectors.f16"
    vectors.write_bytes(b"\1" + vectors.read_bytes()[1:])
    assert CliRunner().invoke(app, ["verify", str(index)]).exit_code == 1
