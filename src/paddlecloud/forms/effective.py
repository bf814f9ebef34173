"""What a specification comes to, in the few numbers people ask for before they submit.

`effective(spec)` is the block of that name in every dry run. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paddlecloud.core.jobspec import JobSpec, Mode, Role

# The annotation that says in which other family's words a job was written.
LAUNCHER = "launcher"
LAUNCHERS: Mapping[str, str] = {
    "mpi": "one trainer per node; the command itself is started on each, without mpirun",
    "slurm": "one trainer per task; the command itself is started for each, without srun",
}


def effective(spec: JobSpec) -> dict[str, Any]:
    servers = spec.role(Role.PSERVER)
    launcher = spec.annotations.get(LAUNCHER, "")
    return {
        "trainers": spec.trainers.replicas,
        "gpu_total": spec.trainers.resources.gpu * spec.trainers.replicas,
        "standalone": spec.mode == Mode.SINGLE,
        "mode": launcher if launcher in LAUNCHERS else spec.mode.value,
        "ps_num": servers.replicas if servers else 0,
        "wall_time_seconds": spec.wall_time_s or None,
        "unlimited": spec.wall_time_s == 0,
        "priority": spec.priority.word,
    }
