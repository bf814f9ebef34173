"""Reads of jobs: rows to plain dictionaries, fast; no engine is asked.

Everything is read by SQL and tuples rather than by model instances (several times faster for a
page of a hundred). A caller sees its own jobs, may look at those shared with its groups, by id, and
an administrator sees everybody's, by id. What belongs to somebody else is answered exactly as what
does not exist.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

from paddlecloud.core.errors import InvalidInput, NotAllowed, NotFound
from paddlecloud.core.jobspec import Priority
from paddlecloud.core.names import is_job_id
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch
from paddlecloud.server.exchange import rfc3339
from paddlecloud.server.services import groups, sharing
from paddlecloud.wire.job_words import KILL_ASKED, KILL_STOPPING

_COLUMNS = (
    "j.id, j.name, j.run, j.phase, j.reason, j.cluster, j.mode, j.priority, j.submitted_at,"
    " j.started_at, j.ended_at, j.revision, j.counts, j.granted, j.cpu_milli, j.memory_bytes,"
    " j.gpu, j.restarts, j.max_restarts, j.package, j.failure, j.group_id, j.live, j.cancel_asked"
)
_PRIORITY_WORDS = {int(priority): priority.word for priority in Priority}
PHASE_FILTERS = ("live", "all", *(phase.value for phase in Phase))


def _shape(row: tuple[Any, ...], account: str, kills: dict[str, str]) -> dict[str, Any]:
    """A row of `_COLUMNS` as the API's job object."""
    return {
        "id": row[0],
        "name": row[1],
        "run": row[2],
        "phase": row[3],
        "reason": row[4],
        "account": account,
        "group": groups.name_of(row[21]),
        "cluster": row[5],
        "mode": row[6],
        "priority": _PRIORITY_WORDS[row[7]],
        "submitted_at": rfc3339(row[8]),
        "started_at": rfc3339(row[9]),
        "ended_at": rfc3339(row[10]),
        "revision": row[11],
        "roles": msgspec.Raw(row[12].encode()),
        "granted": row[13],
        "cpu": format_cpu(row[14]),
        "memory": format_memory(row[15]),
        "gpu": row[16],
        "restarts": row[17],
        "max_restarts": row[18],
        "package": row[19],
        "output": f"{row[19]}/output" if row[19] else "",
        "kill": kills.get(row[0]),
        "failure": msgspec.Raw(row[20].encode()),
    }


def kills(job_ids: list[str]) -> dict[str, str]:
    """How far the kill of each of these live jobs, which somebody has asked to end, has come."""
    if not job_ids:
        return {}
    marks = ", ".join(["%s"] * len(job_ids))
    told = fetch(
        "SELECT DISTINCT j.id FROM jobs_job j JOIN jobs_replica r ON r.job_id = j.id"
        f" AND r.run = j.run WHERE r.stopping AND j.id IN ({marks})",
        job_ids,
    )
    return dict.fromkeys(job_ids, KILL_ASKED) | {row[0]: KILL_STOPPING for row in told}


def _shapes(rows: list[tuple[Any, ...]], account: str) -> list[dict[str, Any]]:
    asked = kills([row[0] for row in rows if row[22] and row[23]])
    return [_shape(row, account, asked) for row in rows]


# --- one job ---------------------------------------------------------------------------------


def _missing(ref: str) -> NotFound:
    shown = ref if len(ref) <= 80 else ref[:79] + "…"
    return NotFound(f"no job {shown}", field="job", hint="paddlecloud get jobs -a lists them all")


