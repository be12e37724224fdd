"""CPUs allowed, in made-up containers."""

import os
from pathlib import Path

import pytest

from xsent.threads import available_cpus


@pytest.fixture(autouse=True)
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def write(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)


def test_affinity_without_control_groups(tmp_path: Path) -> None:
    assert available_cpus(tmp_path) == 8


@pytest.mark.parametrize(
    ("quota", "cpus"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("150000 100000", 2),
        ("10000 100000", 1),
        ("9900000 100000", 8),
        ("?", 8),
    ],
)
def test_version_2(tmp_path: Path, quota: str, cpus: int) -> None:
    write(tmp_path, {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": f"{quota}\n"})
    assert available_cpus(tmp_path) == cpus


def test_version_2_takes_the_smallest_of_all_levels(tmp_path: Path) -> None:
    quotas = {"sys/fs/cgroup/a/cpu.max": "300000 100000\n", "sys/fs/cgroup/a/b/cpu.max": "500000 100000\n"}
    write(tmp_path, {"proc/self/cgroup": "0::/a/b\n", **quotas})
    assert available_cpus(tmp_path) == 3


@pytest.mark.parametrize(("quota", "cpus"), [("-1", 8), ("400000", 4)])
def test_version_1_of_a_container_that_sees_only_itself(tmp_path: Path, quota: str, cpus: int) -> None:
    files = {
        "proc/self/cgroup": "3:memory:/docker/x\n2:cpu,cpuacct:/docker/x\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": f"{quota}\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    write(tmp_path, files)
    assert available_cpus(tmp_path) == cpus


def test_without_affinity(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert available_cpus(tmp_path) == 1
