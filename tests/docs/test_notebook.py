"""The notebook has the commands of the page that it is made from, and runs."""

import os
import sys
from pathlib import Path

import pytest
from notebook import NOTEBOOK, make
from pages import ROOT


def test_the_notebook_is_up_to_date() -> None:
    assert NOTEBOOK.read_text(encoding="utf-8") == make(), "run python tools/notebook.py"


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.filterwarnings("ignore")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    (tmp_path / "tickets.tsv").write_bytes((ROOT / "bench/tickets.tsv").read_bytes())
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    made = nbformat.reads(make(), as_version=4)
    client.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(output.get("text", "") for cell in made.cells for output in cell.get("outputs", ()))
    assert "8 labels from 40 examples" in printed and '"label":"hours"' in printed
