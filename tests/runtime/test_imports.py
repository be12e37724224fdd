"""What importing costs, seen from a fresh interpreter."""

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from commands import raises

import xsent

HEAVY = ("torch", "onnx", "openvino", "typer", "onnxruntime", "sentencepiece", "transformers", "tqdm")
NOT_FOR_HELP = {*HEAVY, "numpy"} - {"typer"}
ENCODES = {"onnxruntime", "sentencepiece"}
ENCODER = "from xsent import SentenceEncoder; SentenceEncoder"


def loaded_after(statement: str) -> set[str]:
    script = f"{statement}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import xsent; xsent.__version__", {*HEAVY, "numpy"}),
        ("from xsent import cosine_similarity, XsentError", {*HEAVY}),
        # Ctrl-C is heard at once, help appears at once, one sentence loads no machinery of threads.
        ("import xsent.cli.terminal, xsent_train, xsent_export, xsent_bench", {*HEAVY, "numpy"}),
        ("import xsent.cli.main", NOT_FOR_HELP),
        (f"import {', '.join(point.module for point in entry_points(group='xsent.commands'))}", NOT_FOR_HELP),
        ("import xsent.encoder", {*HEAVY, "concurrent"} - {"sentencepiece"}),
        (f"{ENCODER}().encode('Anna')", {*HEAVY} - ENCODES),
        (f"{ENCODER}(backend='numpy').encode('Anna')", {*HEAVY, "concurrent"} - {"sentencepiece"}),
    ],
)
def test_nothing_loads_before_it_is_used(statement: str, absent: set[str]) -> None:
    assert not loaded_after(statement) & absent


def test_onnxruntime_leaves_no_trace_unless_told(tmp_path: Path) -> None:
    """An identifier in the home folder is the first sign of onnxruntime reporting its use; it does so unless told."""
    script = "from xsent import SentenceEncoder; SentenceEncoder().encode('Anna')"
    quiet = ("CI", "GITHUB_ACTIONS", "TF_BUILD", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in quiet}
    subprocess.run([sys.executable, "-c", script], env={**environment, "HOME": str(tmp_path)}, check=True)
    assert not list(tmp_path.rglob("*"))
    script = "import os, xsent; assert os.environ['ORT_DISABLE_TELEMETRY'] == '0'"
    subprocess.run([sys.executable, "-c", script], env={**os.environ, "ORT_DISABLE_TELEMETRY": "0"}, check=True)


def test_all_names_exist_and_are_sorted() -> None:
    assert xsent.__all__ == sorted(xsent.__all__)
    assert all(getattr(xsent, name) is not None for name in xsent.__all__)
    assert set(xsent.__all__) <= set(dir(xsent))
    for name, instead in {"SentenceTransformer": "SentenceEncoder", "util": "cos_sim"}.items():
        raises(ImportError, f"xsent has no {name}; use .*{instead}", exec, f"from xsent import {name}")
    raises(AttributeError, "no attribute 'nothing'", xsent.__getattr__, "nothing")
