"""Which arithmetic instructions this processor has: they decide the last digits of a vector, and what int8 gains."""

import platform
import sys
from pathlib import Path

# By the flag of /proc/cpuinfo that tells them, the best first.
X86 = {"avx512_vnni": "avx512_vnni", "avx_vnni": "avx_vnni", "avx512f": "avx512", "avx2": "avx2"}
ARM = {"asimddp": "arm64_dot"}
SATURATING = ("avx512", "avx2", "x86")  # 8-bit sums overflow there unless the weights are made "portable"


def instruction_set(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The best set of instructions of this processor that vectors are calculated with.

    Args:
        cpuinfo: What the system says of its processors; only tests need another.

    Returns:
        On x86 "avx512_vnni", "avx_vnni", "avx512", "avx2" or "x86"; on ARM "arm64_dot" or "arm64"; elsewhere the
        machine's name.
    """
    machine = platform.machine().lower()
    flags = _flags(cpuinfo)
    if machine in ("x86_64", "amd64"):
        return next((name for flag, name in X86.items() if flag in flags), "x86")
    if machine in ("aarch64", "arm64"):
        if sys.platform == "darwin":  # every Mac of this kind has them
            return "arm64_dot"
        return next((name for flag, name in ARM.items() if flag in flags), "arm64")
    return machine


def _flags(cpuinfo: Path) -> set[str]:
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:  # not Linux
        return set()
    names = (line.partition(":") for line in lines)
    return {flag for name, _, value in names if name.strip() in ("flags", "Features") for flag in value.split()}
