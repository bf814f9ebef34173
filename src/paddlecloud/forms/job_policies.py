"""The fields about a job's life that both custom resources share, read and written alike.

`read(reading, get)` takes what is there, whatever the form calls the place; `written(job)` is the
other way: only what differs from the default, so that `read` gives the same again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paddlecloud.core.jobspec import CleanPolicy, Priority, RestartRule
from paddlecloud.forms.custom_resources import ClusterJob, GangPolicy, Reading
from paddlecloud.forms.fields import MAX_REPLICAS, MAX_RESTARTS

KEYS = (
    "suspend",
    "backoffLimit",
    "restartExitCodes",
    "activeDeadlineSeconds",
    "priority",
    "schedulingPolicy",
)
MAX_DEADLINE_S = 10**9

Get = Callable[[str], tuple[str, Any]]  # key -> its path as written, and the value

_GANG_KEYS = ("minAvailable", "queue", "priorityClass", "minResources")
_GROUP_KEYS = ("group", "mayBorrow")
_CLEAN = {policy.value: policy for policy in CleanPolicy}
_PRIORITY = {priority.word: priority for priority in Priority}


@dataclass(frozen=True, slots=True)
class Policies:
    restart: RestartRule
    wall_time_s: int
    priority: Priority
    suspend: bool
    gang: GangPolicy | None
    group: str
    may_borrow: bool


def read(reading: Reading, get: Get, restarts: int = 0) -> Policies:
    """`restarts` is how often failed pods start again where the object does not say."""
    gang, group, may_borrow = _scheduling(reading, *get("schedulingPolicy"))
    return Policies(
        restart=_restart(reading, get, restarts),
        wall_time_s=reading.whole(*get("activeDeadlineSeconds"), 0, 0, MAX_DEADLINE_S),
        priority=reading.choice(*get("priority"), _PRIORITY, "normal"),
        suspend=reading.flag(*get("suspend")),
        gang=gang,
        group=group,
        may_borrow=may_borrow,
    )


def read_clean(reading: Reading, where: str, value: object, default: CleanPolicy) -> CleanPolicy:
    found: CleanPolicy = reading.choice(where, value, _CLEAN, default.value)
    return found


def _restart(reading: Reading, get: Get, restarts: int) -> RestartRule:
    limit = reading.whole(*get("backoffLimit"), restarts, 0, MAX_RESTARTS)
    where, codes = get("restartExitCodes")
    if codes is None:
        codes = []
    if not isinstance(codes, list):
        reading.faults.add(where, "must be a list of exit codes from 1 to 255")
        codes = []
    numbers = {reading.whole(f"{where}[{i}]", code, 1, 1, 255) for i, code in enumerate(codes)}
    return RestartRule(limit, frozenset(numbers))


def _scheduling(reading: Reading, where: str, value: object) -> tuple[GangPolicy | None, str, bool]:
    body = reading.mapping(where, value)
    reading.unknown_keys(where, body, (*_GANG_KEYS, *_GROUP_KEYS))
    group = reading.text(f"{where}.group", body.get("group"))
    may_borrow = reading.flag(f"{where}.mayBorrow", body.get("mayBorrow"))
    if not any(key in body for key in _GANG_KEYS):
        return None, group, may_borrow
    least = reading.mapping(f"{where}.minResources", body.get("minResources"))
    gang = GangPolicy(
        reading.whole(f"{where}.minAvailable", body.get("minAvailable"), 0, 0, 3 * MAX_REPLICAS),
        reading.text(f"{where}.queue", body.get("queue")),
        reading.text(f"{where}.priorityClass", body.get("priorityClass")),
        {name: str(amount) for name, amount in least.items()},
    )
    return gang, group, may_borrow


def written(job: ClusterJob, restarts: int = 0) -> dict[str, Any]:
    spec = job.spec
    scheduling: dict[str, Any] = {}
    if job.gang is not None:
        scheduling = _written_gang(job.gang)
    scheduling |= {"group": spec.group} if spec.group else {}
    scheduling |= {"mayBorrow": True} if spec.may_borrow else {}
    found = {
        "suspend": job.suspend,
        "restartExitCodes": sorted(spec.restart.exit_codes),
        "activeDeadlineSeconds": spec.wall_time_s,
        "priority": "" if spec.priority == Priority.NORMAL else spec.priority.word,
        "schedulingPolicy": scheduling,
    }
    limit = spec.restart.max_restarts
    return {
        **({"backoffLimit": limit} if limit != restarts else {}),
        **{key: value for key, value in found.items() if value},
    }


def _written_gang(gang: GangPolicy) -> dict[str, Any]:
    return {
        "minAvailable": gang.min_available,
        "queue": gang.queue,
        "priorityClass": gang.priority_class,
        "minResources": dict(gang.min_resources),
    }


def first_container(template: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The one that trains; an empty one where there is none."""
    pod = (template or {}).get("spec")
    containers = pod.get("containers") if isinstance(pod, Mapping) else None
    first = containers[0] if isinstance(containers, list) and containers else None
    return first if isinstance(first, Mapping) else {}


def grace_s(templates: list[Mapping[str, Any] | None]) -> float:
    """The longest grace a template asks for; the kubelet's own default where none does."""
    pods = [(template or {}).get("spec") for template in templates]
    graces = [pod.get("terminationGracePeriodSeconds") for pod in pods if isinstance(pod, Mapping)]
    given = [grace for grace in graces if isinstance(grace, int) and grace >= 0]
    return float(max(given)) if given else 30.0
