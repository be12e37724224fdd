"""What this machine is."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor of this machine in words."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
