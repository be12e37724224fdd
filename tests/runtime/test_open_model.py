"""Opening bundles and what other rooms offer."""

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from commands import raises

from xsent import open_model as models
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError, MissingExtraError


class Stub:
    """An encoder of another room."""


def open_stub(folder: Path) -> Stub | None:
    return Stub() if (folder / "stub").exists() else None


def offer(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    offered = [EntryPoint(value.split(":")[-1], value, models.GROUP) for value in values]
    monkeypatch.setattr(models, "entry_points", lambda group: offered)
    monkeypatch.setattr(models, "OPENERS", {})


def test_bundles_and_what_others_know(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(models.open_model(mini_bundle), SentenceEncoder)
    offer(monkeypatch, f"{__name__}:open_stub")
    raises(BundleError, "known kinds: bundle, open_stub", models.open_model, tmp_path)
    offer(monkeypatch, "no_such_package:open")
    raises(BundleError, "no model in this folder", models.open_model, tmp_path)
    (tmp_path / "modules.json").touch()
    raises(MissingExtraError, r"pip install xsent\[train\]", models.open_model, tmp_path)
    offer(monkeypatch, f"{__name__}:open_stub", f"{__name__}:Stub")  # asked in turn
    (tmp_path / "stub").touch()
    assert isinstance(models.open_model(tmp_path), Stub)
    raises(BundleError, "no such folder", models.open_model, tmp_path / "nothing")
