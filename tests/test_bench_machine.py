"""What a machine says of itself, and whether it was quiet: on made-up ones."""

import os
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from xsent.bench import machine
from xsent.bench.machine import CPU, PI_STATE, Watch, environment, processor_name

Times = namedtuple("Times", "user idle iowait steal guest")
COUNT = CPU.replace("cpu[0-9]*", "cpu0/thermal_throttle/core_throttle_count")
GOVERNOR = CPU.replace("[0-9]*", "{}/cpufreq/scaling_governor")


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


class Looks:
    """A machine of two CPUs that says the next of what is given at each look, and the last from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
        self.root, self.said = root, dict[str, list[Any]]()
        quiet = {"getloadavg": (0.0,), "cpu_times": Times(0, 0, 0, 0, 0), "sensors_temperatures": {}, "cpu_freq": None}
        for name, value in quiet.items():
            monkeypatch.setattr(psutil, name, lambda name=name, value=value, **_: self._next(name, value))
        monkeypatch.setattr(os, "times", lambda: self._next("own", (0.0, 0.0, 0.0, 0.0, 0.0)))
        monkeypatch.setattr(psutil, "cpu_count", lambda: 2)
        monkeypatch.setattr(machine, "ROOT", root)

    def _next(self, name: str, otherwise: object) -> object:
        said = self.said.get(name, [otherwise])
        return said.pop(0) if len(said) > 1 else said[0]

    def watch(self, meanwhile: dict[str, str] | None = None, **said: list[Any]) -> Watch:
        """What was seen."""
        self.said = said
        with Watch(seconds=1000) as watch:
            write(self.root, meanwhile or {})
        return watch


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Looks:
    return Looks(monkeypatch, tmp_path)


def test_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert processor_name() and environment()["governor"] == "unknown"  # without proc and sys
    write(tmp_path, {"proc/cpuinfo": "model\t: 85\nmodel name\t: Xeon: 2.5 GHz\n"})
    assert processor_name() == "Xeon: 2.5 GHz"
    write(tmp_path, {"proc/cpuinfo": "Features\t: fp asimd\n\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n"})
    write(tmp_path, {GOVERNOR.format(number): "ondemand\n" for number in (0, 1)})
    found = environment()
    assert (found["processor"], found["governor"]) == ("Raspberry Pi 5 Model B Rev 1.0", "ondemand")
    assert found["threads"]["OMP_NUM_THREADS"] == "3" and found["memory_mib"] > 100 and found["instructions"]
    assert {"python", "xsent", "numpy", "onnxruntime", "sentencepiece"} <= found["versions"].keys()
    assert found["cpus"] >= 1 and found["cpus_of_machine"] >= 1


def test_a_watch_of_a_busy_machine(looks: Looks) -> None:
    # Of 200 seconds of two CPUs other programs took 80 and the host 10; a guest's are in the user's already.
    times = [Times(1000, 5000, 0, 0, 900), Times(1080, 5100, 10, 10, 980)]
    watch = looks.watch(getloadavg=[(0.9, 0.5, 0.4), (2.1, 0.5, 0.4)], cpu_times=times)
    figures = {"load_before": 0.9, "load_most": 2.1, "other_cpus": pytest.approx(80 / 100), "stolen": 10 / 200}
    assert watch.figures() == figures
    warnings = watch.warnings()
    assert warnings[0].startswith("the machine was busy before: load 0.90; figures may be too slow")
    assert "other programs took 0.80 CPUs" in warnings[1] and "for 5% of the time" in warnings[2]
    assert len(warnings) == 3
    # 79 of the 80 seconds were this process's and its children's, in the kernel and out of it.
    own = [(1.0, 2.0, 3.0, 4.0, 0.0), (31.0, 12.0, 33.0, 13.0, 0.0)]
    watch = looks.watch(cpu_times=[Times(1000, 5000, 0, 0, 0), Times(1080, 5120, 0, 0, 0)], own=own)
    assert watch.figures()["other_cpus"] == pytest.approx(0.01) and watch.warnings() == []


def test_a_watch_of_a_hot_machine(looks: Looks) -> None:
    def sensors(*celsius: float) -> dict[str, list[SimpleNamespace]]:
        return {"core": [SimpleNamespace(current=one) for one in celsius]}

    def clocks(*megahertz: float) -> list[SimpleNamespace]:
        return [SimpleNamespace(current=one) for one in megahertz]

    write(looks.root, {COUNT: "5\n", COUNT.replace("cpu0", "cpu1"): "0\n"})
    watch = looks.watch(
        {COUNT: "7\n", COUNT.replace("cpu0", "cpu1"): "1\n"},
        sensors_temperatures=[sensors(61.25, 50), sensors(84.0)],
        cpu_freq=[clocks(2400, 600), clocks(1500, 600)],
    )
    hot = {"celsius_most": 84, "mhz_least": 1500, "mhz_most": 2400, "throttled": 3}
    assert watch.figures() == {"load_before": 0, "load_most": 0, **hot}
    (warning,) = watch.warnings()
    assert warning.startswith("the machine slowed itself down (heat or power): seen 3 times")


def test_a_raspberry_pi_that_is_slowed_down(looks: Looks) -> None:
    # The upper bits say what has been since the start; only the lower ones are of now.
    write(looks.root, {PI_STATE: "e0000\n"})
    assert looks.watch().warnings() == []
    assert looks.watch({PI_STATE: "e0008\n"}).figures()["throttled"] == 1


def test_a_watch_looks_while_the_block_runs(looks: Looks) -> None:
    looks.said = {"getloadavg": [(0.1,), (3.0,), (0.2,)]}
    with Watch(seconds=0.001) as watch:
        while watch.figures()["load_most"] < 3:
            pass
    assert watch.figures() == {"load_before": 0.1, "load_most": 3.0}
