"""Export as a whole: what is written, what is left behind when it fails, and the command."""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from bench_toy import write_toy_tests
from commands import assert_refused
from trainings import export_command

from xsent.cli.terminal import format_table
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError
from xsent.evaluation import PROTOCOLS, as_stored
from xsent.verification import verify
from xsent_export.export import export_checkpoint
from xsent_export.options import ExportOptions
from xsent_train.checkpoint import CheckpointEncoder, load_checkpoint


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder."""
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def test_the_bundle_is_complete_and_its_card_says_what_was_measured(mini_bundle: Path) -> None:
    names = {"README.md", "embeddings.bin", "model.onnx", "sentencepiece.model", "weights.bin", "xsent.json"}
    assert set(contents(mini_bundle)) == names
    assert verify(mini_bundle).sentences >= 5
    manifest = json.loads((mini_bundle / "xsent.json").read_bytes())
    assert manifest["precision"] == "int8"
    assert set(manifest["files"]) == names - {"xsent.json"}
    assert set(manifest["parity"]["languages"]) == {"de", "fr"}
    card = (mini_bundle / "README.md").read_text(encoding="utf-8")
    assert card.startswith('---\nlanguage: ["en", "fr", "de"]\nlicense: "cc0-1.0"\n')
    assert manifest["fingerprint"] in card
    assert f"| fr | {manifest['parity']['languages']['fr']['pairs']} |" in card


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")  # the toy's words are not the tokenizer's
def test_the_card_has_the_scores_of_tests_that_are_at_hand(mini_checkpoint: Path, tmp_path: Path) -> None:
    write_toy_tests(tmp_path / "eval")
    (tmp_path / "en-fr.tsv").write_text("Anna and Boris.\tAnna et Boris.\nGreta and Lukas.\tGreta et Lukas.\n")
    options, checkpoint = ExportOptions(tests=tmp_path / "eval", tatoeba=tmp_path), load_checkpoint(mini_checkpoint)
    stages = [{"name": "t", "num_layers": 2, "steps": 7, "prefixes": [16, 32]}]
    checkpoint = replace(checkpoint, about={**checkpoint.about, "started_from": "older", "recipe": {"stages": stages}})
    out = export_checkpoint(checkpoint, tmp_path / "out", options).path
    card, encoder = (out / "README.md").read_text(encoding="utf-8"), SentenceEncoder(out)
    assert "| mean | 100.00 | 100.00 | 100.00 | 100.00 |" in card
    assert encoder.bundle.parity["tatoeba"]["fr"]["xx_en_after"] == 100
    for task, folder in (("tatoeba", "tatoeba"), ("xsr", "xsr"), ("sts", "stsb")):
        assert f"`xsent evaluate {task} DATA/eval/{folder}`" in card
        assert format_table(PROTOCOLS[task](encoder, tmp_path / "eval" / folder).rows()) in card
    assert "Started from the weights of older. Stages:\n\n1. t: " in card
    assert "--columns category,text --train en`" in card and "mean of others" in card
    cut = [as_stored(encoder, truncate_dim=dim) for dim in (16, 32)]
    means = [PROTOCOLS["tatoeba"](form, tmp_path / "eval" / "tatoeba").mean for form in cut]
    by_dimensions = [{"dimensions": dim, **mean} for dim, mean in zip((16, 32), means, strict=True)]
    assert "--truncate-dim DIMENSIONS`" in card and format_table(by_dimensions) in card


@pytest.mark.filterwarnings("ignore::xsent.encoder.LongSentenceWarning")
def test_a_test_that_cannot_be_read_is_left_out(
    mini_checkpoint: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_toy_tests(tmp_path / "eval")
    (tmp_path / "eval" / "sib200" / "en" / "train.tsv").unlink()
    (tmp_path / "eval" / "xsr" / "en-fr.tsv").write_text("C\n")
    out = export_checkpoint(
        load_checkpoint(mini_checkpoint), tmp_path / "out", ExportOptions(tests=tmp_path / "eval")
    ).path
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "xsent evaluate sts" in card and "evaluate xsr" not in card and "classify" not in card
    assert "no en/train.tsv to train a head on" in caplog.text and "en-fr.tsv" in caplog.text


def test_float32_gives_the_trained_vectors(mini_checkpoint: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(mini_checkpoint)
    out = export_checkpoint(checkpoint, tmp_path / "out", ExportOptions(precision="float32", name="other")).path
    encoder = SentenceEncoder(out)
    assert encoder.bundle.name == "other"
    texts = ["Anna, Boris, Clara and David.", "Greta"]
    np.testing.assert_allclose(encoder.encode(texts), CheckpointEncoder(checkpoint).encode(texts), atol=1e-5)


def test_the_same_checkpoint_gives_the_same_bytes(mini_checkpoint: Path, mini_bundle: Path, tmp_path: Path) -> None:
    again = export_checkpoint(load_checkpoint(mini_checkpoint), tmp_path / "again").path
    assert contents(again) == contents(mini_bundle)


FAILURES = [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()]
STEPS = [
    "xsent_export.graph.ExternalFile.write",
    "xsent_export.check.measure_parity",
    "xsent_export.export.verify",
    "xsent.files.atomic.replace_folder",
]


@pytest.mark.parametrize("error", FAILURES, ids=["full-disk", "ctrl-c"])
@pytest.mark.parametrize("step", STEPS)
def test_a_failure_leaves_nothing_behind(
    error: BaseException, step: str, mini_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, mock.Mock(side_effect=error))
    with pytest.raises(type(error)):
        export_checkpoint(load_checkpoint(mini_checkpoint), tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced_unless_asked(mini_checkpoint: Path, mini_bundle: Path, tmp_path: Path) -> None:
    checkpoint = load_checkpoint(mini_checkpoint)
    out = Path(shutil.copytree(mini_bundle, tmp_path / "out"))
    with pytest.raises(BundleError, match="--force"):
        export_checkpoint(checkpoint, out, ExportOptions(name="new"))
    export_checkpoint(checkpoint, out, ExportOptions(name="new", force=True))
    assert SentenceEncoder(out).bundle.name == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    for place, message in ((tmp_path, "is not a bundle"), (tmp_path / "missing" / "out", "no such folder")):
        with pytest.raises(BundleError, match=message):
            export_checkpoint(checkpoint, place, ExportOptions(force=True))
    assert out.exists()


def test_the_command_prints_what_it_measured_or_fails_in_one_line(mini_checkpoint: Path, tmp_path: Path) -> None:
    arguments = [mini_checkpoint, tmp_path / "out", "--int8", "--name", "small"]
    code, out, err = export_command(*arguments)
    assert code == 0 and "P@1 bundle" in out and "P@1 of 9 pairs moves in steps of 5.56" in err
    _, out, _ = export_command(*arguments, "--force", "--json")
    assert set(json.loads(out)["parity"]["languages"]) == {"de", "fr"}
    assert_refused(export_command(tmp_path / "missing", tmp_path / "other"), "missing")
    code, _, err = export_command(mini_checkpoint, tmp_path / "other", "--int8", "--fp32")
    assert code == 2 and "exclude each other" in err
    assert_refused(export_command(mini_checkpoint, tmp_path), "exists; name another folder, or replace it with --force")
