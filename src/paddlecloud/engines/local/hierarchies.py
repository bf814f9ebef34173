"""Where this process stands in the machine's cgroup hierarchies. Reads only."""

from __future__ import annotations

from pathlib import Path


def own_groups() -> dict[str, str]:
    """controller → our path in its hierarchy; the empty controller is version 2."""
    own: dict[str, str] = {}
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return own
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            own[controller] = path
    return own


def mounts() -> list[tuple[str, str, set[str]]]:
    """(mount point, file system type, options) of every hierarchy."""
    found = []
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options, *_ = line.split()
        if kind in ("cgroup", "cgroup2"):
            found.append((where, kind, set(options.split(","))))
    return found


def own_path(controller: str, kind: str) -> list[Path]:
    """Our own group and those above it, up to the top we can see; empty if there is none."""
    for where, mounted, options in mounts():
        if mounted == kind and (kind == "cgroup2" or controller in options):
            top = Path(where)
            own = top / own_groups().get(controller, "/").lstrip("/")
            # In a container our path may be told as the host sees it; then only the top is there.
            group = own if own.is_dir() else top
            return [group, *(p for p in group.parents if p == top or p.is_relative_to(top))]
    return []
