"""Opening models of every kind, and running a bundle's graph with every backend that needs nothing of its own in it."""

import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest
from commands import raises

from xsent import open_model as models
from xsent.backends.base import BACKENDS, default_backend, open_backend
from xsent.bundle import Bundle
from xsent.encoder import SentenceEncoder
from xsent.errors import BackendError, BundleError, MissingExtraError


def test_numpy_does_without_onnxruntime(builtin: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    assert default_backend() == "onnx"
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert default_backend() == "numpy"
    assert np.isfinite(open_backend("numpy", builtin).embed(np.arange(5)[None])).all()
    advice = "install it again, or run pip uninstall onnxruntime: numpy takes over"
    raises(MissingExtraError, advice, open_backend, "onnx", builtin)


TEXTS = ["Anna sees Boris.", "", "Clara", "David voit Elena"] * 5


@pytest.mark.parametrize("backend", ["onnx", "numpy"])
def test_threads_may_open_share_and_close_encoders(mini_bundle: Path, backend: str) -> None:
    expected = SentenceEncoder(mini_bundle, backend=backend, threads=1).encode(TEXTS)
    shared = SentenceEncoder(mini_bundle, backend=backend, threads=3)

    def agrees(threads: int) -> bool:
        own = SentenceEncoder(mini_bundle, backend=backend, threads=threads)
        same = all(np.array_equal(encoder.encode(TEXTS), expected) for encoder in (own, shared))
        gc.collect()
        return same

    gc.freeze()  # what all other tests have left need not be looked through
    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(agrees, [1, 2] * 4))
    finally:
        gc.unfreeze()


def tell(encoder: SentenceEncoder, to: Connection) -> None:
    try:
        to.send(encoder.encode(TEXTS))
    except BackendError as error:
        to.send(error)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_encoder_in_a_forked_process(request: pytest.FixtureRequest, backend: str) -> None:
    path = request.getfixturevalue("openvino_bundle" if backend == "openvino" else "mini_bundle")
    encoder, forking = SentenceEncoder(path, backend=backend, threads=2), get_context("fork")
    expected, (ours, theirs) = encoder.encode(TEXTS), forking.Pipe()
    child = forking.Process(target=tell, args=(encoder, theirs), daemon=True)
    child.start()
    answered = ours.poll(60)
    child.kill()
    assert answered
    if backend == "openvino":
        with pytest.raises(BackendError, match="forked from the one that opened it; open it there"):
            raise ours.recv()
    else:
        assert np.array_equal(ours.recv(), expected)


class Stub:
    """An encoder of another room."""


def open_stub(folder: Path) -> Stub | None:
    return Stub() if (folder / "stub").exists() else None


def offer(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    monkeypatch.setattr(models, "OPENERS", {value.split(":")[-1]: value for value in values})


def test_bundles_and_what_others_know(mini_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(models.open_model(mini_bundle), SentenceEncoder)
    offer(monkeypatch, f"{__name__}:open_stub")
    raises(BundleError, "known kinds: bundle, open_stub", models.open_model, tmp_path)
    offer(monkeypatch, "no_such_package:open")
    raises(BundleError, "no model in this folder", models.open_model, tmp_path)
    (tmp_path / "modules.json").touch()
    raises(MissingExtraError, r"pip install .xsent\[train\].", models.open_model, tmp_path)
    offer(monkeypatch, f"{__name__}:open_stub", f"{__name__}:Stub")  # asked in turn
    (tmp_path / "stub").touch()
    assert isinstance(models.open_model(tmp_path), Stub)
    raises(BundleError, "no such folder", models.open_model, tmp_path / "nothing")
