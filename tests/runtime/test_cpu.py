"""Which instructions a processor says it has."""

import json
import platform
from pathlib import Path

import pytest

from xsent.bundle import Golden, parse_manifest
from xsent.cpu import instruction_set
from xsent.errors import BundleError, DataError
from xsent_export.check import check_processor, tolerances
from xsent_export.options import Form


@pytest.mark.parametrize(
    ("machine", "cpuinfo", "name"),
    [
        ("x86_64", "flags\t\t: fpu sse2 avx2 avx512f avx512_vnni", "avx512_vnni"),
        ("AMD64", "flags\t\t: fpu sse2 avx2 avx_vnni", "avx_vnni"),
        ("x86_64", "flags\t\t: fpu sse2 avx2", "avx2"),
        ("x86_64", "flags\t\t: fpu sse2", "x86"),
        ("aarch64", "Features\t: fp asimd asimddp", "arm64_dot"),
        ("aarch64", "Features\t: fp asimd", "arm64"),
        ("riscv64", "isa\t: rv64", "riscv64"),
    ],
)
def test_it_is_named_by_the_best(
    machine: str, cpuinfo: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: avx512_vnni\n{cpuinfo}\n")
    assert instruction_set(tmp_path / "cpuinfo") == name
    without = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm64"}  # without /proc it is the least
    assert instruction_set(tmp_path / "none") == without.get(machine, machine)


def test_processors_that_are_not_named_and_bundles_that_round_more_may_differ_more() -> None:
    allowed = tolerances(Form(2, 100, target="vnni"), 1.0)
    assert allowed == {"avx512_vnni": 0.002, "avx_vnni": 0.002, "other": 0.02}
    golden = Golden((), (), allowed)
    assert (golden.allowed("avx_vnni"), golden.allowed("avx2")) == (0.002, 0.02)
    assert tolerances(Form(2, 100, "float32"), 1.0) == {"other": 0.0001}
    allowed = tolerances(Form(2, 100, target="vnni"), 0.995)  # noise of 0.1 of a vector, six times that
    assert allowed == {"avx512_vnni": 0.06, "avx_vnni": 0.06, "other": 0.06}
    assert tolerances(Form(0, 100), 0.995)["avx2"] == 0.002  # without layers nothing adds up


def test_old_and_new_tolerances_are_read(mini_bundle: Path) -> None:
    raw = json.loads((mini_bundle / "xsent.json").read_bytes())
    assert parse_manifest(raw, mini_bundle).golden.tolerance["avx2"] < raw["golden"]["tolerance"]["other"]
    raw["golden"]["tolerance"] = 0.01
    assert parse_manifest(raw, mini_bundle).golden.tolerance == {"other": 0.01}
    raw["golden"]["tolerance"] = {"avx2": 0.01}
    with pytest.raises(BundleError, match="no 'other'"):
        parse_manifest(raw, mini_bundle)


def test_a_target_that_saturates_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    for instructions in ("avx512_vnni", "avx_vnni", "arm64", "avx2"):
        monkeypatch.setattr("xsent_export.check.instruction_set", lambda name=instructions: name)
        check_processor("portable" if instructions == "avx2" else "arm64")
    with pytest.raises(DataError, match=r"--target vnni cannot be measured here: 8-bit sums saturate .*avx2"):
        check_processor("vnni")
