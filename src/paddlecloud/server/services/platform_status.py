"""`status`: the platform at a glance. The engine is asked, but never waited for long."""

from __future__ import annotations

import os
from typing import Any

import paddlecloud
from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.engines.protocols import Capacity
from paddlecloud.engines.registry import may_serve_second_account
from paddlecloud.server import supervision
from paddlecloud.server.authentication import Principal
from paddlecloud.server.process import here
from paddlecloud.server.services import job_rows

_PATIENCE_S = 1.0


def describe(caller: Principal) -> dict[str, Any]:
    process = here()
    engine = process.engines.default
    notes: list[str] = []
    capacity = None
    try:
        seen = process.asking.ask(_PATIENCE_S, f"the engine of {engine.cluster}", engine.capacity)
        capacity = _capacity(seen)
        notes += seen.notes
    except PaddleCloudError as error:
        notes.append(error.message)
    is_safe, reason = may_serve_second_account(engine)
    if not is_safe:
        notes.append(f"one account only: {reason}")
    above = supervision.read(process.state_dir / "run")
    return {
        "version": paddlecloud.__version__,
        "pid": os.getpid(),
        "supervisor_pid": above.pid,
        "restarts": above.restarts,
        "last_restart": above.last_restart,
        "endpoint": process.endpoint,
        "engine": engine.kind,
        "cluster": engine.cluster,
        "account": caller.name,
        "capacity": capacity,
        "notes": notes,
        "jobs": job_rows.totals(caller),
        "pfs": process.files.describe(),
    }


def _capacity(seen: Capacity) -> dict[str, Any]:
    return {**seen.total.to_json(), "cores": seen.cores, "free": seen.free.to_json()}
