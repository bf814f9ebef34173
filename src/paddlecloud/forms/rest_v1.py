"""The submit body of the REST interface: the keys of seed 004, of the first client, and ours.

`parse(body, default_cluster=...)` reads a decoded JSON value; `render(spec)` writes the body, and
`parse(render(spec)) == spec` for every spec this form can express (trainers and parameter
servers, no pod templates, default back-off). Unknown keys are faults.

Differences from the first server, on purpose: `pservers` unset means as many as trainers (seed
004; the server said 1), unless `mode` says otherwise; `min_instance` and `max_instance` work, so
the 1 and 1 its client always sent beside any parallelism mean "not set"; a `job_package` that is
a /pfs path is used in place, any other is only where the client found the folder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.core.jobspec import JobSpec, RestartRule, Role
from paddlecloud.core.resources import Resources, format_cpu, format_memory
from paddlecloud.core.topology import ROLES_BY_MODE
from paddlecloud.forms.draft import Draft, settle
from paddlecloud.forms.faults import BadValue, FaultList, nearest, shorten
from paddlecloud.forms.fields import (
    MODES,
    PAIR_CHECKS,
    READERS,
    cluster_of_package,
)

MAX_KEYS = 100
MAX_PAIRS = 1000

# Field of Draft -> its keys, ours first. Each is also read in camelCase.
_KEYS: Mapping[str, tuple[str, ...]] = {
    "name": ("name", "jobname"),
    "package": ("job_package", "package"),
    "cluster": ("datacenter", "cluster"),
    "parallelism": ("parallelism",),
    "cpu_milli": ("cpu",),
    "gpu": ("gpu",),
    "memory_bytes": ("memory",),
    "pservers": ("pservers",),
    "pscpu_milli": ("pscpu",),
    "psmemory_bytes": ("psmemory",),
    "entry": ("entry",),
    "topology": ("topology",),
    "runtime": ("image", "runtime"),
    "registry": ("registry",),
    "passes": ("passes",),
    "fault_tolerant": ("faulttolerant", "fault_tolerant"),
    "min_instance": ("min_instance", "min"),
    "max_instance": ("max_instance", "max"),
    "mode": ("mode",),
    "priority": ("priority",),
    "wall_time_s": ("wall_time", "wall_time_s"),
    "max_restarts": ("max_restarts",),
    "restart_exit_codes": ("restart_exit_codes",),
    "grace_s": ("grace_s", "grace"),
    "clean": ("clean_policy",),
    "package_digest": ("package_digest",),
    "env": ("env",),
    "labels": ("labels",),
    "annotations": ("annotations",),
    "may_borrow": ("may_borrow",),
    "group": ("group",),
}
# Fields whose empty text means "not set": the first client sends every key.
_EMPTY_IS_UNSET = frozenset(
    {"package", "cluster", "entry", "topology", "runtime", "registry", "package_digest", "group"}
)


def _camel(key: str) -> str:
    head, *rest = key.split("_")
    return head + "".join(word.capitalize() for word in rest)


_FIELD_BY_KEY: Mapping[str, str] = {
    spelling: name
    for name, keys in _KEYS.items()
    for key in keys
    for spelling in (key, _camel(key))
}


def field_of(key: str) -> str:
    """The field of Draft that a key of the body stands for; empty for a key that is none."""
    return _FIELD_BY_KEY.get(key, "")


def parse(body: object, *, default_cluster: str) -> JobSpec:
    """The spec a decoded JSON body means; raises InvalidInput with every fault there is."""
    faults = FaultList()
    draft, written = Draft(), dict[str, str]()
    _read_body(_check_body(body), draft, written, faults)
    _forget_old_defaults(draft)
    draft.cluster = draft.cluster or cluster_of_package(draft.package or "") or default_cluster
    if draft.package and cluster_of_package(draft.package) != draft.cluster:
        field = written.get("cluster", "datacenter")
        faults.add(field, f"is not the one of {written['package']}", draft.cluster)
    has_start = any(name in written for name in ("entry", "topology"))
    if not draft.entry and not draft.topology and not (has_start and faults):
        faults.add("entry", "no topology or entry specified")
    spec = settle(draft, faults, lambda name: written.get(name, _KEYS[name][0]))
    faults.raise_if_any()
    return spec


def _check_body(body: object) -> Mapping[Any, Any]:
    if not isinstance(body, Mapping):
        problem = 'must be a JSON object such as {"name": "my-job", ...}'
        raise InvalidInput(faults=[Fault("body", problem)])
    if len(body) > MAX_KEYS:  # looking for what each was meant to be takes time
        problem = f"has {len(body)} keys; at most {MAX_KEYS} are allowed"
        raise InvalidInput(faults=[Fault("body", problem)])
    return body


def _read_body(
    body: Mapping[Any, Any], draft: Draft, written: dict[str, str], faults: FaultList
) -> None:
    for key, value in body.items():
        name = _FIELD_BY_KEY.get(key) if isinstance(key, str) else None
        if name is None:
            near = nearest(str(key), _FIELD_BY_KEY)
            advice = f"; did you mean {near}?" if near else ""
            faults.add(shorten(str(key)) or '""', f"unknown key{advice}")
            continue
        if value is None or (value == "" and name in _EMPTY_IS_UNSET):
            continue
        if name in written and body[written[name]] != value:
            faults.add(key, f"contradicts {written[name]}", _shown(value))
            continue
        written[name] = key
        try:
            setattr(draft, name, _read_value(name, value))
        except ValueError as error:
            faults.add(key, str(error), _shown(value))


def _forget_old_defaults(draft: Draft) -> None:
    if (draft.min_instance, draft.max_instance) == (1, 1) and draft.parallelism is not None:
        draft.min_instance = draft.max_instance = None


# --- JSON values -----------------------------------------------------------------------------


def _read_value(name: str, value: object) -> Any:
    if name in PAIR_CHECKS:
        return _read_pairs(value, PAIR_CHECKS[name])
    if name in ("fault_tolerant", "may_borrow"):
        return value if isinstance(value, bool) else READERS[name](_as_text(value))
    if name == "restart_exit_codes" and isinstance(value, list):
        return READERS[name](",".join(_as_text(code) for code in value))
    return READERS[name](_as_text(value))


def _as_text(value: object) -> str:
    """How a user would have written it; numbers and texts only."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        raise BadValue("must not be true or false")
    if isinstance(value, int):
        if abs(value) >= 10**18:
            raise BadValue("is too large a number")
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise BadValue("is not a finite number")
        if value.is_integer() and abs(value) < 10**18:
            return str(int(value))
        return repr(value)
    raise BadValue(f"must be a number or a text, not {_kind(value)}")