def find_id(caller: Principal, ref: str, *, to_look: bool = False) -> str:
    """The id behind a job id or a name: the live job of that name, else the latest.

    `to_look`: nothing will be changed, so a job shared with the caller's groups does as well.
    """
    job_id = ""
    if is_job_id(ref):
        owner = "" if caller.is_admin else " AND account_id = %s"
        rows = fetch(
            f"SELECT id FROM jobs_job WHERE id = %s AND NOT deleted{owner}",
            (ref,) if caller.is_admin else (ref, caller.account_id),
        )
        job_id = rows[0][0] if rows else ""
        if not job_id and to_look and sharing.is_shared(caller, ref):
            job_id = ref
    if not job_id:
        rows = fetch(
            "SELECT id FROM jobs_job WHERE account_id = %s AND name = %s AND NOT deleted"
            " ORDER BY live DESC, submitted_at DESC LIMIT 1",
            (caller.account_id, ref),
        )
        job_id = rows[0][0] if rows else ""
    if not job_id and not to_look and is_job_id(ref) and sharing.is_shared(caller, ref):
        raise NotAllowed(
            "this job is shared with you to look at; only who submitted it may change it"
        )
    if not job_id or (caller.job_id and caller.job_id != job_id):
        raise _missing(ref)
    return job_id


def visible_id(caller: Principal, ref: str) -> str:
    """As `find_id`, of a job that is only looked at."""
    return find_id(caller, ref, to_look=True)


def id_to_end(caller: Principal, ref: str) -> str:
    """As `find_id`, of a job to be killed: who owns the group it is shared with may do that."""
    try:
        return find_id(caller, ref)
    except NotAllowed:
        job_id = visible_id(caller, ref)
    if not sharing.may_end(caller, job_id):
        raise NotAllowed(
            "only who submitted a job, or an owner of the group it is shared with, may kill it"
        )
    return job_id


def read(job_id: str, *, with_spec: bool = False) -> dict[str, Any]:
    rows = fetch(
        f"SELECT {_COLUMNS}, j.spec, a.username FROM jobs_job j"
        " JOIN accounts_account a ON a.id = j.account_id WHERE j.id = %s AND NOT j.deleted",
        (job_id,),
    )
    if not rows:
        raise _missing(job_id)
    job = _shapes(rows, rows[0][25])[0]
    if with_spec:
        job["spec"] = msgspec.Raw(rows[0][24].encode())
    return job


# --- lists -----------------------------------------------------------------------------------


def make_cursor(submitted_at: float, job_id: str) -> str:
    text = f"{submitted_at!r}|{job_id}"
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def read_cursor(cursor: str) -> tuple[float, str]:
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode()
        at, _, job_id = text.partition("|")
        if is_job_id(job_id):
            return float(at), job_id
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass
    raise InvalidInput(
        "is not a cursor of this server", field="cursor", hint="take it from `next` of a page"
    )


def list_where(
    caller: Principal, phase: str, name: str | None, cursor: str | None, kind: str = "normal"
) -> tuple[str, list[Any]]:
    """The condition of a page: jobs of that kind, newest first, after the cursor."""
    among, values = sharing.among(caller, kind)
    where = f"{among} AND NOT j.deleted"
    if phase == "live":
        where += " AND j.live"
    elif phase != "all":
        if phase not in PHASE_FILTERS:
            raise InvalidInput(
                f"is no phase: {phase[:40]}",
                field="phase",
                hint=f"allowed are {', '.join(PHASE_FILTERS)}",
            )
        where += " AND j.phase = %s"
        values.append(phase)
    if name:
        where += " AND j.name = %s"
        values.append(name)
    if caller.job_id:
        where += " AND j.id = %s"
        values.append(caller.job_id)
    if cursor:
        where += " AND (j.submitted_at, j.id) < (%s, %s)"
        values += read_cursor(cursor)
    return f" WHERE {where} ORDER BY j.submitted_at DESC, j.id DESC LIMIT %s", values


def account_revision(account_id: int) -> int:
    rows = fetch("SELECT revision FROM accounts_account WHERE id = %s", (account_id,))
    return int(rows[0][0]) if rows else 0


