"""Sentences that run together: the same bits as each by itself, whatever the CPU, the order and the threads."""

import json
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from commands import Runner, assert_refused, raises
from conftest import MakeEncoder
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from xsent import SentenceEncoder
from xsent.backends.numpy import NumpyBackend, round_to_grid
from xsent.backends.onnx import OnnxBackend
from xsent.bundle import MANIFEST, Bundle, Rounding, compute_fingerprint
from xsent.errors import BundleError
from xsent.tasks import tasks
from xsent.verification import verify_together
from xsent_export.export import export
from xsent_export.graph import CONTRIB, EncoderGraph
from xsent_export.options import ExportOptions
from xsent_export.quantization import quantize_columns
from xsent_train.checkpoint import load_checkpoint

WORDS = ("Anna", "Boris", "and", "sees", "...", "Frank et Greta", "ﬁne", "")
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=90).map(" ".join), max_size=40)


@settings(max_examples=40)
@given(texts=TEXTS, threads=st.integers(1, 3), seed=st.integers(0, 9))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_alone_in_company_in_any_order_and_in_any_number_of_threads(
    mini_bundle: Path, texts: list[str], threads: int, seed: int
) -> None:
    encoder, order = SentenceEncoder(mini_bundle, threads=threads), np.random.default_rng(seed).permutation(len(texts))
    for on_long in ("warn", "split"):
        apart = [encoder.encode(text, on_long=on_long) for text in texts]
        together = encoder.encode([texts[place] for place in order], on_long=on_long)
        streamed = list(encoder.encode_iter((texts[place] for place in order), on_long=on_long))
        for rows in (together, streamed):
            assert all(np.array_equal(row, apart[place]) for row, place in zip(rows, order, strict=True))


def test_every_depth_and_length(builtin: Bundle, mini_bundle: Path, run: Runner) -> None:
    longest = Bundle.open(mini_bundle).max_length
    compared = sum(max(256 // length, 2) for length in range(1, longest + 1))
    assert verify_together(mini_bundle) == compared
    code, out, err = run("verify", mini_bundle, "--thorough", "--json")
    assert (code, json.loads(out)["together"], err) == (0, compared, "")
    wrong = lambda self, ids: np.full((len(ids), 32), len(ids), np.float32)  # noqa: E731
    with mock.patch.object(NumpyBackend, "embed", wrong):
        raises(BundleError, "sentences of 1 tokens get other bits together", verify_together, mini_bundle, "numpy")
        message = "sentences of 1 tokens get other bits together than each by itself; please report it"
        with mock.patch("xsent.verification.verify_together", lambda *_, **__: verify_together(mini_bundle, "numpy")):
            assert_refused(run("verify", mini_bundle, "--thorough"), message)
    shallow = OnnxBackend(Bundle.open(builtin.path, 0))
    ids = np.arange(21 * 12).reshape(21, 12)
    assert np.array_equal(shallow.embed(ids), np.concatenate([shallow.embed(one[None]) for one in ids]))


def test_a_cpu_that_gives_other_bits_together_encodes_each_by_itself(mini_bundle: Path) -> None:
    texts = ["Anna sees Boris", "Boris sees Anna", "Boris Boris sees"]
    expected = SentenceEncoder(mini_bundle, threads=1).encode(texts)
    right = OnnxBackend._run
    together: list[int] = []

    def other_bits(self: OnnxBackend, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        together.append(len(ids))
        return right(self, ids) + np.float32(1e-6) * (len(ids) > 1)

    with mock.patch.object(OnnxBackend, "_run", other_bits):
        encoder = SentenceEncoder(mini_bundle, threads=1)
        with pytest.warns(UserWarning, match="each is encoded by itself; lists take longer") as caught:
            assert np.array_equal(encoder.encode(texts), expected)
            assert np.array_equal(encoder.encode(texts), expected)
    assert len(caught) == 1 and together == [2, *[1] * 2, *[1] * 3, *[1] * 3]


class EarlierGraph(EncoderGraph):
    """The graph of a bundle of version 3: one sentence, whose activations share one scale."""

    SENTENCES = 1

    def _product(self, name: str, x: str, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> str:
        x, weight = self._smooth(name, x, weight)
        parts = zip(("weight", "scales"), quantize_columns(weight), strict=True)
        inputs = [self._weight(f"{name}.{part}", values) for part, values in parts]
        inputs += ["", self._weight(f"{name}.bias", bias)]
        return self._node("DynamicQuantizeMatMul", [x, *inputs], name, CONTRIB)


def test_a_bundle_of_an_earlier_version_runs_as_before(mini_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(mini_checkpoint)
    with mock.patch("xsent_export.export.EncoderGraph", EarlierGraph):
        folder = export(checkpoint, tmp_path / "earlier", ExportOptions()).path
    manifest = json.loads((folder / MANIFEST).read_bytes())
    assert manifest["network"].pop("rounding") == {}
    manifest["format_version"] = 3
    manifest["fingerprint"] = compute_fingerprint(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))
    texts = ["Anna sees Boris.", "Greta and Lukas.", "Anna, Boris and Clara.", "Karla sees Frank."]
    onnx, numpy = (SentenceEncoder(folder, backend=backend, threads=1) for backend in ("onnx", "numpy"))
    together = onnx.encode(texts)
    assert np.array_equal(together, [onnx.encode(text) for text in texts])
    np.testing.assert_allclose(numpy.encode(texts), together, atol=1e-4)
    again = export(folder, tmp_path / "again", ExportOptions(gate_data=checkpoint.validation)).path
    assert Bundle.open(again).format_version == 4
    assert (SentenceEncoder(again).encode(texts) * together).sum(axis=1).min() > 0.999


def test_activations_by_hand(make_encoder: MakeEncoder) -> None:
    x = np.array([[-1, 0, 3], [0, 0.3, 0.6]], np.float32)
    numbers, step = round_to_grid(x, Rounding(0.1, 20, by_token=False))
    assert numbers.tolist() == [[-10, 0, 30], [0, 3, 6]] and step.tolist() == [[np.float32(0.1)]]
    assert round_to_grid(x, Rounding(0.01, 20, by_token=False))[0].tolist() == [[-20, 0, 235], [0, 30, 60]]  # cut
    numbers, step = round_to_grid(x, Rounding(0.004, 5, by_token=True))  # 3 / 250, and not 0.6 / 250
    assert step.ravel().tolist() == pytest.approx([0.012, 0.004])
    assert numbers.tolist() == [[-5, 0, 250], [0, 75, 150]]


def sizes(texts: Iterator[str] | list[str], threads: int = 1, total: int = 0) -> list[int]:
    return [len(sentences) for _, _, sentences in tasks(texts, threads=threads, total=total)]


def test_tasks_grow_but_do_not_wait() -> None:
    assert sizes(["Anna"] * 100, total=100) == [100]
    assert sizes(["Anna"] * 1000, threads=2, total=1000) == [125] * 8
    assert sizes(["Anna"] * 5000, total=5000)[:2] == [512, 512]
    assert sizes(["Anna"] * 200) == [16, 17, 34, 68, 65]  # a stream: as many again as have been read
    assert sizes(["a" * 60_000] * 4 + ["Anna"] * 20) == [2, 2, 16, 4]  # long texts
    clock = count(step=0.3)
    with mock.patch("xsent.tasks.monotonic", lambda: next(clock)):
        assert sizes(["Anna"] * 6) == [2, 2, 2]  # slow lines
    assert [first for first, _, _ in islice(tasks(["Anna"] * 99, None, 7, threads=1), 3)] == [7, 23, 40]
