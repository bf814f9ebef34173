"""A Kubernetes control plane of the benchmark's own, with pretended nodes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from _report import CannotMeasure

_TOOLS = Path(__file__).resolve().parent.parent / "tools" / "cluster"


def programs() -> Path:
    """Where what `make cluster-programs` builds is."""
    found = subprocess.run([_TOOLS / "build.sh", "--where"], capture_output=True, text=True)
    folder = Path(found.stdout.strip())
    if not (folder / ".complete").exists():
        raise CannotMeasure("the cluster's programs are not built; run: make cluster-programs")
    return folder


@contextmanager
def running(folder: Path, nodes: int) -> Iterator[Path]:
    """A cluster with its state in this folder; gives an administrator's kubeconfig."""
    built = programs()
    tool = [sys.executable, str(_TOOLS / "run.py")]
    state = f"{folder}/cluster"
    try:
        words = ["--state", state, "--programs", str(built), "--nodes", str(nodes)]
        started = subprocess.run([*tool, "start", *words], capture_output=True, text=True)
        if started.returncode:
            raise CannotMeasure(started.stderr.strip())
        yield Path(started.stdout.strip())
    finally:
        subprocess.run([*tool, "stop", "--state", state], check=True)
