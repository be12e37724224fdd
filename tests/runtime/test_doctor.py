"""What `xsent doctor` says of machines, real and made up."""

import json
import re
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from unittest import mock

import pytest
from commands import Runner, assert_refused, write_files

from xsent.bundle import Bundle, builtin_path
from xsent.cli import doctor
from xsent.cli.doctor import Finding

WORKS = re.compile(
    r"right to \S+; [\d.]+ ms for a sentence of \d+ tokens, [\d,.]+ per second on one thread; "
    r"[\d.]+ ms with --layers 0; [\d.]+ ms with --layers 1"
)


def test_chips(builtin: Bundle, tmp_path: Path) -> None:
    pi = "processor\t: 0\nFeatures\t: fp asimd {}\n\nModel\t\t: Raspberry Pi {} Model B Rev 1.0\n"
    pi_4, pi_5 = pi.format("crc32", 4), pi.format("asimddp", 5)
    pc = "model name\t: Some CPU\nflags\t\t: {}\n"
    server, laptop = (pc.format(flags) for flags in ("avx2 avx512f avx512_vnni", "avx2"))
    museum = "model name\t: avx2\nflags\t\t: sse2\n"  # a name is no flag
    for machine, cpuinfo, target, status, text in [
        ("aarch64", None, "portable", "good", "ARM without 8-bit dot products"),
        ("x86_64", None, "portable", "warning", "x86: not tested"),
        ("aarch64", pi_4, "portable", "good", "Raspberry Pi 4 Model B Rev 1.0; ARM without 8-bit dot products"),
        ("aarch64", pi_4, "arm64", "good", "int8 saves memory more than time"),
        ("aarch64", pi_5, "portable", "good", "Raspberry Pi 5 Model B Rev 1.0; ARM with 8-bit dot products"),
        ("x86_64", server, "vnni", "good", "Some CPU; AVX-512 with 8-bit dot products"),
        ("AMD64", pc.format("avx2 avx_vnni"), "portable", "good", "Some CPU; AVX2 with 8-bit dot products"),
        ("x86_64", laptop, "portable", "good", "Some CPU; AVX2 without 8-bit dot products"),
        ("x86_64", laptop, "vnni", "problem", "made for vnni, .* overflow here; export it again"),
        ("x86_64", museum, "portable", "warning", "avx2; x86: not tested"),
        ("riscv64", "isa\t: rv64", "portable", "warning", "riscv64: not tested"),
    ]:
        file = tmp_path / "cpuinfo"
        file.unlink(missing_ok=True)  # as on other systems
        if cpuinfo is not None:
            file.write_text(cpuinfo)
        with mock.patch("platform.machine", return_value=machine):
            finding = doctor.examine_processor(replace(builtin, target=target), file)
        assert finding.status == status and re.search(text, finding.text)


