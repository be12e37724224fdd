"""What a machine says of itself, and whether it was quiet: on made-up ones."""

import os
from collections import namedtuple
from collections.abc import Callable
from itertools import chain, repeat
from pathlib import Path
from unittest import mock

import psutil  # type: ignore[import-untyped]
import pytest
from commands import write_files

from xsent_bench import machine
from xsent_bench.machine import CPU, PI_STATE, Watch, environment

Times = namedtuple("Times", "user idle iowait steal guest")
COUNT = CPU.replace("cpu[0-9]*", "cpu0/thermal_throttle/core_throttle_count")
GOVERNOR = CPU.replace("[0-9]*", "{}/cpufreq/scaling_governor")


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Watch]:
    """What watched a machine of two CPUs, which says the first of what is given before, then the other."""
    monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
    monkeypatch.setattr(machine, "ROOT", tmp_path)

    def watch(meanwhile: dict[str, str] | None = None, **said: list[object]) -> Watch:
        for name, quiet in {"getloadavg": (0.0,), "cpu_times": Times(0, 0, 0, 0, 0), "times": (0.0,) * 5}.items():
            first, *later = said.get(name, [quiet, quiet])
            says = mock.Mock(side_effect=chain([first], repeat(later[-1])))
            monkeypatch.setattr(os if name == "times" else psutil, name, says)
        watch = Watch()
        write_files(tmp_path, meanwhile or {})
        return watch

    return watch


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment()["processor"] and environment()["governor"] == "unknown"  # without proc and sys
    write_files(tmp_path, {"proc/cpuinfo": "Features\t: fp asimd\n\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"})
    write_files(tmp_path, {GOVERNOR.format(number): "ondemand\n" for number in (0, 1)})
    found = environment()
    assert (found["processor"], found["governor"]) == ("Raspberry Pi 5 Model B Rev 1.0", "ondemand")
    assert found["threads"]["OMP_NUM_THREADS"] == "3" and found["memory_mib"] > 100 and found["instructions"]
    assert {"python", "xsent", "numpy", "onnxruntime", "sentencepiece"} <= found["versions"].keys()
    assert found["cpus"] >= 1 and found["cpus_of_machine"] >= 1


def test_a_machine_is_busy_with_others_or_hot(watched: Callable[..., Watch], tmp_path: Path) -> None:
    # Of 200 seconds of two CPUs other programs took 80 and the host 10; a guest's are in the user's already.
    times = [Times(1000, 5000, 0, 0, 900), Times(1080, 5100, 10, 10, 980)]
    busy = watched(getloadavg=[(0.9, 0.5, 0.4), (2.1, 0.5, 0.4)], cpu_times=times)
    figures = {"load_before": 0.9, "throttled": 0, "other_cpus": pytest.approx(80 / 100), "stolen": 10 / 200}
    assert busy.figures() == figures
    warnings = busy.warnings()
    assert warnings[0].startswith("the machine was busy before: load 0.90; figures may be too slow")
    assert "other programs took 0.80 CPUs" in warnings[1] and "waiting 5% of the time" in warnings[2]
    assert len(warnings) == 3
    # 79 of the 80 seconds were this process's and its children's, in the kernel and out of it.
    own = [(1.0, 2.0, 3.0, 4.0, 0.0), (31.0, 12.0, 33.0, 13.0, 0.0)]
    ours = watched(cpu_times=[Times(1000, 5000, 0, 0, 0), Times(1080, 5120, 0, 0, 0)], times=own)
    assert ours.figures()["other_cpus"] == pytest.approx(0.01) and ours.warnings() == []
    counts = [COUNT, COUNT.replace("cpu0", "cpu1")]
    write_files(tmp_path, dict(zip(counts, "50", strict=True)))
    hot = watched(dict(zip(counts, "71", strict=True)))
    assert hot.figures() == {"load_before": 0, "throttled": 3}
    (warning,) = hot.warnings()
    assert warning.startswith("the machine slowed down because of heat or power: 3 times")
    # Of a Raspberry Pi: the upper bits say what has been since the start, the lower ones what is now.
    write_files(tmp_path, {PI_STATE: "e0000\n"})
    assert watched().warnings() == []
    assert watched({PI_STATE: "f0000\n"}).figures()["throttled"] == 1
    assert watched({PI_STATE: "f0008\n"}).figures()["throttled"] == 1
