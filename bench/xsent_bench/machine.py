"""The machine: its parts and software, and whether it was quiet during the run."""

import os
import platform
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

ROOT = Path("/")  # of `proc` and `sys`; tests have another
PACKAGES = ("numpy", "onnxruntime", "openvino", "sentencepiece", "torch", "sentence-transformers")
# Prefixes of the environment variables that set the threads of libraries.
THREAD_SETTINGS = ("OMP_", "OPENBLAS_", "MKL_", "KMP_AFFINITY", "KMP_BLOCKTIME", "GOMP_", "TOKENIZERS_PARALLELISM")
CPU = "sys/devices/system/cpu/cpu[0-9]*"
# Bits of a Raspberry Pi: low voltage, capped frequency, slowed down, near the heat limit; the upper bits cover the time
# since it started.
PI_STATE = "sys/devices/platform/soc/soc:firmware/get_throttled"
# The largest harmless value of a figure of `Watch`, and the warning for a larger one.
LIMITS = {
    "load_before": (0.5, "the machine was busy before: load {:.2f}"),
    "other_cpus": (0.1, "the machine was busy during the run: other programs took {:.2f} CPUs on average"),
    "stolen": (0.02, "the host of this virtual machine kept it waiting {:.0%} of the time"),
    "throttled": (0.0, "the machine slowed down because of heat or power: {:.0f} times"),
}


def environment() -> dict[str, Any]:
    """What figures depend on, apart from the code."""
    versions = {"python": platform.python_version(), "xsent": xsent.__version__}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):  # then nothing that ran depended on it
            versions[package] = version(package)
    return {
        "date": date.today().isoformat(),
        "processor": processor_name(ROOT / "proc/cpuinfo"),
        "instructions": instruction_set(),
        "cpus": available_cpus(),  # available to this process
        "cpus_of_machine": os.cpu_count() or 1,
        "memory_mib": psutil.virtual_memory().total // 2**20,
        "governor": ", ".join(sorted({*_read(f"{CPU}/cpufreq/scaling_governor")})) or "unknown",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "versions": versions,
        "threads": {name: value for name, value in sorted(os.environ.items()) if name.startswith(THREAD_SETTINGS)},
    }


class Watch:
    """Compares the state of the machine with its state when the watch was started."""

    def __init__(self) -> None:
        self._before = _state()

    def figures(self) -> dict[str, float]:
        """The figures so far.

        load_before is a one-minute average. other_cpus is the mean number of CPUs that other programs took, running
        children included; stolen is the share of time that the host of a virtual machine took. throttled counts how
        often the CPUs slowed down.
        """
        now = _state()
        grown = {name: now[name] - value for name, value in self._before.items()}
        slowed = int(now["slowed"]) & (0xF | ~int(self._before["slowed"]))
        found = {"load_before": self._before["load"], "throttled": grown["throttles"] + bool(slowed)}
        if grown["all"]:
            found["other_cpus"] = max(0.0, grown["busy"] - grown["own"]) / grown["all"] * psutil.cpu_count()
            found["stolen"] = grown["stolen"] / grown["all"]
        return found

    def warnings(self) -> list[str]:
        """Reasons to doubt the figures; none on a machine that was quiet and cool."""
        found = self.figures()
        advice = "figures may be too slow; measure again on a quiet and cool machine"
        texts = {name: text for name, (limit, text) in LIMITS.items() if found.get(name, 0.0) > limit}
        return [f"{text.format(found[name])}; {advice}" for name, text in texts.items()]


def _state() -> dict[str, float]:
    """The current state of the machine; CPU seconds count from its start, those of this process from the process's."""
    times = psutil.cpu_times()._asdict()
    # The user's time includes that of guests.
    everything = sum(seconds for name, seconds in times.items() if not name.startswith("guest"))
    stolen = times.get("steal", 0.0)
    return {
        "load": psutil.getloadavg()[0],
        "all": everything,
        "stolen": stolen,
        "busy": everything - times["idle"] - times.get("iowait", 0.0) - stolen,
        "own": sum(os.times()[:4]),
        "throttles": sum(map(int, _read(f"{CPU}/thermal_throttle/*_throttle_count"))),
        "slowed": next((int(text, 16) for text in _read(PI_STATE)), 0),
    }


def _read(pattern: str) -> Iterator[str]:
    """The contents of the files that match; those that cannot be read, such as a sensor that is off, are skipped."""
    for file in sorted(ROOT.glob(pattern)):
        with suppress(OSError):
            yield file.read_text().strip()
