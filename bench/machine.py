"""What this machine is, and whether it was quiet while something was measured."""

import os
import platform
import threading
from collections.abc import Iterator
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import xsent
from xsent.probe import instruction_set
from xsent.threads import available_cpus

ROOT = Path("/")
PACKAGES = ("numpy", "onnxruntime", "openvino", "sentencepiece", "torch")
# Beginnings of the variables that set the threads of libraries.
THREAD_SETTINGS = ("OMP_", "OPENBLAS_", "MKL_", "KMP_AFFINITY", "KMP_BLOCKTIME", "GOMP_", "TOKENIZERS_PARALLELISM")
CPU = "sys/devices/system/cpu/cpu[0-9]*"
PI_STATE = "sys/devices/platform/soc/soc:firmware/get_throttled"
PI_SLOWED = 0xF  # bits for now: voltage too low, frequency capped, slowed down, near the limit of heat
COUNTERS = ("busy", "own", "stolen", "all", "elapsed", "throttles")  # what only grows, of what a `Watch` sees
# What a figure of `Watch` may be, and what to say of more.
LIMITS = {
    "load_before": (0.5, "the machine was busy before: load {:.2f}"),
    "other_cpus": (0.1, "the machine was busy meanwhile: other programs took {:.2f} CPUs in the mean"),
    "stolen": (0.02, "the host of this virtual machine kept it waiting for {:.0%} of the time"),
    "throttled": (0.0, "the machine slowed itself down (heat or power): seen {:.0f} times"),
}


def processor(root: Path = ROOT) -> str:
    """The processor of this machine in words; `root` has `proc`, only tests need another."""
    fields = _fields(root, "proc/cpuinfo")
    return fields.get("Model") or fields.get("model name") or platform.processor() or platform.machine()


def environment(root: Path = ROOT) -> dict[str, Any]:
    """What figures depend on beside our code; `root` has `proc` and `sys`, only tests need another."""
    versions = {"python": platform.python_version(), "xsent": xsent.__version__}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            pass  # nothing that ran depends on it
    return {
        "date": date.today().isoformat(),
        "processor": processor(root),
        "instructions": instruction_set(root / "proc/cpuinfo"),
        "cpus": available_cpus(root),  # that this process may use
        "cpus_of_machine": os.cpu_count() or 1,
        "memory_mib": int(_fields(root, "proc/meminfo").get("MemTotal", "0").split()[0]) // 1024,  # 0: not known
        "governor": ", ".join(sorted({*_texts(root, f"{CPU}/cpufreq/scaling_governor")})) or "unknown",
        "system": f"{platform.system()} {platform.release()} on {platform.machine()}",
        "versions": versions,
        "threads": {name: value for name, value in sorted(os.environ.items()) if name.startswith(THREAD_SETTINGS)},
    }


class Watch:
    """Looks at the machine every so many seconds while the block runs; what a system does not tell is left out."""

    def __init__(self, root: Path = ROOT, seconds: float = 2.0) -> None:
        self._root, self._seconds = root, seconds
        self._looks: list[dict[str, float]] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._looks.append(dict(_state(self._root)))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        self._looks.append(dict(_state(self._root)))

    def figures(self) -> dict[str, float]:
        """What was seen so far.

        Returns:
            load_before and load_most, averages of a minute; other_cpus, CPUs that other programs took in the mean, and
            among them our own children that still run; stolen, the share of the time that the host of a virtual machine
            took; celsius_most; mhz_least and mhz_most of the fastest CPU at each look; throttled, how often the machine
            slowed itself down.
        """
        found: dict[str, float] = {}
        if load := self._seen("load"):
            found |= {"load_before": load[0], "load_most": max(load)}
        if celsius := self._seen("celsius"):
            found |= {"celsius_most": max(celsius)}
        if mhz := self._seen("mhz"):
            found |= {"mhz_least": min(mhz), "mhz_most": max(mhz)}
        grown = {name: values[-1] - values[0] for name in COUNTERS if (values := self._seen(name))}
        if "throttles" in grown or self._seen("slowed"):
            found["throttled"] = grown.get("throttles", 0.0) + sum(self._seen("slowed"))
        if grown.get("all"):
            found["other_cpus"] = max(0.0, grown["busy"] - grown["own"]) / grown["elapsed"]
            found["stolen"] = grown["stolen"] / grown["all"]
        return found

    def warnings(self) -> list[str]:
        """What makes the figures doubtful, in words; nothing on a machine that was quiet and cool."""
        found, advice = self.figures(), "figures may be too slow: measure again when it is quiet and cool"
        said = {name: text for name, (limit, text) in LIMITS.items() if found.get(name, 0.0) > limit}
        return [f"{text.format(found[name])}; {advice}" for name, text in said.items()]

    def _run(self) -> None:
        while not self._ended.wait(self._seconds):
            self._looks.append(dict(_state(self._root)))

    def _seen(self, name: str) -> list[float]:
        return [look[name] for look in self._looks if name in look]


def _state(root: Path) -> Iterator[tuple[str, float]]:
    """What the machine does now, as far as it says."""
    for text in _texts(root, "proc/loadavg"):
        yield "load", float(text.split()[0])
    if celsius := _numbers(root, "sys/class/thermal/thermal_zone*/temp"):
        yield "celsius", max(celsius) / 1000
    if kilohertz := _numbers(root, f"{CPU}/cpufreq/scaling_cur_freq"):
        yield "mhz", max(kilohertz) / 1000
    if counts := _numbers(root, f"{CPU}/thermal_throttle/*_throttle_count"):
        yield "throttles", sum(counts)
    for text in _texts(root, PI_STATE):
        yield "slowed", float(bool(int(text, 16) & PI_SLOWED))
    for text in _texts(root, "proc/stat"):
        yield from _cpu_seconds(text)


def _cpu_seconds(stat: str) -> Iterator[tuple[str, float]]:
    """What the CPUs did since the system started, from /proc/stat, and what we and our ended children took."""
    lines = [line.split() for line in stat.splitlines() if line.startswith("cpu")]
    if len(lines) < 2:  # a container that hides them
        return
    user, nice, kernel, idle, waiting, hard, soft, stolen = (
        int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in lines[0][1:9]
    )
    busy = user + nice + kernel + hard + soft
    everything = busy + idle + waiting + stolen
    yield from (("busy", busy), ("stolen", stolen), ("all", everything), ("elapsed", everything / (len(lines) - 1)))
    yield "own", sum(os.times()[:4])


def _fields(root: Path, file: str) -> dict[str, str]:
    """The fields of a file of `/proc`; of those that come again, the last."""
    lines = (line.partition(":") for text in _texts(root, file) for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in lines}


def _numbers(root: Path, pattern: str) -> list[int]:
    return [int(text) for text in _texts(root, pattern) if text.lstrip("-").isdigit()]


def _texts(root: Path, pattern: str) -> Iterator[str]:
    """What the files of a pattern hold; those that cannot be read, as a sensor that is off, are left out."""
    for file in sorted(root.glob(pattern)):
        try:
            yield file.read_text().strip()
        except OSError:
            pass
