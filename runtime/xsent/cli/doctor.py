"""`xsent doctor`: this machine's CPU, threads, memory and onnxruntime, and how long encoding takes on it.

Each backend is tried in a process of its own, because an onnxruntime that the CPU cannot run kills its process.
"""

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from xsent.backends.base import default_backend
from xsent.backends.threads import available_cpus
from xsent.bundle import Bundle
from xsent.cli.terminal import one_line_errors
from xsent.cpu import SATURATING, instruction_set, process_memory, processor_name, system_fields, time_each

Status = Literal["good", "warning", "problem"]

# By instruction set, see `xsent.cpu.instruction_set`.
PROCESSORS = {
    "avx512_vnni": "AVX-512 with 8-bit dot products (VNNI): int8 is fast here",
    "avx_vnni": "AVX2 with 8-bit dot products (VNNI): int8 is fast here",
    "avx512": "AVX-512 without 8-bit dot products (VNNI): int8 gains less here",
    "avx2": "AVX2 without 8-bit dot products (VNNI): int8 gains less here",
    "arm64_dot": "ARM with 8-bit dot products, as in a Raspberry Pi 5: int8 is fast here",
    "arm64": "ARM without 8-bit dot products, as in a Raspberry Pi 3, 4 or Zero 2: int8 saves memory more than time",
}

NEEDED_MIB = 150  # twice the memory of a process that encodes
PATIENCE = 600  # seconds for a backend; an emulated CPU is slow
_SECONDS = 0.5  # time to measure a backend for
_BUSY = 0.5  # programs at work per CPU from which a machine is busy
_LEAST = 5  # sentences to measure it with, at least
_CHILD = "import sys; from xsent.cli.doctor import run_trial; run_trial(*sys.argv[1:])"


@dataclass(frozen=True)
class Finding:
    """The result of one examination."""

    subject: str  # such as "memory"
    status: Status  # "good"; "warning": works, but not as well as it could; "problem": something does not work
    text: str  # the finding, and what to do about it


def examine(bundle: Bundle) -> Iterator[Finding]:
    """Examine this machine, then encode with it; yields each finding at once."""
    yield examine_system()
    yield examine_processor(bundle, Path("/proc/cpuinfo"))
    yield examine_threads()
    yield examine_memory(Path("/proc/meminfo"))
    yield examine_onnxruntime()
    yield examine_load()
    for backend in dict.fromkeys([default_backend(), "numpy"]):
        yield examine_encoding(bundle, backend)


def examine_system(bits: int = sys.maxsize.bit_length() + 1) -> Finding:
    """Operating system and Python."""
    text = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}, {bits} bits"
    if bits == 64:
        return Finding("system", "good", text)
    return Finding("system", "warning", f"{text}: onnxruntime needs 64 bits; the numpy backend does not")


def examine_processor(bundle: Bundle, cpuinfo: Path) -> Finding:
    """The CPU, and what int8 gains on it."""
    instructions = instruction_set(cpuinfo)
    name = processor_name(cpuinfo)
    if bundle.target != "portable" and instructions in SATURATING:
        advice = f"the bundle is made for {bundle.target}, its 8-bit sums overflow here; export it again"
        return Finding("processor", "problem", f"{name}; {advice}")
    if instructions not in PROCESSORS:
        return Finding("processor", "warning", f"{name}; {instructions}: not tested; see the measured speed below")
    return Finding("processor", "good", f"{name}; {PROCESSORS[instructions]}")


def examine_threads(root: Path = Path("/")) -> Finding:
    """Number of CPUs that this process may use."""
    usable = available_cpus(root)
    all_cpus = os.cpu_count() or 1
    kept = " (an affinity or a container's quota keeps the others)" if usable < all_cpus else ""
    return Finding("threads", "good", f"{usable} of {all_cpus} CPUs may be used{kept}; --threads changes the default")


