"""What this machine is, and whether it was quiet while something was measured."""

import os
import platform
import threading
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # it has no types

import xsent
from xsent.backends.threads import available_cpus
from xsent.cpu import instruction_set, processor_name

ROOT = Path("/")  # has `proc` and `sys`; only tests need another
PACKAGES = ("numpy", "onnxruntime", "openvino", "sentencepiece", "torch")
# Beginnings of the variables that set the threads of libraries.
THREAD_SETTINGS = ("OMP_", "OPENBLAS_", "MKL_", "KMP_AFFINITY", "KMP_BLOCKTIME", "GOMP_", "TOKENIZERS_PARALLELISM")
CPU = "sys/devices/system/cpu/cpu[0-9]*"
PI_STATE = "sys/devices/platform/soc/soc:firmware/get_throttled"
PI_SLOWED = 0xF  # bits for now: voltage too low, frequency capped, slowed down, near the limit of heat
# What a figure of `Watch` may be, and what to say of more.
LIMITS = {
    "load_before": (0.5, "the machine was busy before: load {:.2f}"),
    "other_cpus": (0.1, "the machine was busy meanwhile: other programs took {:.2f} CPUs in the mean"),
    "stolen": (0.02, "the host of this virtual machine kept it waiting for {:.0%} of the time"),
    "throttled": (0.0, "the machine slowed itself down (heat or power): seen {:.0f} times"),
}


def environment() -> dict[str, Any]:
    """What figures depend on beside our code."""
    versions = {"python": platform.python_version(), "xsent": xsent.__version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):  # nothing that ran depends on it
            versions[package] = version(package)
    return {
        "date": date.today().isoformat(),
        "processor": processor_name(ROOT / "proc/cpuinfo"),
        "instructions": instruction_set(),
        "cpus": available_cpus(),  # that this process may use
        "cpus_of_machine": os.cpu_count() or 1,
        "memory_mib": psutil.virtual_memory().total // 2**20,
        "governor": ", ".join(sorted({*_texts(f"{CPU}/cpufreq/scaling_governor")})) or "unknown",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "versions": versions,
        "threads": {name: value for name, value in sorted(os.environ.items()) if name.startswith(THREAD_SETTINGS)},
    }


class Watch:
    """Looks at the machine every so many seconds while the block runs; what a system does not tell is left out."""

    def __init__(self, seconds: float = 2.0) -> None:
        self._seconds = seconds
        self._looks = list[dict[str, float]]()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._looks.append(dict(_state()))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._looks.append(dict(_state()))

    def figures(self) -> dict[str, float]:
        """What was seen so far.

        load_before and load_most, averages of a minute; other_cpus, CPUs that other programs took in the mean, and
        among them our own children that still run; stolen, the share of the time that the host of a virtual machine
        took; celsius_most; mhz_least and mhz_most of the fastest CPU at each look; throttled, how often it slowed down.
        """
        seen = {name: [look[name] for look in self._looks if name in look] for name in self._looks[0]}
        grown = {name: values[-1] - values[0] for name, values in seen.items()}
        found: dict[str, float] = {"load_before": seen["load"][0], "load_most": max(seen["load"])}
        if "celsius" in seen:
            found["celsius_most"] = max(seen["celsius"])
        if "mhz" in seen:
            found |= {"mhz_least": min(seen["mhz"]), "mhz_most": max(seen["mhz"])}
        if "throttles" in seen or "slowed" in seen:
            found["throttled"] = grown.get("throttles", 0.0) + sum(seen.get("slowed", ()))
        if grown["all"]:
            cpus = psutil.cpu_count()
            found["other_cpus"] = max(0.0, grown["busy"] - grown["own"]) / grown["all"] * cpus
            found["stolen"] = grown["stolen"] / grown["all"]
        return found

    def warnings(self) -> list[str]:
        """What makes the figures doubtful, in words; nothing on a machine that was quiet and cool."""
        found, advice = self.figures(), "figures may be too slow: measure again when it is quiet and cool"
        said = {name: text for name, (limit, text) in LIMITS.items() if found.get(name, 0.0) > limit}
        return [f"{text.format(found[name])}; {advice}" for name, text in said.items()]

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            self._looks.append(dict(_state()))


def _state() -> Iterator[tuple[str, float]]:
    """What the machine does now, as far as it says; what it did since it started, and what we and our children took."""
    yield "load", psutil.getloadavg()[0]
    times = psutil.cpu_times()._asdict()
    idle = times["idle"] + times.get("iowait", 0.0)
    # What guests took is in the user's time already.
    everything = sum(seconds for name, seconds in times.items() if not name.startswith("guest"))
    stolen = times.get("steal", 0.0)
    yield from (("all", everything), ("stolen", stolen), ("busy", everything - idle - stolen))
    yield "own", sum(os.times()[:4])
    sensors: dict[str, Any] = getattr(psutil, "sensors_temperatures", dict)()  # Linux has them
    if celsius := [sensor.current for found in sensors.values() for sensor in found]:
        yield "celsius", max(celsius)
    if megahertz := [cpu.current for cpu in psutil.cpu_freq(percpu=True) or ()]:
        yield "mhz", max(megahertz)
    if counts := [int(text) for text in _texts(f"{CPU}/thermal_throttle/*_throttle_count")]:
        yield "throttles", sum(counts)
    for text in _texts(PI_STATE):
        yield "slowed", float(bool(int(text, 16) & PI_SLOWED))


def _texts(pattern: str) -> Iterator[str]:
    """What the files of a pattern hold; those that cannot be read, as a sensor that is off, are left out."""
    for file in sorted(ROOT.glob(pattern)):
        with suppress(OSError):
            yield file.read_text().strip()
