"""Export as a whole: what is written, what is left after a failure, and the command."""

import errno
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from bench_toy import write_toy_tests
from commands import assert_refused, file_names
from safetensors import SafetensorError
from trainings import export_command

from xsent.cli.terminal import format_table, markdown_table
from xsent.encoder import SentenceEncoder
from xsent.evaluation import PROTOCOLS
from xsent.verification import verify
from xsent_export.batch_graph import BatchGraph
from xsent_export.card import _training
from xsent_export.export import export
from xsent_export.kept import kept_by_depth, kept_rows
from xsent_export.options import ExportOptions
from xsent_train.checkpoint import Checkpoint, CheckpointEncoder, load_checkpoint
from xsent_train.model import Encoder

TEXTS = ["Anna, Boris, Clara and David.", "Greta"]


@pytest.fixture
def checkpoint(mini_checkpoint: Path) -> Checkpoint:
    """The tiny checkpoint, as if it had been trained with prefixes of both kinds."""
    whole = load_checkpoint(mini_checkpoint)
    stages = [{"name": "t", "num_layers": 2, "steps": 7, "prefixes": [16, 32], "layer_prefixes": [1, 2]}]
    return replace(whole, about={**whole.about, "started_from": "older", "recipe": {"stages": stages}})


def card_of(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def test_the_bundle_is_complete_and_always_the_same(mini_bundle: Path, mini_checkpoint: Path, tmp_path: Path) -> None:
    names = {"README.md", "embeddings.bin", "model.onnx", "sentencepiece.model", "weights.bin", "xsent.json"}
    assert file_names(mini_bundle) == names
    assert verify(mini_bundle).sentences >= 5
    manifest = json.loads((mini_bundle / "xsent.json").read_bytes())
    assert (manifest["precision"], manifest["target"]) == ("int8", "portable")
    assert set(manifest["files"]) == names - {"xsent.json"}
    assert set(manifest["parity"]["languages"]) == {"de", "fr"}
    card = card_of(mini_bundle)
    assert card.startswith('---\nlanguage: ["en", "fr", "de"]\nlicense: "cc0-1.0"\n')
    assert manifest["fingerprint"] in card
    assert f"| fr | {manifest['parity']['languages']['fr']['pairs']} |" in card
    again = export(mini_checkpoint, tmp_path / "again").path
    assert all((again / name).read_bytes() == (mini_bundle / name).read_bytes() for name in names)


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")  # the toy's words are not the tokenizer's
def test_the_card_has_the_scores_of_tests_that_can_be_read(
    checkpoint: Checkpoint, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tests = tmp_path / "eval"
    write_toy_tests(tests)
    out = export(checkpoint, tmp_path / "out", ExportOptions(tests=tests)).path
    card, encoder = card_of(out), SentenceEncoder(out)
    for task, folder in (("tatoeba", "tatoeba"), ("xsr", "xsr"), ("sts", "stsb")):
        assert f"`xsent evaluate {task} DATA/eval/{folder}`" in card
        assert format_table(PROTOCOLS[task](encoder, tests / folder).rows()) in card
    kept = kept_rows(kept_by_depth(out, checkpoint, tests / "passages", ["en", "fr", "de"]))
    assert (
        len(kept) == len(encoder.bundle.depths)
        and markdown_table([*kept[0]], [[*map(str, row.values())] for row in kept]) in card
    )
    assert "Started from the weights of older. Stages:\n\n1. t: " in card
    assert "--columns category,text --train en`" in card and "mean of others" in card
    (tests / "sib200" / "en" / "train.tsv").unlink()
    (tests / "xsr" / "en-fr.tsv").write_text("C\n")
    (tests / "passages" / "fr.passages.tsv").write_text("C\n")
    card = card_of(export(checkpoint, tmp_path / "less", ExportOptions(tests=tests)).path)
    assert (
        "xsent evaluate sts" in card
        and "evaluate xsr" not in card
        and "classify" not in card
        and "Results kept" not in card
    )
    assert "no en/train.tsv to train a head on" in caplog.text and "en-fr.tsv" in caplog.text


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
def test_a_folder_for_a_hub_has_a_card_with_results(mini_checkpoint: Path, tmp_path: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    write_toy_tests(tmp_path / "eval")
    options = ExportOptions("sentence-transformers", tests=tmp_path / "eval")
    folder = export(mini_checkpoint, tmp_path / "out", options).path
    about = hub.ModelCard.load(folder / "README.md").data
    assert (about.library_name, about.language) == ("sentence-transformers", ["en", "fr", "de"])
    results = {(result.dataset_type, result.metric_type): result.metric_value for result in about.eval_results}
    expected = PROTOCOLS["sts"](CheckpointEncoder(load_checkpoint(mini_checkpoint)), tmp_path / "eval" / "stsb").mean
    assert results["stsb", "spearman"] == pytest.approx(expected["spearman"], abs=0.02)
    assert ("tatoeba", "xx_en") in results
    assert [metric for test, metric in results if test == "sib200"] == ["mean of others"]  # shares of unknown are none
    kept_apart = (folder / ".gitattributes").read_text().split()
    assert {"*.onnx", "*.safetensors"} <= set(kept_apart)


FULL_DISK = OSError(errno.ENOSPC, "No space left on device")


def test_ctrl_c_leaves_nothing_behind(checkpoint: Checkpoint, tmp_path: Path) -> None:
    steps = "_export.graph.ExternalFile.write", "_export.parity.measure_parity", "_export.export.verify"
    for step in (*steps, ".files.atomic.put_in_place"):
        with mock.patch(f"xsent{step}", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
            export(checkpoint, tmp_path / "out")
        assert not list(tmp_path.iterdir())


def test_the_command_prints_its_measurements_or_fails_in_one_line(mini_checkpoint: Path, tmp_path: Path) -> None:
    arguments = [mini_checkpoint, tmp_path / "out", "--int8", "--name", "small", "--tolerance", 5]
    code, out, err = export_command(*arguments)
    assert code == 0 and f"{tmp_path / 'out'}: int8, 2 layers, 32 numbers, 0.4 MB, fingerprint " in out
    assert "P@1 bundle" in out and "P@1 of 9 pairs moves in steps of 5.56" in err
    assert "`xsent-export CHECKPOINT OUT --int8 --tolerance 5.0`" in card_of(tmp_path / "out")
    _, out, _ = export_command(*arguments, "--force", "--json")
    assert set(json.loads(out)["parity"]["languages"]) == {"de", "fr"}
    assert_refused(export_command(tmp_path / "missing", tmp_path / "other"), "missing")
    code, _, err = export_command(mini_checkpoint, tmp_path / "other", "--int8", "--fp32")
    assert code == 2 and "exclude each other" in err
    for place, message in ((tmp_path, "is not a bundle"), (tmp_path / "no" / "out", "no such folder")):
        assert_refused(export_command(mini_checkpoint, place, "--force"), message)
    taken = "exists; name another folder, or replace it with --force"
    assert_refused(export_command(tmp_path / "no checkpoint", tmp_path), taken)  # before anything is done
    assert file_names(tmp_path) == {"out"}


def test_plain_onnxruntime_reads_the_onnx_folder(mini_checkpoint: Path, mini_bundle: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = json.loads(export_command(mini_checkpoint, out, "--format", "onnx", "--fp32", "--json")[1])
    assert (printed["path"], printed["bytes"]) == (str(out), sum(path.stat().st_size for path in out.iterdir()))
    assert printed["parity"]["languages"]["fr"]["cosine_mean"] > 0.995
    assert file_names(out) == {"README.md", "model.onnx", "sentencepiece.model"}
    assert (printed["precision"], printed["layers"], printed["dim"]) == ("float32", 2, 32)
    assert card_of(out).startswith('---\nlanguage: ["en", "fr", "de"]\n') and "--format onnx" in card_of(out)
    assert export_command(mini_bundle, tmp_path / "unmeasured", "--format", "onnx")[0] == 0  # it has no pairs
    assert "## Parity" in card_of(out) and "## Parity" not in card_of(tmp_path / "unmeasured")


@pytest.mark.parametrize("layers", [0, 2])
@pytest.mark.parametrize("text", ["The cat sleeps.", "Anna " * 99])  # the second is longer than the encoder reads
@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
def test_the_code_on_the_card_of_an_onnx_folder_gives_our_vectors(
    layers: int, text: str, make_encoder: Callable[..., Encoder], mini_checkpoint: Path, tmp_path: Path
) -> None:
    checkpoint = load_checkpoint(mini_checkpoint)
    shape = {"vocab_size": checkpoint.config.vocab_size, "num_layers": layers, "out_scale": 0.05}
    checkpoint = checkpoint.with_encoder(make_encoder(**shape))
    export(checkpoint, tmp_path / "out", ExportOptions("onnx", "float32"))
    [code] = re.findall("```python\n(.*?)```", card_of(tmp_path / "out"), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 6
    found: dict[str, np.ndarray] = {}
    exec(code.replace(f"path/to/{checkpoint.name}", str(tmp_path / "out")).replace("The cat sleeps.", text), found)
    np.testing.assert_allclose(found["vectors"], CheckpointEncoder(checkpoint).encode([text]), atol=1e-5)


@pytest.mark.parametrize(
    ("kind", "options", "place"),
    [("web", [], "for web"), ("openvino", ["--fp32"], "in OpenVINO")],
)
def test_exports_for_other_tools_are_measured_too(
    kind: str, options: list[str], place: str, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "openvino":
        pytest.importorskip("openvino")
    arguments = [mini_checkpoint, tmp_path / "out", "--format", kind, *options]
    code, out, err = export_command(*arguments)
    assert code == 0 and "P@1 trained" in out, err
    assert "## Parity" in card_of(tmp_path / "out")
    shutil.rmtree(tmp_path / "out")
    largest = lambda self, x, name: self._node("ReduceMax", [x], name, axes=[1], keepdims=0)  # noqa: E731
    monkeypatch.setattr(BatchGraph, "_mean", largest)
    assert_refused(export_command(*arguments), f"the exported encoder {place} differs too much")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "step", "error"),
    [
        ("onnx", "xsent_export.batch_graph.BatchGraph.model", FULL_DISK),
        ("sentence-transformers", "xsent_train.checkpoint.save_file", SafetensorError("I/O error: (os error 28)")),
    ],
)
def test_other_formats_replace_nothing_and_a_full_disk_is_one_line(
    kind: str, step: str, error: Exception, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert_refused(export_command(mini_checkpoint, tmp_path, "--format", kind), "exists; name another folder\n")
    monkeypatch.setattr(step, mock.Mock(side_effect=error))
    full = f"{out}: No space left on device; nothing was kept"
    assert_refused(export_command(mini_checkpoint, out, "--format", kind), full)
    assert not list(tmp_path.iterdir())


def test_the_card_names_the_models_of_a_mean(checkpoint: Checkpoint) -> None:
    stages = [
        *checkpoint.about["recipe"]["stages"],
        {"name": "mean", "steps": 0, "starts_from": {"start": 0.5, "t": 0.5}},
    ]
    mean = replace(checkpoint, about={**checkpoint.about, "recipe": {"stages": stages}})
    assert _training(mean).splitlines()[2:] == ["1. t: 7 steps", "2. mean: the mean of start and t"]
    none = replace(checkpoint, about={**checkpoint.about, "recipe": {}})
    assert _training(none) == "Started from the weights of older. Its stages are not recorded."
