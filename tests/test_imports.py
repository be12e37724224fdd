"""What importing costs, seen from a fresh interpreter."""

import subprocess
import sys

import pytest

import xsent

HEAVY = ("torch", "onnx", "openvino", "typer", "onnxruntime", "sentencepiece", "transformers", "tqdm")


def loaded_after(statement: str) -> set[str]:
    script = f"import sys; {statement}; print(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def test_the_package_alone_is_free() -> None:
    assert not loaded_after("import xsent; xsent.__version__") & {*HEAVY, "numpy"}


def test_similarity_needs_numpy_alone() -> None:
    assert not loaded_after("from xsent import cosine_similarity, XsentError") & set(HEAVY)


def test_the_encoder_needs_only_its_three() -> None:
    loaded = loaded_after("from xsent import SentenceEncoder; SentenceEncoder().encode('Anna')")
    assert {"numpy", "onnxruntime", "sentencepiece"} <= loaded
    assert not loaded & {"torch", "onnx", "openvino", "typer", "transformers", "tqdm"}


def test_the_command_loads_nothing_heavy_for_its_help() -> None:
    assert not loaded_after("import xsent.cli") & (set(HEAVY) - {"typer"} | {"numpy"})


def test_all_names_exist_and_are_sorted() -> None:
    assert xsent.__all__ == sorted(xsent.__all__)
    assert all(getattr(xsent, name) is not None for name in xsent.__all__)
    assert set(xsent.__all__) <= set(dir(xsent))


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        xsent.__getattr__("nothing")
