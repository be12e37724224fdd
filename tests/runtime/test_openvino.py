"""OpenVINO's files and the backend that runs them, with the real openvino."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import raises
from conftest import MakeEncoder, save_encoder
from numpy.typing import NDArray
from trainings import export_command

from xsent import SentenceEncoder
from xsent.backends.openvino import OpenVinoBackend, import_openvino, open_core
from xsent.bundle import Bundle
from xsent.errors import BundleError, DataError, MissingExtraError
from xsent_export.openvino import write_openvino
from xsent_export.options import BundleSpec, Precision
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint
from xsent_train.model import Encoder
from xsent_train.tokens import Tokens

try:
    openvino = import_openvino()
except MissingExtraError:
    pytest.skip("openvino is not installed", allow_module_level=True)

SENTENCES = ["Anna, Boris, Clara and David.", "Elena.", "Greta, Henry, Irina et Jonas. " * 2, "Karla und Lukas."]


def write_whole(checkpoint: Checkpoint, precision: Precision, folder: Path, sentences: Sequence[str]) -> None:
    spec = BundleSpec.whole(checkpoint.config, precision)
    write_openvino(checkpoint, checkpoint.load_encoder(), spec, folder, sentences)


def trained_vector(encoder: Encoder, ids: NDArray[np.int64]) -> NDArray[np.float32]:
    with torch.inference_mode():
        return encoder(Tokens(torch.from_numpy(ids), torch.tensor([len(ids)])))[0].numpy()


# Opened by one thread and closed by another, as in a server; then a signal comes.
CLOSED_ELSEWHERE = """
import signal, sys, threading
from xsent import SentenceEncoder