def test_versions_memory_bits_and_threads(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(doctor, "version", lambda _: "1.19.0")
    assert doctor.examine_onnxruntime() == Finding("onnxruntime", "good", "1.19.0")
    monkeypatch.setattr(doctor, "version", mock.Mock(side_effect=PackageNotFoundError))
    assert doctor.examine_onnxruntime() == Finding("onnxruntime", "good", "version not known")
    file = tmp_path / "meminfo"
    assert doctor.examine_memory(file) == Finding("memory", "good", "not known on this system")
    file.write_text("MemTotal: 900000 kB\nMemAvailable:  102400 kB\n")
    low = Finding("memory", "warning", "100 MiB free, 150 are safe; close other programs")
    assert doctor.examine_memory(file) == low
    file.write_text("MemAvailable: 2048000 kB\n")
    assert doctor.examine_memory(file) == Finding("memory", "good", "2,000 MiB free")
    assert (doctor.examine_system(64).status, doctor.examine_system(32).status) == ("good", "warning")
    assert "onnxruntime needs 64 bits; the numpy backend does not" in doctor.examine_system(32).text
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    write_files(tmp_path, {"proc/self/cgroup": "0::/box\n", "sys/fs/cgroup/box/cpu.max": "100000 100000\n"})
    text = doctor.examine_threads(tmp_path).text
    assert text.startswith("1 of 8 CPUs may be used (an affinity or a container's quota keeps the others)")


@pytest.mark.parametrize(
    ("load", "status", "text"),
    [
        (0.0, "good", "0.0 programs at work on 4 CPUs, the mean of the last minute"),
        (1.9, "good", "1.9 programs at work"),
        (2.0, "warning", "2.0 programs .* of the last minute: busy, so the times below are too long; try again when"),
        (31.5, "warning", "31.5 programs .* busy"),
        (None, "good", "not known on this system"),
    ],
)
def test_a_busy_machine(monkeypatch: pytest.MonkeyPatch, load: float | None, status: str, text: str) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    answer = {"side_effect": OSError} if load is None else {"return_value": (load, 9.0, 9.0)}
    monkeypatch.setattr("os.getloadavg", mock.Mock(**answer))
    finding = doctor.examine_load()
    assert (finding.subject, finding.status) == ("load", status) and re.match(text, finding.text)


def test_backends_that_fail_or_are_missing(builtin: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    finding = doctor.examine_encoding(replace(builtin, path=tmp_path / "gone"), "onnx")
    assert finding.status == "problem" and "gone: no such folder" in finding.text and "\n" not in finding.text
    monkeypatch.setattr(doctor, "_CHILD", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    killed = Finding("onnx backend", "problem", "killed by SIGILL; use the numpy backend meanwhile")
    assert doctor.examine_encoding(builtin, "onnx") == killed
    monkeypatch.setattr(doctor, "_CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(doctor, "PATIENCE", 0.1)
    late = Finding("numpy backend", "warning", "no vector within 0.1 seconds")
    assert doctor.examine_encoding(builtin, "numpy") == late
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr(doctor, "examine_encoding", lambda bundle, backend: Finding(backend, "good", ""))
    findings = {finding.subject: finding for finding in doctor.examine(builtin)}
    assert list(findings) == ["system", "processor", "threads", "memory", "onnxruntime", "load", "numpy"]
    missing = findings["onnxruntime"]
    assert missing.status == "warning" and "not installed: numpy encodes instead" in missing.text


def test_the_trial_measures_each_depth(
    capsys: pytest.CaptureFixture[str], deep_bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(doctor, "_SECONDS", 0.05)
    doctor.run_trial(str(deep_bundle), "onnx")
    measured = json.loads(capsys.readouterr().out)
    assert set(measured) == {"difference", "tokens", "milliseconds", "depths", "mebibytes"}
    assert measured["tokens"] > 10 and measured["milliseconds"] > 0


def test_no_module_of_the_current_folder_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("statistics.py").write_text("raise SystemExit(7)")
    assert doctor.examine_encoding(Bundle.open(builtin_path()), "numpy").status == "good"


def test_the_command_prints_a_line_a_finding(
    run: Runner, deep_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr("os.getloadavg", lambda: (0.2, 9.0, 9.0))
    code, out, _ = run("doctor", deep_bundle)
    *lines, last = out.splitlines()
    assert [line.split()[1] for line in lines] == "system processor threads memory onnxruntime load onnx numpy".split()
    assert all(line.split()[0] in ("good", "warning") for line in lines)
    assert all(line.startswith("good") and WORKS.search(line) for line in lines[-2:])
    assert (code, last) == (0, "xsent works here")
    assert_refused(run("doctor", tmp_path / "none"), "no such folder")
    monkeypatch.setattr(doctor, "examine", lambda bundle: [Finding("memory", "problem", "none")])
    assert run("doctor") == (1, "problem  memory         none\n1 problem\n", "")
    finding = {"subject": "memory", "status": "problem", "text": "none"}
    assert json.loads(run("doctor", "--json")[1]) == {"problems": 1, "findings": [finding]}
