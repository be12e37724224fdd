"""How many CPUs this process may use."""

import math
import os
from collections.abc import Iterator
from pathlib import Path


def available_cpus(root: Path = Path("/")) -> int:
    """CPUs this process may run on: its affinity, capped by the quota of its container.

    The count of the machine is wrong in containers: it oversubscribes them. Only tests need another `root`.
    """
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([affinity, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """The CPU quotas of the process's control groups and of all groups above them."""
    try:
        groups = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no control groups here: not Linux
        return
    for group in groups:
        _, controllers, path = group.split(":", 2)
        if not controllers:
            mount, read = root / "sys/fs/cgroup", _quota_v2
        elif "cpu" in controllers.split(","):
            mount, read = root / "sys/fs/cgroup/cpu", _quota_v1
        else:
            continue
        folder = mount / path.lstrip("/")
        for level in (folder, *folder.parents):
            try:
                yield read(level)
            except (OSError, ValueError, ZeroDivisionError):
                pass  # no quota at this level, or a group of the host that the container cannot see
            if level == mount:
                break


def _quota_v2(folder: Path) -> float:
    quota, period = (folder / "cpu.max").read_text().split()
    return int(quota) / int(period)  # "max", no quota, is a ValueError


def _quota_v1(folder: Path) -> float:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    if quota < 0:
        raise ValueError("no quota")
    return quota / int((folder / "cpu.cfs_period_us").read_text())
