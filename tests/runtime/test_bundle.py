"""Bundles, healthy and damaged: opened, verified, and whether they still give their golden vectors."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import Runner, assert_refused, edit_json, flip_byte
from indexes import overwrite

from xsent.bundle import Bundle, builtin_path, file_digest
from xsent.encoder import SentenceEncoder
from xsent.errors import BundleError
from xsent.search.lines import build_index
from xsent.verification import verify

Edit = Callable[[dict[str, Any]], object]
NAMES = ["sentencepiece.model", "model.onnx", "embeddings.bin", "weights.bin"]
FILE = {"sha256": "0", "bytes": 0}
STRANGE = [
    *("../x", "/etc/passwd", "a/../../x", "C:\\x", "a\\..\\..\\x", "\\\\host\\x"),
    *("x" * 5000, "é" * 128, "a\0b", "\x1b[2J", "\ud800"),
]


@pytest.fixture
def bundle(mini_bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(mini_bundle, tmp_path / "bundle"))


def setting(**fields: object) -> Edit:
    return lambda manifest: manifest.update(fields)


def refusal(bundle: Path, work: Callable[[Path], object] = Bundle.open) -> str:
    with pytest.raises(BundleError) as caught:
        work(bundle)
    message = str(caught.value)
    assert str(bundle) in message and "\n" not in message
    return message


def test_what_is_no_bundle(tmp_path: Path) -> None:
    assert "no such folder" in refusal(tmp_path / "nothing")
    assert "no xsent.json" in refusal(tmp_path)
    (tmp_path / "xsent.json").write_bytes(b"")
    assert "xsent.json: damaged" in refusal(tmp_path)


def test_a_manifest_that_cannot_be(bundle: Path) -> None:
    whole = (bundle / "xsent.json").read_bytes()
    unknown = "format_version {!r} is unknown, this xsent reads 2, 3 and 4"
    needed = ["name", "dim", "languages", "files", "golden", "fingerprint", "network"]
    for change, message in [
        *((setting(format_version=version), unknown.format(version)) for version in (5, 1, "2", True, None)),
        *((lambda manifest, key=key: manifest.pop(key), f"no '{key}'") for key in needed),
        (setting(dim="32"), "'dim' is of type str, expected int"),
        (setting(dim=True), "'dim' is of type bool, expected int"),
        (setting(dim=0), "'dim' is 0, expected at least 1"),
        (setting(num_layers=-1), "'num_layers' is -1, expected at least 0"),
        (setting(languages="en"), "'languages' is of type str, expected list"),
        (setting(languages=[1]), "'languages' is of type int, expected str"),
        (setting(space=1), "'space' is of type int, expected str"),
        (setting(trained=[]), "'trained' is of type list, expected dict"),
        (lambda manifest: manifest["golden"]["vectors"][0].pop(), "golden"),
        (lambda manifest: manifest["golden"].pop("tolerance"), "golden: no 'tolerance'"),
        (lambda manifest: manifest["golden"]["tolerance"].pop("other"), "no 'other'"),
        *((lambda manifest, name=name: manifest["files"].update({name: FILE}), "is not a valid") for name in STRANGE),
        (lambda manifest: manifest["network"].update(norm_eps=10**400), "'norm_eps' is of type int, expected float"),
        *((lambda manifest, name=name: manifest["files"].pop(name), f"no '{name}'") for name in NAMES),
        (lambda manifest: manifest.update(max_length=manifest["max_length"] + 1), "fingerprint"),
        (setting(precision="float32"), "fingerprint"),
        (lambda manifest: manifest["network"].update(heads=1), "fingerprint"),
        (lambda manifest: manifest["network"]["tensors"]["table"].update(offset=64), "fingerprint"),
    ]:
        manifest = json.loads(whole)
        change(manifest)
        (bundle / "xsent.json").write_text(json.dumps(manifest))
        assert message in refusal(bundle)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_named(bundle: Path, name: str) -> None:
    whole = (bundle / name).read_bytes()
    flip_byte(bundle / name)
    small = name in NAMES[:2]  # the large ones are read whole by verify alone
    for work in (Bundle.open, verify) if small else (lambda path: Bundle.open(path).verify(), verify):
        assert f"{name}: damaged" in refusal(bundle, work)
    files = json.loads((bundle / "xsent.json").read_bytes())["files"]
    files[name]["sha256"] = file_digest(bundle / name)  # damaged on purpose
    edit_json(bundle / "xsent.json", files=files)
    assert "fingerprint" in refusal(bundle)
    (bundle / name).write_bytes(whole[:-1])
    assert f"{name}: {len(whole) - 1:,} bytes, expected {len(whole):,}" in refusal(bundle)
    (bundle / name).unlink()
    assert f"{name}: missing" in refusal(bundle)


def test_golden_vectors_that_differ_or_tell_nothing(bundle: Path) -> None:
    golden = json.loads((bundle / "xsent.json").read_bytes())["golden"]
    first, *rest = golden["vectors"]
    nan = float("nan")
    for fields, message in [
        *(({"vectors": [[wrong, *first[1:]], *rest]}, "golden vectors differ by") for wrong in (9.0, nan)),
        *(({"tolerance": {"other": allowed}}, "prove nothing") for allowed in (9.0, -1.0, nan, float("inf"))),
        ({"sentences": [], "vectors": []}, "0 golden vectors"),
        *(({"sentences": [text], "vectors": [[0.0] * 32]}, "golden sentence 1") for text in ("\ud800", "Anna " * 99)),
    ]:
        edit_json(bundle / "xsent.json", golden=golden | fields)
        assert message in refusal(bundle, verify)


def test_the_command_verifies_bundles_and_indexes(run: Runner, mini_bundle: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    for backend in ("onnx", "numpy"):
        found = json.loads(run("verify", "--backend", backend, "--json")[1])
        assert found["difference"] <= found["tolerance"]
        assert (found["path"], found["files"], found["sentences"]) == (str(builtin_path()), 11, 7)
    code, out, _ = run("verify", mini_bundle)
    assert code == 0 and re.search(r"difference +[\d.e-]{1,7}\n", out)
    unknown = "backend 'abacus' is not available; available: numpy, onnx, openvino"
    assert_refused(run("verify", "--backend", "abacus"), unknown)
    index = tmp_path / "notes.index"
    build_index(index, ["Anna", "", "Boris"], SentenceEncoder(mini_bundle))
    code, out, _ = run("verify", index)
    assert code == 0 and "rows         2" in out
    overwrite(index / "vectors.f16", 0, b"\1")
    assert_refused(run("verify", index), "damaged")