def examine_memory(meminfo: Path) -> Finding:
    """Free memory."""
    kib = dict(system_fields(meminfo)).get("MemAvailable")
    if kib is None:
        return Finding("memory", "good", "not known on this system")
    free = int(kib.split()[0]) // 1024
    if free < NEEDED_MIB:
        return Finding("memory", "warning", f"{free:,} MiB free, {NEEDED_MIB} are safe; close other programs")
    return Finding("memory", "good", f"{free:,} MiB free")


def examine_onnxruntime() -> Finding:
    """The version of onnxruntime, without importing it."""
    if default_backend() != "onnx":
        slower = "numpy encodes instead, about five times slower"
        text = f"not installed: {slower}; pip install -U onnxruntime, where there is a wheel"
        return Finding("onnxruntime", "warning", text)
    try:
        return Finding("onnxruntime", "good", version("onnxruntime"))
    except PackageNotFoundError:  # one of its other builds
        return Finding("onnxruntime", "good", "version not known")


def examine_load() -> Finding:
    """Whether other programs keep the CPUs busy, which would make the times of encoding longer."""
    try:
        load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    except OSError:
        return Finding("load", "good", "not known on this system")
    text = f"{load:.1f} programs at work on {cpus} CPUs, the mean of the last minute"
    if load < _BUSY * cpus:
        return Finding("load", "good", text)
    return Finding("load", "warning", f"{text}: busy, so the times below are too long; try again when it is idle")


def examine_encoding(bundle: Bundle, backend: str) -> Finding:
    """Whether a backend gives the bundle's golden vectors on this machine, how fast, and in how much memory."""
    subject = f"{backend} backend"
    failed: Status = "problem" if backend == default_backend() else "warning"
    command = [sys.executable, "-P", "-c", _CHILD, str(bundle.path), backend]  # no modules of the current folder
    try:
        child = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return Finding(subject, failed, f"no vector within {PATIENCE} seconds")
    if child.returncode:
        other = "use the numpy backend meanwhile" if backend == "onnx" else "the onnx backend does not need it"
        last = (child.stderr.strip().splitlines() or ["failed"])[-1].removeprefix("Error: ")
        reason = f"killed by {signal.Signals(-child.returncode).name}" if child.returncode < 0 else last
        return Finding(subject, failed, f"{reason}; {other}")
    found: dict[str, Any] = json.loads(child.stdout)
    took = found["milliseconds"]
    text = (
        f"right to {found['difference']:.1g}; {took:.2f} ms for a sentence of {found['tokens']} tokens, "
        f"{1000 / took:,.1f} per second on one thread"
    )
    text += "".join(f"; {fewer:.2f} ms with --layers {layers}" for layers, fewer in found["depths"].items())
    return Finding(subject, "good", text + (f"; {found['mebibytes']:.0f} MiB" if found["mebibytes"] else ""))


@one_line_errors()
def run_trial(path: str, backend: str) -> None:
    """Try a backend, in a child process, and print its measurements as JSON; fails if its vectors are wrong."""
    # Imported here: the parent process does not encode.
    from statistics import median

    from xsent.encoder import SentenceEncoder
    from xsent.verification import verify

    def milliseconds(encoder: SentenceEncoder) -> float:
        return 1000 * median(time_each(encoder.encode, [text], least=_LEAST, seconds=_SECONDS))

    encoder = SentenceEncoder(path, backend=backend, threads=1)
    text = max(encoder.bundle.golden.sentences, key=len, default="The cat sleeps.")
    encoder.encode(text)
    mebibytes = process_memory("VmHWM")
    shallower = (SentenceEncoder(path, layers=n, backend=backend, threads=1) for n in encoder.bundle.depths[:-1])
    trial = {
        "difference": verify(path, backend).difference,  # largest difference of a number to the golden vectors
        "tokens": encoder.count_tokens(text),  # of the timed sentence
        "milliseconds": milliseconds(encoder),  # for this sentence, text to vector, on one thread
        "depths": {other.layers: milliseconds(other) for other in shallower},  # the same with fewer layers
        "mebibytes": mebibytes,  # peak memory after the first sentence; 0 if the system does not report it
    }
    sys.stdout.write(json.dumps(trial))
