"""What the supervisor wrote down about this server. Read for `status` and the run file only.

The file counts when it names our own parent: one left by another life of the platform does not.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from paddlecloud.server.exchange import rfc3339
from paddlecloud.wire.shapes import RestartShape

_PART = "server"


@dataclass(frozen=True)
class Supervision:
    """`pid` is None, and nothing has been restarted, when nobody supervises us."""

    pid: int | None = None
    restarts: int = 0
    last_restart: RestartShape | None = None


def read(run_dir: Path) -> Supervision:
    try:
        facts = json.loads((run_dir / "supervisor.json").read_bytes())
        if facts["pid"] != os.getppid():
            return Supervision()
        own = facts["parts"][_PART]
        restarts = int(own["restarts"])
        last: RestartShape | None = None
        if restarts:
            last = {"at": rfc3339(own["last_end_at"]) or "", "reason": str(own["last_end"])}
        return Supervision(int(facts["pid"]), restarts, last)
    except (OSError, ValueError, KeyError, TypeError):
        return Supervision()
