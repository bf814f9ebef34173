"""Settings of the embedded engine: one frozen value, made by whoever starts the engine.

Nothing here reads files or the environment; `LocalConfig` is only what was decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Sandboxing = Literal["auto", "bwrap", "none"]


@dataclass(frozen=True, slots=True)
class LocalConfig:
    """How replicas are run on this machine."""

    state_dir: Path
    """Where everything that must survive a restart is kept. On a local file system: attempts
    are told from dead ones by file locks, and logs are shortened by punching holes."""

    pfs_root: Path
    """The host directory behind `/pfs/<cluster>`: holds `home/<user>` and `public`."""

    cluster: str = "local"
    """The `<datacenter>` of `/pfs/<datacenter>/home/<user>`."""

    sandbox: Sandboxing = "auto"
    """`bwrap`: bubblewrap or refuse to start. `none`: plain processes, one user only.
    `auto` (default): bubblewrap where it works, else plain, and `notes()` says so."""

    log_cap_bytes: int = 64 * 2**20
    """Disk one attempt's log may take (default 64 MiB): weeks of ordinary training output, and
    a flood by a hundred replicas still fits a small disk. Beyond it the middle is dropped."""

    log_head_bytes: int = 2**20
    """The first part of a log that is never dropped (default 1 MiB): the configuration a
    program prints when it starts is what explains the rest."""

    cpu_overcommit: int = 4
    """CPU that may be granted per core (default 4): CPU is shared by weight, and a 2-core laptop
    must run the documented example of 2 trainers and 2 servers."""

    memory_reserve_bytes: int = 512 * 2**20
    """Memory never granted to jobs (default 512 MiB): the platform's and the system's own."""

    gpus: int | None = None
    """Number of GPUs to believe in; None (default) counts the devices. For tests, and for
    machines whose devices are not where NVIDIA's driver puts them."""

    runtimes: Mapping[str, Path] = field(default_factory=dict)
    """Named Python environments: name → prefix (the directory that holds `bin/python`). The
    empty name is the default one and, unless given here, the platform's own environment."""

    read_only_binds: tuple[Path, ...] = ()
    """More host paths that every sandbox may read, at the same place (default none), e.g. a
    data set disk."""

    use_cgroups: bool = True
    """Enforce memory and CPU by cgroup where permitted (default). False: RLIMIT only; for hosts
    whose administrator wants no groups made."""

    pids_limit: int = 4096
    """Processes and threads per replica where cgroups count them (default 4096): far above what
    data loaders use, far below what stops a machine."""
