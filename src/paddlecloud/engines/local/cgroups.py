"""Memory, CPU and process limits by cgroup, where this machine lets us.

One group per attempt, named after the state directory and the attempt, below our own cgroup or
one above it, whichever may be written. Version 1 (a hierarchy per controller), version 2
(one for all) and no cgroups at all are supported. It never touches a group it did not make.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.core.resources import Resources
from paddlecloud.engines.local import hierarchies

SHIM_BYTES = 4 * 2**20  # what our own shim takes of a group: the program gets its memory in full
_CONTROLLERS = ("memory", "cpu", "pids")
_ENTRANCE = "cgroup.procs"
_OWN_ENTRANCE = "tasks"  # version 1: for a single thread


def _write(path: Path, text: str | int) -> None:
    # Not Path.write_text: a cgroup file takes exactly one write.
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(text).encode())
    finally:
        os.close(fd)


def _counter(path: Path, name: str) -> int:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(name + " ")), 0)


def cpu_shares(cpu_milli: int) -> int:
    """The weight version 1 gives to so much CPU: 1024 is one core."""
    return max(2, cpu_milli * 1024 // 1000)


def cpu_weight(cpu_milli: int) -> int:
    """The same on version 2's scale, 1 to 10000, by the mapping Kubernetes uses."""
    shares = min(cpu_shares(cpu_milli), 262144)
    return 1 + (shares - 2) * 9999 // 262142


@dataclass(frozen=True, slots=True)
class Group:
    """The groups of one attempt: one directory per hierarchy."""

    dirs: tuple[Path, ...]

    def pids(self) -> set[int]:
        """Who is in: the same processes in every hierarchy."""
        try:
            return set(map(int, (self.dirs[0] / "cgroup.procs").read_text().split()))
        except OSError:
            return set()

    def kill(self) -> set[int]:
        """One round of killing everything inside; returns who was there. Nothing can be born
        meanwhile: the process limit is set to none first."""
        found = self.pids()
        if not found:
            return found
        for path in self.dirs:
            for name, value in (("cgroup.kill", 1), ("pids.max", 0)):
                with contextlib.suppress(OSError):
                    _write(path / name, value)
        found |= self.pids()
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        return found

    def out_of_memory_kills(self) -> int:
        return max(
            (
                _counter(path / name, "oom_kill")
                for path in self.dirs
                for name in ("memory.oom_control", "memory.events")
            ),
            default=0,
        )

    def remove(self) -> None:
        for path in self.dirs:
            with contextlib.suppress(OSError):
                os.rmdir(path)


class Cgroups:
    """Makes groups below `parents`: controller → directory; version 2 has one for all."""

    def __init__(
        self, parents: dict[str, Path], version: int, prefix: str, pids_limit: int
    ) -> None:
        self._parents = parents
        self._version = version
        self._prefix = prefix
        self._pids_limit = pids_limit

    @property
    def controls_memory(self) -> bool:
        return "memory" in self._parents

    @property
    def controls_cpu(self) -> bool:
        return "cpu" in self._parents

    @property
    def controls_processes(self) -> bool:
        return "pids" in self._parents

    def planned(self, name: str) -> Group | None:
        """The group that `make` would make; None where there is nothing to make it with."""
        if not self._parents:
            return None
        directory = f"{self._prefix}.{name}"
        return Group(tuple(dict.fromkeys(parent / directory for parent in self._parents.values())))

    def make(self, group: Group, resources: Resources) -> None:
        """Make a planned group and set its limits."""
        for path in group.dirs:
            path.mkdir(exist_ok=True)
        for controller, parent in self._parents.items():
            for file, value in self._settings(controller, resources):
                path = parent / group.dirs[0].name / file
                if path.exists():
                    _write(path, value)

    def entrances(self, group: Group | None) -> list[Path]:
        """Files through which a process of one thread puts itself in, with all it begets later.

        Only version 1 has them. There to put another process in takes the kernel some 12 ms,
        and it holds up whoever else enters meanwhile.
        """
        return [path / _OWN_ENTRANCE for path in group.dirs] if group and self._version == 1 else []

    def put_in(self, group: Group, pid: int) -> None:
        """Put a process in that cannot enter by itself; what it begets from then on is in too."""
        if self._version != 1:
            for path in group.dirs:
                _write(path / _ENTRANCE, pid)

    def _settings(self, controller: str, resources: Resources) -> Iterable[tuple[str, int]]:
        memory, cpu = resources.memory_bytes, resources.cpu_milli
        if memory:
            memory += SHIM_BYTES
        if controller == "pids":
            return [("pids.max", self._pids_limit)]
        if controller == "cpu" and cpu:
            if self._version == 1:
                return [("cpu.shares", cpu_shares(cpu))]
            return [("cpu.weight", cpu_weight(cpu))]
        if controller == "memory" and memory:
            if self._version == 1:
                return [("memory.limit_in_bytes", memory), ("memory.memsw.limit_in_bytes", memory)]
            return [("memory.max", memory), ("memory.swap.max", 0), ("memory.oom.group", 1)]
        return []

    def sweep(self, wanted: Sequence[Group]) -> None:
        """Remove the empty groups of attempts that are over; a group in use stays."""
        keep = {path for group in wanted for path in group.dirs}
        for parent in dict.fromkeys(self._parents.values()):
            for path in parent.glob(f"{self._prefix}.*"):
                if path not in keep:
                    with contextlib.suppress(OSError):
                        os.rmdir(path)


