"""What this machine is good for, in plain words: processor, threads, memory, onnxruntime, and what encoding takes.

Backends are tried in processes of their own: an onnxruntime that the processor cannot run takes its process with it.
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

_SECONDS, _LEAST = 0.5, 5  # time to measure a backend for, and sentences at least


@one_line_errors()
def main(path: str, backend: str) -> None:
    """Try a backend and print what it did as JSON; fails if it gives other vectors than it should."""
    # Not above: a process that only times other things would load and weigh more.
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
        "difference": verify(path, backend).difference,  # the largest of a number to the golden vectors
        "tokens": encoder.count_tokens(text),  # of the sentence that was timed
        "milliseconds": milliseconds(encoder),  # for it, text to vector, on one thread
        "depths": {other.layers: milliseconds(other) for other in shallower},  # the same for fewer layers
        "mebibytes": mebibytes,  # of memory at the most after the first sentence; 0 where the system does not say
    }
    sys.stdout.write(json.dumps(trial))


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

OLDEST = (1, 19)
BAD_VERSIONS = {
    "1.20.0": "other projects shut it out",
    "1.21.0": "it dies with an illegal instruction on a Raspberry Pi 4",
    "1.24.0": "other projects shut it out",
    "1.24.1": "other projects shut it out",
}
UPGRADE = "pip install -U onnxruntime"

NEEDED_MIB = 150  # twice a process that encodes
PATIENCE = 600  # seconds for a backend; an emulated processor is slow
_CHILD = "import sys; from xsent.cli.doctor import main; main(*sys.argv[1:])"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str  # what
    status: Status  # "good"; "warning": works, but not as well as it could; "problem": something does not work
    text: str  # what was found, and what to do about it


def examine(bundle: Bundle, root: Path = Path("/")) -> Iterator[Finding]:
    """Look at this machine, then encode with it: findings as they are made; only tests need another `root`."""
    yield examine_system()
    yield examine_processor(bundle, root / "proc/cpuinfo")
    yield examine_threads(root)
    yield examine_memory(root / "proc/meminfo")
    yield examine_onnxruntime()
    for backend in dict.fromkeys([default_backend(), "numpy"]):
        yield examine_encoding(bundle, backend)


def examine_system(bits: int = sys.maxsize.bit_length() + 1) -> Finding:
    """Operating system and Python."""
    text = f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}, {bits} bits"
    if bits == 64:
        return Finding("system", "good", text)
    return Finding("system", "warning", f"{text}: onnxruntime needs 64 bits; the numpy backend does not")


def examine_processor(bundle: Bundle, cpuinfo: Path) -> Finding:
    """The processor, and what int8 gains on it."""
    instructions = instruction_set(cpuinfo)
    name = processor_name(cpuinfo)
    if bundle.target != "portable" and instructions in SATURATING:
        advice = f"the bundle is made for {bundle.target}, its 8-bit sums overflow here; export with --target portable"
        return Finding("processor", "problem", f"{name}; {advice}")
    if instructions not in PROCESSORS:
        return Finding("processor", "warning", f"{name}; {instructions}: not tried by us, the speed below says more")
    return Finding("processor", "good", f"{name}; {PROCESSORS[instructions]}")


def examine_threads(root: Path = Path("/")) -> Finding:
    """CPUs that may be used."""
    usable, all_cpus = available_cpus(root), os.cpu_count() or 1
    kept = " (an affinity or a container's quota keeps the others)" if usable < all_cpus else ""
    text = f"{usable} of {all_cpus} CPUs may be used{kept}: so many sentences are encoded at once unless threads= says"
    return Finding("threads", "good", text)


def examine_memory(meminfo: Path) -> Finding:
    """Memory that is free for programs."""
    kib = dict(system_fields(meminfo)).get("MemAvailable")
    if kib is None:
        return Finding("memory", "good", "not known on this system")
    free = int(kib.split()[0]) // 1024
    if free < NEEDED_MIB:
        return Finding("memory", "warning", f"{free:,} MiB free, {NEEDED_MIB} are safe; close other programs")
    return Finding("memory", "good", f"{free:,} MiB free")


def examine_onnxruntime() -> Finding:
    """The version of onnxruntime, without importing it."""
    subject = "onnxruntime"
    if default_backend() != "onnx":
        text = f"not installed: encoding is numpy's, some five times slower; {UPGRADE}, where there is a wheel"
        return Finding(subject, "warning", text)
    try:
        found = version(subject)
    except PackageNotFoundError:  # one of its other builds
        return Finding(subject, "good", "version not known")
    if found in BAD_VERSIONS:
        return Finding(subject, "problem", f"{found}: {BAD_VERSIONS[found]}; {UPGRADE}")
    if tuple(int(part) for part in found.split(".")[:2]) < OLDEST:
        return Finding(subject, "problem", f"{found} is older than {'.'.join(map(str, OLDEST))}; {UPGRADE}")
    return Finding(subject, "good", found)


def examine_encoding(bundle: Bundle, backend: str) -> Finding:
    """Whether a backend gives the bundle's golden vectors here, how fast, and in how much memory."""
    subject = f"{backend} backend"
    failed: Status = "problem" if backend == default_backend() else "warning"
    command = [sys.executable, "-c", _CHILD, str(bundle.path), backend]
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
        f"{1000 / took:,.1f} a second on one thread"
    )
    text += "".join(f"; {fewer:.2f} ms with --layers {layers}" for layers, fewer in found["depths"].items())
    return Finding(subject, "good", text + (f"; {found['mebibytes']:.0f} MiB" if found["mebibytes"] else ""))
