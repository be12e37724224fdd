"""The CPU of this machine: its instruction set and name, the memory of a process and the time of a call."""

import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeVar

Input = TypeVar("Input")

# Instruction sets by their flag in /proc/cpuinfo, best first. They affect the last digits of a vector and the
# speed of int8.
X86 = {"avx512_vnni": "avx512_vnni", "avx_vnni": "avx_vnni", "avx512f": "avx512", "avx2": "avx2"}
SATURATING = ("avx512", "avx2", "x86")  # 8-bit sums overflow there, except with "portable" weights


def instruction_set(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The best instruction set of this CPU for vectors; only tests pass another file."""
    machine = platform.machine().lower()
    flags = {flag for name, value in system_fields(cpuinfo) if name in ("flags", "Features") for flag in value.split()}
    if machine in ("x86_64", "amd64"):
        return next((name for flag, name in X86.items() if flag in flags), "x86")
    if machine in ("aarch64", "arm64"):
        dot_products = sys.platform == "darwin" or "asimddp" in flags  # every arm64 Mac has them
        return "arm64_dot" if dot_products else "arm64"
    return machine


def processor_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The model of this CPU; only tests pass another file."""
    fields = dict(system_fields(cpuinfo))
    return fields.get("Model") or fields.get("model name") or platform.processor() or platform.machine()


def system_fields(file: Path) -> list[tuple[str, str]]:
    """The lines `name: value` of a file in `/proc`; none on systems other than Linux."""
    try:
        lines = file.read_text().splitlines()
    except OSError:  # not Linux
        return []
    return [(name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in lines)]


def process_memory(field: str) -> float:
    """A field of /proc/self/status in MiB, such as VmHWM (peak resident memory) or RssAnon (not backed by a file).

    0 on other systems. `getrusage` would not do: its peak starts at the memory of the parent process.
    """
    return int(dict(system_fields(Path("/proc/self/status"))).get(field, "0 kB").split()[0]) / 1024


def time_each(
    run: Callable[[Input], object], inputs: Sequence[Input], *, least: int, most: int = sys.maxsize, seconds: float = 0
) -> list[float]:
    """Seconds of each call on the inputs in turn: `least` calls, then more until `seconds` are over, at most `most`."""
    run(inputs[0])  # not counted: the first call allocates memory
    times: list[float] = []
    ending = perf_counter() + seconds
    while len(times) < least or (len(times) < most and perf_counter() < ending):
        value = inputs[len(times) % len(inputs)]
        began = perf_counter()
        run(value)
        times.append(perf_counter() - began)
    return times
