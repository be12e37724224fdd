"""A bundle, back into a checkpoint, and exported again."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from commands import raises
from conftest import MakeEncoder, save_encoder
from numpy.typing import NDArray
from onnx import numpy_helper

from xsent.bundle import MANIFEST, TABLE, Bundle, Trained, builtin_path, compute_fingerprint
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError
from xsent_export.export import export
from xsent_export.graph import EncoderGraph
from xsent_export.options import BundleSpec, ExportOptions, Precision, trained_depths, trained_dims
from xsent_export.quantization import calibrate_checkpoint, quantize_rows
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint
from xsent_train.derive import BundleWeights, checkpoint_from_bundle
from xsent_train.model import Encoder

TEXTS = ["Anna, Boris, Clara and David.", "Greta et Lukas", "", "ﬁne ½ ☃ 猫", "Irina und Jonas, " * 3]


def constants(folder: Path) -> dict[str, NDArray[np.generic]]:
    """What the graph of a bundle holds, by name."""
    return {t.name: numpy_helper.to_array(t) for t in onnx.load(folder / "model.onnx").graph.initializer}


def exported(like: Checkpoint, out: Path, encoder: Encoder, precision: Precision, **about: object) -> Path:
    """A bundle of an encoder with the vocabulary and the held-out pairs of a checkpoint."""
    files = like.tokenizer, like.validation
    made = save_encoder(encoder, out / "checkpoint", *files, languages=["en", "fr"], **about)
    return export(load_checkpoint(made), out / "bundle", ExportOptions(precision=precision)).path


@pytest.mark.filterwarnings("ignore::xsent.encoder.UnknownTextWarning")
def test_it_becomes_the_same_bundle_again(mini_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint, original = checkpoint_from_bundle(mini_bundle), load_checkpoint(mini_checkpoint)
    assert (checkpoint.config, checkpoint.name, checkpoint.licence) == (original.config, "mini", "CC0-1.0")
    assert checkpoint.languages == ["en", "fr", "de"]
    assert checkpoint.tokenizer.read_bytes() == original.tokenizer.read_bytes()
    cosines = (CheckpointEncoder(checkpoint).encode(TEXTS) * CheckpointEncoder(original).encode(TEXTS)).sum(axis=1)
    assert cosines.tolist() == pytest.approx([1, 1, 0, 1, 1], abs=1e-3)
    again = export(mini_bundle, tmp_path / "again", ExportOptions(gate_data=original.validation)).path
    before, after = SentenceEncoder(mini_bundle, threads=1), SentenceEncoder(again, threads=1)
    np.testing.assert_allclose(after.encode(TEXTS), before.encode(TEXTS), atol=1e-5)


@pytest.mark.parametrize("num_layers", [0, 2])
@pytest.mark.parametrize("precision", ["int8", "int4-table", "float32"])
def test_every_shape(
    precision: Precision, num_layers: int, make_encoder: MakeEncoder, mini_checkpoint: Path, tmp_path: Path
) -> None:
    original, shape = load_checkpoint(mini_checkpoint), {"activation": "gelu", "norm_eps": 1e-12}
    encoder = make_encoder(original.config.vocab_size, num_layers=num_layers, out_scale=0.05, **shape)
    bundle = exported(original, tmp_path, encoder, precision)
    weights = BundleWeights(Bundle.open(bundle))
    if num_layers:
        assert weights.config == encoder.config
    state = dict(weights.state())
    assert state.keys() == encoder.state_dict().keys()
    steps = 1e-6 if precision == "float32" else 1 / 16  # half a step of a number of up to 8: some are smoothed
    for name, weight in encoder.state_dict().items():
        step = 1 / 4 if (precision, name) == ("int4-table", "table.weight") else steps
        np.testing.assert_allclose(state[name].numpy(), weight.numpy(), atol=step, rtol=step)
    rebuilt = Encoder(weights.config)
    rebuilt.load_state_dict(state)
    kept = weights.quantized()
    assert len(kept) == (0 if precision == "float32" else (2 + 4 + 3) * num_layers)
    spec = BundleSpec.whole(rebuilt.config, precision)
    again = calibrate_checkpoint(Checkpoint(bundle, {}, kept), rebuilt.eval(), spec, [])
    EncoderGraph(rebuilt, spec, again).write(tmp_path)
    for name, values in constants(tmp_path).items():
        np.testing.assert_allclose(values, constants(bundle)[name], rtol=1e-6)


def test_every_scale_survives() -> None:
    largest = np.arange(2**23, 2**24, dtype=np.float32)[:, None]  # all that a float can be but for its exponent
    rows, scales = quantize_rows(largest)
    assert (rows == 127).all()
    assert (quantize_rows(rows * scales)[1] == scales).all()


def test_the_bundle_that_ships(tmp_path: Path) -> None:
    checkpoint = checkpoint_from_bundle(builtin_path())
    assert checkpoint.about["attribution"]
    written = EncoderGraph(checkpoint.load_encoder(), BundleSpec.whole(checkpoint.config))
    written.write(tmp_path)
    assert (tmp_path / TABLE).read_bytes() == (builtin_path() / TABLE).read_bytes()
    texts = ["The cat sleeps.", "Le chat dort près de la fenêtre."]
    cosines = (CheckpointEncoder(checkpoint).encode(texts) * SentenceEncoder(threads=1).encode(texts)).sum(axis=1)
    assert cosines.min() > 0.99


def test_what_cannot_be_read_back_is_one_line(mini_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(mini_bundle, tmp_path / "strange"))
    whole = json.loads((folder / MANIFEST).read_bytes())
    less = json.loads(json.dumps(whole))
    del less["network"]["tensors"]["layer1.ffn_norm.bias"]
    less["fingerprint"] = compute_fingerprint(less)
    for manifest, message in (
        (less, r"strange: cannot be read back \('layer1.ffn_norm.bias'\)"),
        ({**whole, "format_version": 1}, "format_version 1 is unknown"),
    ):
        (folder / MANIFEST).write_text(json.dumps(manifest))
        with pytest.raises(BundleError, match=message) as raised:
            export(folder, tmp_path / "out")
        assert "\n" not in str(raised.value) and not (tmp_path / "out").exists()
    (folder / MANIFEST).write_text(json.dumps(whole))
    (folder / "weights.bin").write_bytes(bytes(whole["files"]["weights.bin"]["bytes"]))
    raises(BundleError, r"weights\.bin: damaged", checkpoint_from_bundle, folder)
    checkpoint = load_checkpoint(mini_checkpoint)
    stages = [{"name": "t", "num_layers": 2, "steps": 7, "prefixes": [16]}]
    checkpoint = replace(checkpoint, about={**checkpoint.about, "recipe": {"stages": stages}})
    cut = export(checkpoint, tmp_path / "cut", ExportOptions(dim=16, least_cosine=0.5, tolerance=50)).path
    raises(
        BundleError, r"vectors were truncated from 32 to 16 numbers; use its checkpoint", checkpoint_from_bundle, cut
    )


def test_what_was_trained_is_known_again(mini_checkpoint: Path, make_encoder: MakeEncoder, tmp_path: Path) -> None:
    original = load_checkpoint(mini_checkpoint)
    encoder = make_encoder(vocab_size=original.config.vocab_size, out_scale=0.05, activation="gelu")
    stages = [{"num_layers": 2, "prefixes": [16, 32], "layer_prefixes": [1, 2], "name": "all", "steps": 1}]
    more = {"recipe": {"stages": stages}, "space": "people/their-model"}
    bundle = exported(original, tmp_path, encoder, "int8", **more)
    opened = Bundle.open(bundle)
    assert opened.trained == Trained(prefixes=(16, 32), layers=(1, 2)) and opened.space == "people/their-model"
    assert "| space | that of people/their-model;" in (bundle / "README.md").read_text()
    read = checkpoint_from_bundle(bundle)
    assert (trained_depths(read), trained_dims(read)) == ([1, 2], [16, 32])
    pairs = mini_checkpoint / "validation.tsv"
    trained = load_checkpoint(tmp_path / "checkpoint")
    for number, options in enumerate(({"dim": 16}, {"num_layers": 1, "dim": 16}, {"num_layers": 1})):
        asked = ExportOptions(gate_data=pairs, tolerance=20, **options)
        result = export(bundle, tmp_path / str(number), asked)
        part, exact = result.path, CheckpointEncoder(trained, depth=options.get("num_layers"), dim=options.get("dim"))
        assert (SentenceEncoder(part).encode(TEXTS[:2]) * exact.encode(TEXTS[:2])).sum(axis=1).min() > 0.99
        assert set(result.parity.whole) == {"fr"}
        assert "P@1 whole" in (part / "README.md").read_text()
        assert Bundle.open(part).space == (None if "dim" in options else "people/their-model")
