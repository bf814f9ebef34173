"""Algorithms: experiments that jobs belong to by `--algo-id`.

One belongs to an account; a group given with it lets that group's members use it and look at it.
What a caller may not use is answered exactly as what does not exist. Deleting one leaves its jobs
as they are, and is refused while one of them is live.
"""

from __future__ import annotations

import os
from typing import Any

from django.db import IntegrityError

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, NotFound
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.core.names import ALGORITHM_ID_BYTES, is_algorithm_id, new_algorithm_id
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch, writing
from paddlecloud.server.exchange import decode, rfc3339
from paddlecloud.server.jobs.models import Algorithm, Job
from paddlecloud.server.services import sharing

NOTE = "algo-id"  # the annotation of a job
_MAX_NAME = 128
_MAX_REMARK = 4096
_MOST = 1000
_COLUMNS = (
    'g.id, g.name, g."group", g.remark, g.created_at, a.username, (SELECT count(*) FROM jobs_job j'
    " WHERE j.algorithm = g.id AND NOT j.deleted) FROM jobs_algorithm g"
    " JOIN accounts_account a ON a.id = g.account_id"
)


def group_names(caller: Principal) -> tuple[str, ...]:
    """The groups whose algorithms a caller may use."""
    return sharing.group_names(caller.account_id)


def _mine(caller: Principal) -> tuple[str, list[Any]]:
    """The condition that a row is the caller's to use."""
    groups = group_names(caller)
    marks = ", ".join(["%s"] * len(groups))
    return f'(g.account_id = %s OR g."group" IN ({marks}))', [caller.account_id, *groups]


def _shape(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "id": row[0],
        "name": row[1],
        "group": row[2],
        "remark": row[3],
        "created_at": rfc3339(row[4]),
        "account": row[5],
        "jobs": row[6],
    }


def listed(caller: Principal) -> list[dict[str, Any]]:
    """Newest first."""
    where, values = _mine(caller)
    rows = fetch(
        f"SELECT {_COLUMNS} WHERE {where} ORDER BY g.created_at DESC, g.id LIMIT %s",
        [*values, _MOST],
    )
    return [_shape(row) for row in rows]


def find(caller: Principal, ref: str) -> dict[str, Any]:
    """By id, or by the name of one of the caller's own; an administrator any, by id."""
    where, values = ("g.id = %s", [ref]) if is_algorithm_id(ref) else _by_name(caller, ref)
    if not caller.is_admin:
        more, more_values = _mine(caller)
        where, values = f"{where} AND {more}", [*values, *more_values]
    rows = fetch(f"SELECT {_COLUMNS} WHERE {where}", values)
    if not rows:
        raise _missing(ref)
    return _shape(rows[0])


def _by_name(caller: Principal, name: str) -> tuple[str, list[Any]]:
    return "g.name = %s AND g.account_id = %s", [name, caller.account_id]


def _missing(ref: str) -> NotFound:
    shown = ref if len(ref) <= 80 else ref[:79] + "…"
    hint = "paddlecloud algo list shows those you may use"
    return NotFound(f"no algorithm {shown}", field="algorithm", hint=hint)


def with_jobs(caller: Principal, ref: str, limit: int) -> dict[str, Any]:
    """One with the latest jobs in it that the caller may look at."""
    algorithm = find(caller, ref)
    owner = "" if caller.is_admin else " AND j.account_id = %s"
    values = [algorithm["id"], *([] if caller.is_admin else [caller.account_id]), limit]
    rows = fetch(
        "SELECT j.id, j.name, j.phase, j.submitted_at, j.ended_at, a.username, j.spec"
        " FROM jobs_job j JOIN accounts_account a ON a.id = j.account_id"
        f" WHERE j.algorithm = %s AND NOT j.deleted{owner}"
        " ORDER BY j.submitted_at DESC, j.id DESC LIMIT %s",
        values,
    )
    found = [
        {
            "id": row[0],
            "name": row[1],
            "title": decode(row[6]).get("annotations", {}).get("job-name") or row[1],
            "phase": row[2],
            "submitted_at": rfc3339(row[3]),
            "ended_at": rfc3339(row[4]),
            "account": row[5],
        }
        for row in rows
    ]
    return {**algorithm, "items": found}


def create(caller: Principal, body: dict[str, Any]) -> dict[str, Any]:
    name, group, remark = _checked(caller, body)
    with writing():
        algorithm = Algorithm(
            id=new_algorithm_id(os.urandom(ALGORITHM_ID_BYTES)),
            account_id=caller.account_id,
            name=name,
            group=group,
            remark=remark,
            created_at=clock.now(),
        )
        if Algorithm.objects.filter(account_id=caller.account_id, name=name).exists():
            raise _taken(name)
        try:
            algorithm.save(force_insert=True)
        except IntegrityError:  # another server process was quicker
            raise _taken(name) from None
    return find(caller, algorithm.id)


def _taken(name: str) -> Conflict:
    return Conflict(
        f"you have an algorithm called {name}", field="name", hint="choose another name"
    )


def _checked(caller: Principal, body: dict[str, Any]) -> tuple[str, str, str]:
    """(name, group, remark); every fault at once."""
    known = {"name": _MAX_NAME, "group": _MAX_NAME, "remark": _MAX_REMARK}
    faults = [Fault(key, "unknown key") for key in sorted(set(body) - set(known))]
    texts = {}
    for key, most in known.items():
        value = body.get(key, "")
        is_text = isinstance(value, str) and len(value) <= most and value.isprintable()
        if not is_text or (key == "name" and not value.strip()):
            least = "1" if key == "name" else "0"
            faults.append(Fault(key, f"must be a text of {least} to {most} characters, on a line"))
        texts[key] = value
    if not faults and texts["group"] and texts["group"] not in group_names(caller):
        allowed = ", ".join(group_names(caller))
        faults.append(Fault("group", f"is no group of yours; yours: {allowed}", texts["group"]))
    if faults:
        raise InvalidInput(faults=faults)
    return texts["name"].strip(), texts["group"], texts["remark"]


def delete(caller: Principal, ref: str) -> None:
    with writing():
        algorithm = find(caller, ref)
        rows = Algorithm.objects.filter(pk=algorithm["id"])
        if not caller.is_admin:
            rows = rows.filter(account_id=caller.account_id)
        if not rows.exists():
            raise Conflict(
                f"{algorithm['name']} belongs to {algorithm['account']}, who alone can delete it"
            )
        live = Job.objects.filter(algorithm=algorithm["id"], live=True, deleted=False)
        if names := list(live.values_list("id", flat=True)[:5]):
            raise Conflict(
                f"{algorithm['name']} has live jobs: {', '.join(names)}",
                hint="kill them, or wait for their end",
            )
        rows.delete()


# --- jobs ------------------------------------------------------------------------------------


def named_by(spec: JobSpec) -> str:
    return spec.annotations.get(NOTE, "")


def check(caller: Principal, spec: JobSpec) -> None:
    """Refuse a job that names an algorithm which is not there for its owner."""
    ref = named_by(spec)
    if not ref:
        return
    where, values = _mine(caller)
    if not fetch(f"SELECT 1 FROM jobs_algorithm g WHERE g.id = %s AND {where}", [ref, *values]):
        raise InvalidInput(
            f"there is no algorithm {ref[:80]} you may use",
            field=NOTE,
            hint="paddlecloud algo list shows them, paddlecloud algo create makes one",
        )
