"""Which instructions a processor says it has."""

import platform
from pathlib import Path

import pytest

from xsent.bundle import Golden
from xsent.cpu import instruction_set
from xsent_export.options import BundleSpec
from xsent_export.parity import tolerances


def test_instruction_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, cpuinfo, name in [
        ("x86_64", "flags\t\t: fpu sse2 avx2 avx512f avx512_vnni", "avx512_vnni"),
        ("AMD64", "flags\t\t: fpu sse2 avx2 avx_vnni", "avx_vnni"),
        ("x86_64", "flags\t\t: fpu sse2 avx2", "avx2"),
        ("x86_64", "flags\t\t: fpu sse2", "x86"),
        ("aarch64", "Features\t: fp asimd asimddp", "arm64_dot"),
        ("aarch64", "Features\t: fp asimd", "arm64"),
        ("riscv64", "isa\t: rv64", "riscv64"),
    ]:
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: avx512_vnni\n{cpuinfo}\n")
        assert instruction_set(tmp_path / "cpuinfo") == name
        without = {"x86_64": "x86", "AMD64": "x86", "aarch64": "arm64"}  # without /proc it is the least
        assert instruction_set(tmp_path / "none") == without.get(machine, machine)


def test_processors_that_are_not_named_and_bundles_that_round_more_may_differ_more() -> None:
    allowed = tolerances(BundleSpec(2, 100), 1.0)
    assert len(allowed) == 7
    golden = Golden((), (), allowed)
    assert (golden.allowed("avx_vnni"), golden.allowed("avx2"), golden.allowed("riscv")) == (0.002, 0.002, 0.02)
    assert tolerances(BundleSpec(2, 100, "float32"), 1.0) == {"other": 0.0001}
    allowed = tolerances(BundleSpec(2, 100), 0.995)  # noise of 0.1 of a vector, six times that
    assert set(allowed.values()) == {0.06}
    assert tolerances(BundleSpec(0, 100), 0.995)["avx2"] == 0.002  # without layers nothing adds up