def _can_enter(entrance: Path) -> bool:
    """Ask the kernel, not the permission bits: a process really moves."""
    command = ["/bin/sh", "-c", 'echo 0 > "$1"', "sh", str(entrance)]
    return subprocess.run(command, capture_output=True).returncode == 0


def _is_usable(parent: Path, prefix: str, entrance: str) -> bool:
    """Whether a group may be made below `parent` and a process put into it."""
    probe = parent / f"{prefix}.probe-{os.getpid()}"
    try:
        probe.mkdir()
    except OSError:
        return False
    try:
        return _can_enter(probe / entrance)
    finally:
        os.rmdir(probe)


def _find_version_1(prefix: str) -> dict[str, Path]:
    parents: dict[str, Path] = {}
    for controller in _CONTROLLERS:
        path = hierarchies.own_path(controller, "cgroup")
        # Our own group, so that limits on us hold for our replicas; else the top.
        for parent in (path[0], path[-1]) if path else ():
            if controller not in parents and _is_usable(parent, prefix, _OWN_ENTRANCE):
                parents[controller] = parent
    return parents


def _handed_down(parent: Path, is_top: bool) -> list[str]:
    """The controllers that groups below `parent` have."""

    def wanted(file: str) -> list[str]:
        offered = (parent / file).read_text().split()
        return [controller for controller in _CONTROLLERS if controller in offered]

    if is_top and wanted("cgroup.subtree_control") != wanted("cgroup.controllers"):
        # Only the top may hand down while it has processes. It harms nobody and is usual.
        with contextlib.suppress(OSError):
            more = " ".join(f"+{controller}" for controller in wanted("cgroup.controllers"))
            _write(parent / "cgroup.subtree_control", more)
    return wanted("cgroup.subtree_control")


def _find_version_2(prefix: str) -> dict[str, Path]:
    path = hierarchies.own_path("", "cgroup2")
    best: dict[str, Path] = {}
    for parent in path:
        try:
            controllers = _handed_down(parent, is_top=parent == path[-1])
        except OSError:
            continue
        if len(controllers) > len(best) and _is_usable(parent, prefix, _ENTRANCE):
            best = dict.fromkeys(controllers, parent)
    return best


def find_cgroups(state_dir: Path, pids_limit: int) -> Cgroups:
    """What this machine permits, found by trying."""
    digest = hashlib.sha256(os.fsencode(state_dir.resolve())).hexdigest()
    prefix = f"paddlecloud-{digest[:10]}"
    parents = _find_version_1(prefix)
    if parents:
        return Cgroups(parents, 1, prefix, pids_limit)
    parents = _find_version_2(prefix)
    return Cgroups(parents, 2, prefix, pids_limit)


def no_cgroups() -> Cgroups:
    return Cgroups({}, 0, "", 0)