def _read_pairs(value: object, check: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise BadValue(f'must be an object such as {{"NAME": "value"}}, not {_kind(value)}')
    if len(value) > MAX_PAIRS:
        raise BadValue(f"has {len(value)} entries; at most {MAX_PAIRS} are allowed")
    pairs = {}
    for name, item in value.items():
        text = _as_text(item)
        try:
            check(str(name), text)
        except ValueError as error:
            raise BadValue(f"{str(name)[:60]!r} {error}") from None
        pairs[str(name)] = text
    return pairs


def _kind(value: object) -> str:
    kinds = {list: "a list", dict: "an object", bool: "true or false", str: "a text"}
    return kinds.get(type(value), "a number" if isinstance(value, int | float) else "this")


def _shown(value: object) -> str:
    """A value for a message; never its whole inside."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value) if not isinstance(value, int) or abs(value) < 10**18 else "a huge number"
    return _kind(value)


# --- and back --------------------------------------------------------------------------------


def render(spec: JobSpec) -> dict[str, Any]:
    """The body that means this spec. Raises ValueError for what this form cannot express."""
    _check_expressible(spec)
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)
    body: dict[str, Any] = {
        "name": spec.name,
        "job_package": spec.package,
        "datacenter": spec.cluster,
        "parallelism": trainer.replicas,
        "cpu": _cpu(trainer.resources.cpu_milli),
        "gpu": trainer.resources.gpu,
        "memory": format_memory(trainer.resources.memory_bytes),
        "pservers": servers.replicas if servers else 0,
    }
    if servers:
        body["pscpu"] = _cpu(servers.resources.cpu_milli)
        body["psmemory"] = format_memory(servers.resources.memory_bytes)
    body |= {
        "entry": spec.entry,
        "topology": spec.topology,
        "image": spec.runtime,
        "registry": spec.registry,
        "passes": spec.passes,
        "faulttolerant": spec.fault_tolerant,
        "mode": spec.mode.value,
        "priority": spec.priority.word,
        "wall_time": spec.wall_time_s,
        "max_restarts": spec.restart.max_restarts,
        "restart_exit_codes": sorted(spec.restart.exit_codes),
        "grace_s": spec.grace_s,
        "clean_policy": spec.clean.value,
        "package_digest": spec.package_digest,
        "env": dict(spec.env),
        "labels": dict(spec.labels),
        "annotations": dict(spec.annotations),
        "may_borrow": spec.may_borrow,
        **({"group": spec.group} if spec.group else {}),
    }
    if (trainer.min_replicas, trainer.max_replicas) != (trainer.replicas, trainer.replicas):
        body["min_instance"] = trainer.min_replicas
        body["max_instance"] = trainer.max_replicas
    return body


def render_listed(spec: JobSpec) -> dict[str, Any]:
    """A job as `GET /api/v1/jobs` of seed 004 lists it."""
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)
    needs = servers.resources if servers else Resources()
    return {
        "name": spec.name,
        "job_package": spec.package,
        "parallelism": trainer.replicas,
        "cpu": _cpu(trainer.resources.cpu_milli),
        "gpu": trainer.resources.gpu,
        "memory": format_memory(trainer.resources.memory_bytes),
        "pservers": servers.replicas if servers else 0,
        "pscpu": _cpu(needs.cpu_milli),
        "psmemory": format_memory(needs.memory_bytes),
        "topology": spec.topology,
        "entry": spec.entry,
    }


def _cpu(milli: int) -> int | str:
    """Whole cores as the number every client of the seeds knows."""
    return milli // 1000 if milli % 1000 == 0 else format_cpu(milli)


def _check_expressible(spec: JobSpec) -> None:
    servers = spec.role(Role.PSERVER)
    usual_restart = RestartRule(spec.restart.max_restarts, spec.restart.exit_codes)
    if (
        spec.mode not in MODES
        or tuple(role.role for role in spec.roles) != ROLES_BY_MODE[spec.mode]
        or any(role.template is not None for role in spec.roles)
        or (servers and not servers.min_replicas == servers.replicas == servers.max_replicas)
        or spec.restart != usual_restart
    ):
        raise ValueError(f"job {spec.name} cannot be written as a v1 body")
