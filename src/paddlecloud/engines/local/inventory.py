"""What this machine has to give: cores, memory, GPUs. Asked by the engine when it starts."""

from __future__ import annotations

import math
import os
from pathlib import Path

from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import hierarchies
from paddlecloud.engines.local.config import LocalConfig

FAKE_GPUS = "PADDLECLOUD_FAKE_GPUS"


def count_gpus(config: LocalConfig) -> int:
    """NVIDIA cards, unless the configuration or the environment says otherwise."""
    if config.gpus is not None:
        return config.gpus
    fake = os.environ.get(FAKE_GPUS, "")
    if fake.isdigit():
        return int(fake)
    return count_devices(Path("/"))


def count_devices(root: Path) -> int:
    """The cards NVIDIA's driver knows, or else their device files."""
    try:
        return len(list((root / "proc/driver/nvidia/gpus").iterdir()))
    except OSError:
        names = [path.name.removeprefix("nvidia") for path in (root / "dev").glob("nvidia[0-9]*")]
        return len([name for name in names if name.isdigit()])


def count_cores() -> int:
    """Cores this process may use: by affinity and, in a container, by the cgroup's quota."""
    return max(1, math.ceil(min(len(os.sched_getaffinity(0)), _quota_cores())))


def _number(path: Path, place: int = 0) -> int | None:
    """The n-th number in a file of the kernel's; None where there is none, or no limit."""
    try:
        return int(path.read_text().split()[place])
    except (OSError, ValueError, IndexError):
        return None


def _quota_cores() -> float:
    """The smallest quota on our way up; infinite if there is none."""
    quotas = [math.inf]
    for group in hierarchies.own_path("cpu", "cgroup"):
        quota, period = _number(group / "cpu.cfs_quota_us"), _number(group / "cpu.cfs_period_us")
        if quota and period and quota > 0:
            quotas.append(quota / period)
    for group in hierarchies.own_path("", "cgroup2"):
        quota, period = _number(group / "cpu.max"), _number(group / "cpu.max", 1)
        if quota and period:
            quotas.append(quota / period)
    return min(quotas)


def _limit_bytes() -> float:
    """The smallest memory limit on our way up; infinite if there is none."""
    files = [g / "memory.limit_in_bytes" for g in hierarchies.own_path("memory", "cgroup")]
    files += [g / "memory.max" for g in hierarchies.own_path("", "cgroup2")]
    return min((limit for f in files if (limit := _number(f)) is not None), default=math.inf)


def memory_bytes(config: LocalConfig) -> int:
    """What may be granted to jobs: what there is, less the reserve."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(0, int(min(total, _limit_bytes())) - config.memory_reserve_bytes)


def machine(config: LocalConfig) -> Resources:
    """All that may be granted: CPU over-committed, memory and GPUs exact."""
    return Resources(
        cpu_milli=count_cores() * 1000 * config.cpu_overcommit,
        memory_bytes=memory_bytes(config),
        gpu=count_gpus(config),
    )
