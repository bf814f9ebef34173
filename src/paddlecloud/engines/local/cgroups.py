"""Memory, CPU and process limits by cgroup, where this machine lets us.

One group per attempt, below one group per state directory, below our own cgroup or the
hierarchy's root, whichever may be written. Version 1 (a hierarchy per controller), version 2
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

SHIM_BYTES = 4 * 2**20  # what our own shim takes of a group: the program gets its memory in full
_CONTROLLERS = ("memory", "cpu", "pids")


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

    def enter(self, pid: int) -> None:
        """Put a process in; what it begets from then on is in too."""
        for path in self.dirs:
            _write(path / "cgroup.procs", pid)

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
    """Makes groups. `bases` are this platform's own directories, one per hierarchy."""

    def __init__(self, bases: dict[str, Path], version: int, pids_limit: int) -> None:
        self._bases = bases  # controller → directory; version 2 has the same one thrice
        self._version = version
        self._pids_limit = pids_limit

    @property
    def controls_memory(self) -> bool:
        return "memory" in self._bases

    @property
    def controls_cpu(self) -> bool:
        return "cpu" in self._bases

    def planned(self, name: str) -> Group | None:
        """The group that `make` would make; None where there is nothing to make it with."""
        if not self._bases:
            return None
        return Group(tuple(dict.fromkeys(base / name for base in self._bases.values())))

    def make(self, group: Group, resources: Resources) -> None:
        """Make a planned group and set its limits."""
        for path in group.dirs:
            path.mkdir(exist_ok=True)
        for controller, base in self._bases.items():
            for file, value in self._settings(controller, resources):
                path = base / group.dirs[0].name / file
                if path.exists():
                    _write(path, value)

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
        for base in dict.fromkeys(self._bases.values()):
            for path in [p for p in base.iterdir() if p.is_dir() and p not in keep]:
                with contextlib.suppress(OSError):
                    os.rmdir(path)

    def close(self) -> None:
        """Remove our own directories if nothing is left in them."""
        for base in dict.fromkeys(self._bases.values()):
            with contextlib.suppress(OSError):
                os.rmdir(base)


def _own_groups() -> dict[str, str]:
    """controller → our path in its hierarchy; the empty controller is version 2."""
    own: dict[str, str] = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path
    return own


def _mounts() -> list[tuple[str, str, set[str]]]:
    """(mount point, file system type, options) of every cgroup hierarchy."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            found.append((where, kind, set(options.split(","))))
    return found


def _can_enter(path: Path) -> bool:
    """Ask the kernel, not the permission bits: a process really moves."""
    command = ["/bin/sh", "-c", 'echo 0 > "$1"', "sh", str(path / "cgroup.procs")]
    return subprocess.run(command, capture_output=True).returncode == 0


def _usable(parent: Path, name: str, required: str) -> Path | None:
    """Our directory below `parent`, if a group in it would work."""
    base = parent / name
    probe = base / "probe"
    try:
        base.mkdir(exist_ok=True)
        if required:
            _write(base / "cgroup.subtree_control", required)
        probe.mkdir(exist_ok=True)
        works = _can_enter(probe)
    except OSError:
        works = False
    for path in (probe, *(() if works else (base,))):
        with contextlib.suppress(OSError):
            os.rmdir(path)
    return base if works else None


def _candidates(mount: str, own: str | None) -> list[Path]:
    root = Path(mount)
    inside = root / (own or "/").lstrip("/")
    return [path for path in dict.fromkeys((inside, root)) if path.is_dir()]


def find_cgroups(state_dir: Path, pids_limit: int) -> Cgroups:
    """What this machine permits, found by trying."""
    name = "paddlecloud-" + hashlib.sha256(os.fsencode(state_dir.resolve())).hexdigest()[:10]
    own = _own_groups()
    bases: dict[str, Path] = {}
    for where, kind, options in _mounts():
        if kind != "cgroup":
            continue
        for controller in set(_CONTROLLERS) & options:
            for parent in _candidates(where, own.get(controller)):
                if controller not in bases and (base := _usable(parent, name, "")):
                    bases[controller] = base
    if bases:
        return Cgroups(bases, 1, pids_limit)
    for where, kind, _ in _mounts():
        if kind != "cgroup2":
            continue
        for parent in _candidates(where, own.get("")):
            offered = (parent / "cgroup.controllers").read_text().split()
            enabled = [c for c in _CONTROLLERS if c in offered]
            if base := _usable(parent, name, " ".join(f"+{c}" for c in enabled)):
                return Cgroups(dict.fromkeys(enabled or ["kill"], base), 2, pids_limit)
    return Cgroups({}, 0, pids_limit)