def page(
    caller: Principal,
    *,
    phase: str,
    name: str | None,
    limit: int,
    cursor: str | None,
    kind: str = "normal",
) -> dict[str, Any]:
    # The revision first: a change in between makes the client look once too often, never too few.
    revision = account_revision(caller.account_id)
    where, values = list_where(caller, phase, name, cursor, kind)
    # No join: the planner would sort all rows, and almost always every row is the caller's anyway.
    rows = fetch(f"SELECT {_COLUMNS} FROM jobs_job j{where}", [*values, limit + 1])
    more = len(rows) > limit
    rows = rows[:limit]
    items = _shapes(rows, caller.name)
    if kind != "normal":
        owners = sharing.owners([row[0] for row in rows])
        for item in items:
            item["account"] = owners[item["id"]]
    return {
        "items": items,
        "next": make_cursor(rows[-1][8], rows[-1][0]) if more else None,
        "revision": revision,
    }


def totals(caller: Principal) -> dict[str, int]:
    rows = fetch(
        "SELECT phase, count(*) FROM jobs_job WHERE account_id = %s AND live AND NOT deleted"
        " GROUP BY phase",
        (caller.account_id,),
    )
    by_phase = dict(rows)
    return {
        "live": sum(by_phase.values()),
        "queued": by_phase.get("Queued", 0) + by_phase.get("Submitted", 0),
        "running": by_phase.get("Running", 0) + by_phase.get("Starting", 0),
    }


# --- what belongs to a job -------------------------------------------------------------------


def runs(job_id: str) -> list[dict[str, Any]]:
    rows = fetch(
        "SELECT run, phase, reason, package, submitted_at, started_at, ended_at, restarts, failure"
        " FROM jobs_run WHERE job_id = %s ORDER BY run",
        (job_id,),
    )
    return [
        {
            "run": row[0],
            "phase": row[1],
            "reason": row[2],
            "package": row[3],
            "submitted_at": rfc3339(row[4]),
            "started_at": rfc3339(row[5]),
            "ended_at": rfc3339(row[6]),
            "restarts": row[7],
            "failure": msgspec.Raw(row[8].encode()),
        }
        for row in rows
    ]


def current_run(job_id: str) -> tuple[str, int]:
    """(name, run)."""
    rows = fetch("SELECT name, run FROM jobs_job WHERE id = %s", (job_id,))
    if not rows:
        raise _missing(job_id)
    return rows[0][0], rows[0][1]


def check_run(job_id: str, run: int | None) -> tuple[str, int]:
    """(job name, run): the current run unless one that exists was asked for."""
    name, current = current_run(job_id)
    if run is None:
        return name, current
    if not 1 <= run <= current:
        raise NotFound(f"{name} has no run {run}; it has had {current}", field="run")
    return name, run


def replicas(job_id: str, run: int | None) -> list[dict[str, Any]]:
    name, run = check_run(job_id, run)
    rows = fetch(
        'SELECT role, "index", attempt, state, address, node, started_at, ended_at, exit,'
        " stopping FROM jobs_replica WHERE job_id = %s AND run = %s"
        ' ORDER BY role DESC, "index", attempt',
        (job_id, run),
    )
    return [
        {
            "name": f"{name}-{row[0]}-{row[1]}",
            "role": row[0],
            "index": row[1],
            "run": run,
            "attempt": row[2],
            "state": row[3],
            "address": row[4],
            "node": row[5],
            "started_at": rfc3339(row[6]),
            "ended_at": rfc3339(row[7]),
            "exit": msgspec.Raw(row[8].encode()),
            "stop_asked": bool(row[9]),
        }
        for row in rows
    ]


def events(job_id: str, after: int, limit: int) -> dict[str, Any]:
    rows = fetch(
        "SELECT id, at, run, reason, message, severity, replica FROM jobs_event"
        " WHERE job_id = %s AND id > %s ORDER BY id LIMIT %s",
        (job_id, after, limit + 1),
    )
    more = len(rows) > limit
    items = [
        {
            "seq": row[0],
            "at": rfc3339(row[1]),
            "run": row[2],
            "reason": row[3],
            "message": row[4],
            "severity": row[5],
            "replica": row[6],
        }
        for row in rows[:limit]
    ]
    return {"items": items, "next": items[-1]["seq"] if more else None}
