"""The two kinds of custom resource that are jobs, and in what they differ.

`PADDLE_JOB` and `TRAINING_JOB` decode to the same `ClusterJob` and live the same life; each has
its own words for roles and phases. Names of what is made for a job end in the role's word, which
no two kinds share, so jobs of different kinds may have the same name. Asked by the operator and by
the server's engine; `phase_of` turns the words of a status back into the one `Phase`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.jobspec import Role
from paddlecloud.core.phases import Phase
from paddlecloud.core.topology import PADDLEJOB_WORDS
from paddlecloud.forms import paddlejob, trainingjob
from paddlecloud.forms.custom_resources import ClusterJob, Warned

Json = dict[str, Any]
Parse = Callable[[object], tuple[ClusterJob, tuple[Warned, ...]]]


@dataclass(frozen=True, slots=True)
class PhaseWords:
    """What `status.phase` says."""

    pending: str
    starting: str
    running: str
    completed: str
    failed: str
    killed: str
    suspended: str

    @property
    def final(self) -> frozenset[str]:
        return frozenset({self.completed, self.failed, self.killed})


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    name: str
    group: str
    version: str
    plural: str
    parse: Parse
    roles: Mapping[Role, str]
    phases: PhaseWords
    suffix: str = ""  # of names that are the job's own without a role's word in them

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    def role_word(self, role: Role) -> str:
        return self.roles.get(role, role.value)

    def phase_of(self, body: Json) -> Phase:
        """The phase an object of this kind says it is in."""
        status = body.get("status") or {}
        word, says = status.get("phase") or "", _conditions(status)
        if word == self.phases.failed and says.get("Failed") == Phase.TIMED_OUT:
            return Phase.TIMED_OUT
        known = {
            "": Phase.SUBMITTED,
            self.phases.pending: Phase.QUEUED,
            self.phases.starting: Phase.STARTING,
            self.phases.running: Phase.RUNNING,
            self.phases.completed: Phase.SUCCEEDED,
            self.phases.failed: Phase.FAILED,
            self.phases.killed: Phase.KILLED,
            self.phases.suspended: Phase.SUSPENDED,
        }
        return known.get(word, Phase.STARTING)


def _conditions(status: Json) -> dict[str, str]:
    """The reasons of what is so, by its type."""
    rows = status.get("conditions") or ()
    return {
        str(row.get("type")): str(row.get("reason")) for row in rows if row.get("status") == "True"
    }


PADDLE_JOB = Kind(
    paddlejob.KIND,
    paddlejob.GROUP,
    paddlejob.VERSION,
    paddlejob.PLURAL,
    paddlejob.parse,
    PADDLEJOB_WORDS,
    PhaseWords(
        pending="Pending",
        starting="Starting",
        running="Running",
        completed="Completed",
        failed="Failed",
        killed="Terminated",
        suspended="Suspended",
    ),
)

TRAINING_JOB = Kind(
    trainingjob.KIND,
    trainingjob.GROUP,
    trainingjob.VERSION,
    trainingjob.PLURAL,
    trainingjob.parse,
    {},
    PhaseWords(
        pending="creating",
        starting="creating",
        running="running",
        completed="succeeded",
        failed="failed",
        killed="killed",
        suspended="suspended",
    ),
    suffix=".trainingjob",
)

KINDS = (PADDLE_JOB, TRAINING_JOB)


def kind_named(name: str) -> Kind | None:
    return next((kind for kind in KINDS if kind.name == name), None)