signal.signal(signal.SIGINT, lambda *_: print("interrupted"))
encoders = [SentenceEncoder(sys.argv[1], backend="openvino")]
thread = threading.Thread(target=encoders.clear)
thread.start()
thread.join()
signal.raise_signal(signal.SIGINT)
"""


def test_a_signal_after_another_thread_closed_an_encoder_is_handled(openvino_bundle: Path) -> None:
    command = [sys.executable, "-c", CLOSED_ELSEWHERE, str(openvino_bundle)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


@pytest.fixture(scope="session")
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(mini_checkpoint)


@pytest.mark.parametrize(
    ("layers", "activation", "shape"),
    [(0, "gelu", (0, 32)), (1, "gelu", (1, 32)), (2, "gelu", (2, 32)), (2, "silu", (2, 32)), (2, "gelu", (1, 16))],
)
def test_float32_is_the_encoder_at_any_length(
    layers: int, activation: str, shape: tuple[int, int], make_encoder: MakeEncoder, tmp_path: Path
) -> None:
    encoder, form = make_encoder(num_layers=layers, activation=activation), BundleSpec(*shape, "float32")
    checkpoint = load_checkpoint(save_encoder(encoder, tmp_path / "checkpoint"))
    write_openvino(checkpoint, encoder.first(form.num_layers), form, tmp_path, [])
    run = open_core().compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    for length in (1, 2, 7, 40, 64):
        ids = np.arange(length) * 7 % encoder.config.vocab_size
        for padding in {0, 64 - length}:  # a negative id is padding
            (vectors,) = run({"input_ids": np.pad(ids, (0, padding), constant_values=-1)[None]}).values()
            assert vectors.shape == (1, form.dim)
            trained = trained_vector(encoder.first(form.num_layers), ids)[: form.dim]
            np.testing.assert_allclose(vectors[0], trained, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_eight_bits_are_close(checkpoint: Checkpoint, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("nncf")
    out = tmp_path / "out"
    _, told, _ = export_command(checkpoint.path, out, "--format", "openvino", "--int8", "--tolerance", 20, "--json")
    assert json.loads(told)["path"] == str(out) and capfd.readouterr().out == ""  # it is for results
    parameters = sum(weight.numel() for weight in checkpoint.load_encoder().parameters())
    assert (out / "openvino" / "model.bin").stat().st_size < 2 * parameters  # scales and positions are not in 8 bits
    trained = CheckpointEncoder(checkpoint).encode(SENTENCES)
    for backend in ("onnx", "openvino"):
        encoder = SentenceEncoder(out, backend=backend, threads=1)
        assert (np.einsum("nd,nd->n", encoder.encode(SENTENCES), trained) >= 0.995).all()
    assert encoder.bundle.parity["openvino"]["kind"] == "int8"


@pytest.mark.parametrize("precision", ["float32", pytest.param("int8", marks=pytest.mark.slow)])
def test_the_same_bytes_twice_of_no_machine(precision: Precision, checkpoint: Checkpoint, tmp_path: Path) -> None:
    if precision == "int8":
        pytest.importorskip("nncf")
    written = []
    for name in ("a", "b"):
        folder = tmp_path / name
        folder.mkdir()
        write_whole(checkpoint, precision, folder, SENTENCES)
        written.append([(file.name, file.read_bytes()) for file in sorted(folder.iterdir())])
    assert written[0] == written[1]
    assert [name for name, _ in written[0]] == ["model.bin", "model.xml"]
    xml = dict(written[0])["model.xml"].decode()
    assert not re.search(r'"/\w+/|[A-Z]:\\', xml)
    assert str(tmp_path) not in xml


def test_prepared_lengths_change_nothing(openvino_bundle: Path, checkpoint: Checkpoint) -> None:
    backend, encoder = OpenVinoBackend(Bundle.open(openvino_bundle)), checkpoint.load_encoder()
    for ids in map(np.arange, range(1, 65)):
        np.testing.assert_allclose(backend.embed(ids[None])[0], trained_vector(encoder, ids), rtol=0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
def test_an_encoder_runs_it_or_says_how_to_get_it(
    openvino_bundle: Path, checkpoint: Checkpoint, mini_bundle: Path
) -> None:
    encoder = SentenceEncoder(openvino_bundle, backend="openvino")
    trained = CheckpointEncoder(checkpoint).encode(SENTENCES)
    np.testing.assert_allclose(encoder.encode(SENTENCES), trained, rtol=0, atol=1e-4)
    assert encoder.bundle.parity["openvino"]["kind"] == "fp32"
    with pytest.raises(BundleError, match=r"no openvino/model\.xml; .*xsent-export CHECKPOINT OUT --format openvino"):
        SentenceEncoder(mini_bundle, backend="openvino")
    script = "import sys; from xsent.backends.openvino import import_openvino; import_openvino(); assert "
    quiet = "'openvino' in sys.modules and 'openvino_telemetry' not in sys.modules"  # nothing goes to the makers
    subprocess.run([sys.executable, "-c", script + quiet], check=True)


@pytest.mark.parametrize("name", ["model.xml", "model.bin"])
def test_damaged_files(name: str, openvino_bundle: Path, tmp_path: Path) -> None:
    opened = Bundle.open(shutil.copytree(openvino_bundle, tmp_path / "bundle"))
    content = (file := opened.path / "openvino" / name).read_bytes()
    for damaged in (content[: len(content) // 2], b""):
        file.write_bytes(damaged)
        with pytest.raises(BundleError, match=r"model\.xml: cannot be loaded .*; copy the whole bundle") as caught:
            OpenVinoBackend(opened)
        assert "\n" not in str(caught.value)


def test_what_is_missing_is_named(
    openvino_bundle: Path, checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(precision: Precision, sentences: Sequence[str] = ("", " ")) -> None:
        write_whole(checkpoint, precision, tmp_path, sentences)

    raises(DataError, "no sentences to calibrate int8 on; add some in en, fr, de", write, "int8")
    monkeypatch.setitem(sys.modules, "nncf", None)
    advice = r"nncf is not installed; run pip install .xsent\[openvino-export\]."
    raises(MissingExtraError, advice, write, "int8", SENTENCES)
    with monkeypatch.context() as context:
        context.setattr("xsent_export.openvino.open_core", object)  # of another version
        raises(
            MissingExtraError,
            r"cannot write this encoder .*; run pip install -U .xsent\[openvino-export\].",
            write,
            "float32",
        )
    assert not list(tmp_path.iterdir())
    (tmp_path / "model.xml").mkdir()
    with pytest.raises(OSError, match="openvino cannot write it") as caught:
        write("float32")
    assert caught.value.filename == str(tmp_path / "model.xml")
    monkeypatch.setitem(sys.modules, "openvino", None)
    raises(MissingExtraError, r"pip install .xsent\[openvino\].", SentenceEncoder, openvino_bundle, backend="openvino")
