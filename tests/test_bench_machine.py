"""What a machine says of itself, and whether it was quiet: on made-up ones."""

import os
from pathlib import Path

import pytest

from xsent.bench.machine import Watch, environment, processor

CPU = "sys/devices/system/cpu"
FREQUENCY = f"{CPU}/cpu0/cpufreq"
PI_STATE = "sys/devices/platform/soc/soc:firmware/get_throttled"


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def stat(busy: int, idle: int, stolen: int = 0) -> str:
    """Seconds of two CPUs since the system started, as /proc/stat has them."""
    ticks = os.sysconf("SC_CLK_TCK")
    line = f"{busy * ticks} 0 0 {idle * ticks} 0 0 0 {stolen * ticks} 0 0"
    return f"cpu  {line}\ncpu0 {line}\ncpu1 {line}\nintr 1 2 3\n"


def watched(root: Path, before: dict[str, str], meanwhile: dict[str, str]) -> Watch:
    write(root, before)
    with Watch(root, seconds=1000) as watch:
        write(root, meanwhile)
    return watch


@pytest.fixture
def no_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "times", lambda: (0.0, 0.0, 0.0, 0.0, 0.0))


def test_the_environment_of_a_raspberry_pi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    write(
        tmp_path,
        {
            "proc/cpuinfo": "Features\t: fp asimd asimddp\n\nModel\t\t: Raspberry Pi 5 Model B Rev 1.0\n",
            "proc/meminfo": "MemTotal:        4147712 kB\nMemFree: 1 kB\n",
            f"{FREQUENCY}/scaling_governor": "ondemand\n",
            f"{CPU}/cpu1/cpufreq/scaling_governor": "ondemand\n",
        },
    )
    found = environment(tmp_path)
    assert found["processor"] == "Raspberry Pi 5 Model B Rev 1.0"
    assert (found["instructions"], found["memory_mib"], found["governor"]) == ("arm64_dot", 4050, "ondemand")
    assert found["threads"]["OMP_NUM_THREADS"] == "3"
    assert {"python", "xsent", "numpy", "onnxruntime", "sentencepiece"} <= found["versions"].keys()
    assert found["cpus"] >= 1 and found["cpus_of_machine"] >= 1


def test_the_environment_without_proc_and_sys(tmp_path: Path) -> None:
    found = environment(tmp_path)
    assert found["processor"] and found["cpus"] >= 1
    assert (found["memory_mib"], found["governor"]) == (0, "unknown")
    watch = watched(tmp_path, {}, {})
    assert watch.figures() == {} and watch.warnings() == []
    write(tmp_path, {"proc/cpuinfo": "model\t: 85\nmodel name\t: Xeon: 2.5 GHz\n"})
    assert processor(tmp_path) == "Xeon: 2.5 GHz"


@pytest.mark.usefixtures("no_own_time")
def test_a_watch_of_a_busy_machine(tmp_path: Path) -> None:
    # Of 200 seconds of two CPUs each 80 were other programs' and 10 the host's.
    watch = watched(
        tmp_path,
        {"proc/loadavg": "0.90 0.5 0.4 1/99 7\n", "proc/stat": stat(1000, 5000)},
        {"proc/loadavg": "2.10 0.5 0.4 1/99 7\n", "proc/stat": stat(1080, 5110, 10)},
    )
    figures = watch.figures()
    assert (figures["load_before"], figures["load_most"]) == (0.9, 2.1)
    assert figures["other_cpus"] == pytest.approx(80 / 100)
    assert figures["stolen"] == pytest.approx(10 / 200)
    warnings = watch.warnings()
    assert warnings[0].startswith("the machine was busy before: load 0.90; figures may be too slow")
    assert "other programs took 0.80 CPUs" in warnings[1] and "for 5% of the time" in warnings[2]
    assert len(warnings) == 3


def test_our_own_work_is_no_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # 79 of the 80 seconds were this process's and its children's, in the kernel and out of it.
    times = iter([(1.0, 2.0, 3.0, 4.0, 0.0), (31.0, 12.0, 33.0, 13.0, 0.0)])
    monkeypatch.setattr(os, "times", lambda: next(times))
    watch = watched(tmp_path, {"proc/stat": stat(1000, 5000)}, {"proc/stat": stat(1080, 5120)})
    assert watch.figures()["other_cpus"] == pytest.approx(0.01)
    assert watch.warnings() == []


def test_a_watch_of_a_hot_machine(tmp_path: Path) -> None:
    counts = [f"{CPU}/cpu{i}/thermal_throttle/core_throttle_count" for i in range(2)]
    watch = watched(
        tmp_path,
        {
            f"{FREQUENCY}/scaling_cur_freq": "2400000\n",
            f"{CPU}/cpu1/cpufreq/scaling_cur_freq": "600000\n",
            "sys/class/thermal/thermal_zone0/temp": "61250\n",
            "sys/class/thermal/thermal_zone1/temp": "broken\n",
            counts[0]: "5\n",
            counts[1]: "0\n",
        },
        {
            f"{FREQUENCY}/scaling_cur_freq": "1500000\n",
            "sys/class/thermal/thermal_zone0/temp": "84000\n",
            counts[0]: "7\n",
            counts[1]: "1\n",
        },
    )
    assert watch.figures() == {"celsius_most": 84, "mhz_least": 1500, "mhz_most": 2400, "throttled": 3}
    (warning,) = watch.warnings()
    assert warning.startswith("the machine slowed itself down (heat or power): seen 3 times")


def test_a_raspberry_pi_that_is_slowed_down(tmp_path: Path) -> None:
    # The upper bits say what has been since the start; only the lower ones are of now.
    assert watched(tmp_path, {PI_STATE: "e0000\n"}, {}).warnings() == []
    assert watched(tmp_path, {PI_STATE: "e0000\n"}, {PI_STATE: "e0008\n"}).figures() == {"throttled": 1}


def test_a_watch_looks_while_the_block_runs(tmp_path: Path) -> None:
    write(tmp_path, {"proc/loadavg": "0.1 0 0\n"})
    with Watch(tmp_path, seconds=0.001) as watch:
        write(tmp_path, {"proc/loadavg.new": "3.0 0 0\n"})
        (tmp_path / "proc/loadavg.new").rename(tmp_path / "proc/loadavg")
        while "load_most" not in watch.figures() or watch.figures()["load_most"] < 3:
            pass
        write(tmp_path, {"proc/loadavg.new": "0.2 0 0\n"})
        (tmp_path / "proc/loadavg.new").rename(tmp_path / "proc/loadavg")
    assert watch.figures() == {"load_before": 0.1, "load_most": 3.0}
