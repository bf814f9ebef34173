"""Which start of the machine this is: what was written before another may not be on the disk."""

from __future__ import annotations

from pathlib import Path


def boot_id() -> str:
    """The same until the machine starts again; empty where nobody can tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
