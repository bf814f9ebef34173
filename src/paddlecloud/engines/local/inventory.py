"""What this machine has to give: cores, memory, GPUs."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.core.resources import Resources
from paddlecloud.engines.local.config import LocalConfig

FAKE_GPUS = "PADDLECLOUD_FAKE_GPUS"


def count_gpus(config: LocalConfig) -> int:
    """NVIDIA cards, unless the configuration or the environment says otherwise."""
    if config.gpus is not None:
        return config.gpus
    fake = os.environ.get(FAKE_GPUS, "")
    if fake.isdigit():
        return int(fake)
    known_to_driver = Path("/proc/driver/nvidia/gpus")
    if known_to_driver.is_dir():
        return len(list(known_to_driver.iterdir()))
    return len([p for p in Path("/dev").glob("nvidia[0-9]*") if p.name[6:].isdigit()])


def count_cores() -> int:
    """Cores this process may use: affinity and, in a container, the cgroup's quota."""
    return max(1, min(len(os.sched_getaffinity(0)), _quota_cores()))


def _quota_cores() -> int:
    return 1 << 20


def memory_bytes(config: LocalConfig) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemTotal:"):
            total = int(line.split()[1]) * 1024
            return max(0, total - config.memory_reserve_bytes)
    return 0


def machine(config: LocalConfig) -> Resources:
    """All that may be granted: CPU over-committed, memory and GPUs exact."""
    return Resources(
        cpu_milli=count_cores() * 1000 * config.cpu_overcommit,
        memory_bytes=memory_bytes(config),
        gpu=count_gpus(config),
    )
