"""Whether a bundle still gives its golden vectors."""

import json
import shutil
from pathlib import Path

import pytest

from xsent.errors import BundleError
from xsent.verification import verify


@pytest.fixture
def bundle(mini_bundle: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))


def test_healthy(mini_bundle: Path) -> None:
    result = verify(mini_bundle)
    assert result.path == str(mini_bundle)
    assert result.files >= 4
    assert result.sentences > 0
    assert result.difference <= result.tolerance


@pytest.mark.parametrize("wrong", [9.0, float("nan")])
def test_other_vectors(bundle: Path, wrong: float) -> None:
    manifest = json.loads((bundle / "xsent.json").read_text())
    manifest["golden"]["vectors"][0][0] = wrong
    (bundle / "xsent.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="golden vectors differ by"):
        verify(bundle)


def test_damaged_table(bundle: Path) -> None:
    content = bytearray((bundle / "embeddings.bin").read_bytes())
    content[0] ^= 1
    (bundle / "embeddings.bin").write_bytes(content)
    with pytest.raises(BundleError, match=r"embeddings\.bin: damaged"):
        verify(bundle)
