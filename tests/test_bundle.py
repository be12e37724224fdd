"""Opening bundles, healthy and damaged."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from xsent.bundle import Bundle, compute_fingerprint, file_digest
from xsent.errors import BundleError
from xsent.manifest import Trained

Edit = Callable[[dict[str, Any]], object]


@pytest.fixture
def bundle(mini_bundle: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))


def edit(bundle: Path, change: Edit) -> None:
    manifest = json.loads((bundle / "xsent.json").read_text())
    change(manifest)
    (bundle / "xsent.json").write_text(json.dumps(manifest))


def refusal(bundle: Path) -> str:
    with pytest.raises(BundleError) as caught:
        Bundle.open(bundle)
    message = str(caught.value)
    assert str(bundle) in message
    assert "\n" not in message
    return message


def flip_last_byte(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


def test_fields_are_typed(mini_bundle: Path) -> None:
    bundle = Bundle.open(mini_bundle)
    assert bundle.path == mini_bundle
    assert isinstance(bundle.languages, tuple)
    assert bundle.dim == len(bundle.golden.vectors[0])
    assert bundle.files["model.onnx"].bytes == (mini_bundle / "model.onnx").stat().st_size


def test_verify_accepts_a_healthy_bundle(mini_bundle: Path) -> None:
    Bundle.open(str(mini_bundle)).verify()


def test_missing_folder(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nothing")


def test_folder_without_manifest(tmp_path: Path) -> None:
    assert "no xsent.json" in refusal(tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe"])
def test_manifest_that_is_not_json(bundle: Path, content: bytes) -> None:
    (bundle / "xsent.json").write_bytes(content)
    assert "not JSON" in refusal(bundle)


def test_manifest_that_is_no_object(bundle: Path) -> None:
    (bundle / "xsent.json").write_text("[]")
    assert "object" in refusal(bundle)


@pytest.mark.parametrize("version", [3, 0, "2", True, None])
def test_unknown_version_names_the_known(bundle: Path, version: object) -> None:
    edit(bundle, lambda manifest: manifest.update(format_version=version))
    message = refusal(bundle)
    assert f"format_version {version!r} is unknown, this xsent reads 2" in message


def test_a_bundle_of_the_old_encoder_says_what_to_do(bundle: Path) -> None:
    edit(bundle, lambda manifest: manifest.update(format_version=1, network={"norm": "pre"}))
    message = refusal(bundle)
    assert "format_version 1 is from before the encoder was a BERT, this xsent reads 2" in message
    assert message.endswith("take the built-in model, or train yours again and export it")


def test_what_may_be_cut_out_and_the_space_are_optional(bundle: Path) -> None:
    edit(bundle, lambda manifest: [manifest.pop(key, None) for key in ("trained", "space")])
    opened = Bundle.open(bundle)
    assert opened.trained == Trained((), ()) and opened.space is None
    edit(bundle, lambda manifest: manifest.update(trained={"prefixes": [8, 16], "layers": [0]}, space="a/b"))
    opened = Bundle.open(bundle)
    assert opened.trained == Trained(prefixes=(8, 16), layers=(0,)) and opened.space == "a/b"
    edit(bundle, lambda manifest: manifest.update(space=None))
    assert Bundle.open(bundle).space is None


@pytest.mark.parametrize("key", ["name", "dim", "languages", "files", "golden", "fingerprint", "network"])
def test_missing_field_is_named(bundle: Path, key: str) -> None:
    edit(bundle, lambda manifest: manifest.pop(key))
    assert f"no '{key}'" in refusal(bundle)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dim", "32"),
        ("dim", 32.0),
        ("dim", True),
        ("dim", 0),
        ("num_layers", -1),
        ("languages", "en"),
        ("languages", [1]),
        ("space", 1),
        ("trained", []),
    ],
)
def test_field_of_the_wrong_type_is_named(bundle: Path, key: str, value: object) -> None:
    edit(bundle, lambda manifest: manifest.update({key: value}))
    assert f"'{key}'" in refusal(bundle)


def test_golden_vectors_must_fit(bundle: Path) -> None:
    edit(bundle, lambda manifest: manifest["golden"]["vectors"][0].pop())
    assert "golden" in refusal(bundle)


@pytest.mark.parametrize("name", ["sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin"])
def test_missing_file_is_named(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    assert f"{name}: missing" in refusal(bundle)


@pytest.mark.parametrize("name", ["sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin"])
def test_file_that_the_manifest_does_not_list(bundle: Path, name: str) -> None:
    edit(bundle, lambda manifest: manifest["files"].pop(name))
    assert name in refusal(bundle)


def test_cut_file_is_named_with_both_sizes(bundle: Path) -> None:
    table = bundle / "embeddings.bin"
    size = table.stat().st_size
    table.write_bytes(table.read_bytes()[:-1])
    message = refusal(bundle)
    assert f"{size:,}" in message
    assert f"{size - 1:,}" in message


@pytest.mark.parametrize("name", ["sentencepiece.model", "model.onnx"])
def test_damaged_small_file_is_found_at_open(bundle: Path, name: str) -> None:
    flip_last_byte(bundle / name)
    assert f"{name}: damaged" in refusal(bundle)


@pytest.mark.parametrize("name", ["embeddings.bin", "weights.bin"])
def test_damaged_big_file_is_found_by_verify(bundle: Path, name: str) -> None:
    flip_last_byte(bundle / name)
    with pytest.raises(BundleError, match=f"{name}: damaged"):
        Bundle.open(bundle).verify()


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a/../../x", "C:\\x", "a\\..\\..\\x", "\\\\host\\x"])
def test_file_names_stay_inside(bundle: Path, name: str) -> None:
    edit(bundle, lambda manifest: manifest["files"].update({name: {"sha256": "0", "bytes": 0}}))
    assert "outside" in refusal(bundle)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(max_length=manifest["max_length"] + 1),
        lambda manifest: manifest["network"].update(heads=1),
    ],
)
def test_fingerprint_must_match(bundle: Path, change: Edit) -> None:
    edit(bundle, change)
    assert "fingerprint" in refusal(bundle)


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(precision="float32"),
        lambda manifest: manifest.update(dim=7),
        lambda manifest: manifest["network"].update(heads=1),
        lambda manifest: manifest["network"]["tensors"]["table"].update(offset=64),
        lambda manifest: manifest["files"]["embeddings.bin"].update(sha256="0"),
        lambda manifest: manifest["files"]["sentencepiece.model"].update(sha256="0"),
    ],
)
def test_fingerprint_follows_what_moves_vectors(mini_bundle: Path, change: Edit) -> None:
    manifest = json.loads((mini_bundle / "xsent.json").read_text())
    before = compute_fingerprint(manifest)
    change(manifest)
    assert compute_fingerprint(manifest) != before


def test_fingerprint_ignores_names(mini_bundle: Path) -> None:
    manifest = json.loads((mini_bundle / "xsent.json").read_text())
    before = compute_fingerprint(manifest)
    manifest.update(name="other", languages=["xx"])
    assert compute_fingerprint(manifest) == before == manifest["fingerprint"]
    assert len(before) == 16


def test_file_digest(tmp_path: Path) -> None:
    (tmp_path / "abc").write_bytes(b"abc")
    digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2
    assert file_digest(tmp_path / "abc") == digest
