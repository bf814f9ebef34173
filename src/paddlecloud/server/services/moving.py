"""The order to move replicas of a live job off their hosts.

Everything that is wrong with an order is said before anything is kept: replicas that do not exist
(with those that do), hosts they are not on (with the one they are on). What is kept names one
attempt each, so the feeder may tell the engine as often as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import Move
from paddlecloud.forms.faults import FaultList, nearest
from paddlecloud.server.database import after_commit, fetch, writing
from paddlecloud.server.exchange import decode, encode
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here
from paddlecloud.server.services import new_jobs
from paddlecloud.server.services.revisions import announce, next_revision
from paddlecloud.wire.shapes import MoveBody

_MOST = 10_000
_SHOWN = 20
_FIELD = "replicas"


def move(job_id: str, by: str, body: MoveBody) -> None:
    """Order these replicas off these hosts; all of them or none."""
    asked = _asked(body)
    with writing():
        job = Job.objects.select_related("account").get(pk=job_id)
        if not job.live or job.cancel_asked:
            doing = "is being stopped" if job.live else f"is {job.phase}"
            raise Conflict(f"{job.name} {doing}; only replicas of a live job can be moved")
        found = _found(job, asked)
        moves = [*decode(job.moves), *found]
        revision = next_revision()
        Job.objects.filter(pk=job.id).update(moves=encode(moves).decode(), revision=revision)
        for role, index, _, host, at in found:
            words = f"{by} asked that {role}-{index} leaves {host}"
            new_jobs.note(job, "MoveAsked", words, at)
        announce(job.account_id, job.id, revision)
        feeder = here().feeder
        after_commit(lambda: feeder.look_at(job.id))


def orders_of(job: Job) -> list[Move]:
    """What the engine is to be told of this run."""
    return [Move(Role(row[0]), *row[1:]) for row in decode(job.moves)]


def _asked(body: MoveBody) -> list[tuple[str, str]]:
    """(replica, host) in the user's words; only the shape is checked."""
    rows: Any = body.get(_FIELD)
    is_list = isinstance(rows, list) and 0 < len(rows) <= _MOST
    if not is_list or not all(
        isinstance(row, dict)
        and isinstance(row.get("replica"), str)
        and isinstance(row.get("host"), str)
        for row in rows
    ):
        raise InvalidInput(
            f"must be a list of 1 to {_MOST} objects with a `replica` and a `host`", field=_FIELD
        )
    return [(row["replica"], row["host"]) for row in rows]


def _found(job: Job, asked: Sequence[tuple[str, str]]) -> list[list[Any]]:
    """Rows of `Job.moves` for what is asked; raises with the first faults."""
    current = _current(job)
    if not current:
        raise Conflict(f"{job.name} is {job.phase}: it has no replicas yet")
    prefixes = (f"{job.id}-", f"{job.name}-", f"{_title(job)}-")
    faults, taken, rows = FaultList(), set(), []
    now = clock.now()
    for name, host in asked:
        if len(faults) >= _SHOWN:
            break  # enough to see what is wrong; all are looked at again with the next try
        short = next((name.removeprefix(p) for p in prefixes if name.startswith(p)), name)
        seen = current.get(short)
        if seen is None:
            # One suggestion: each is a comparison with every replica there is.
            faults.add(name, _unknown(job, short, list(current), suggests=not faults))
            continue
        role, index, attempt, state, address, node = seen
        if host not in (address, node) or not host:
            on = " or ".join(dict.fromkeys(filter(None, (address, node))))
            faults.add(name, f"is not on {host or 'no host'}; it is on {on or 'no host yet'}")
        elif state not in ("Running", "Pending"):
            faults.add(name, f"does not run: it is {state}")
        elif short in taken:
            faults.add(name, "is named twice")
        taken.add(short)
        rows.append([role, index, attempt, host, now])
    faults.raise_if_any(hint=f"paddlecloud job info {job.id} shows replicas and hosts")
    return rows


def _current(job: Job) -> dict[str, tuple[Any, ...]]:
    """The latest attempt of every replica of the current run, by its short name."""
    rows = fetch(
        'SELECT role, "index", attempt, state, address, node FROM jobs_replica'
        ' WHERE job_id = %s AND run = %s ORDER BY role DESC, "index", attempt',
        (job.id, job.run),
    )
    return {f"{row[0]}-{row[1]}": tuple(row) for row in rows}


def _unknown(job: Job, short: str, names: list[str], *, suggests: bool) -> str:
    shown = [f"{job.id}-{name}" for name in names[:_SHOWN]]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    near = nearest(short, names) if suggests else ""
    advice = f"; did you mean {job.id}-{near}?" if near else ""
    return f"no such pod; the job has {', '.join(shown)}{more}{advice}"


def _title(job: Job) -> str:
    """The name a user of the second client gave."""
    notes = decode(job.spec).get("annotations", {})
    return str(notes.get("job-name") or job.name)
