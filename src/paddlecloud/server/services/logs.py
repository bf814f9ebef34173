"""Logs of replicas: which there are, the last lines, and parts by byte cursor.

Rows say which attempts exist; the engine has the bytes. Everything here may be slow and runs on
the pool of logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.protocols import Engine, LogSlice
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch
from paddlecloud.server.process import here
from paddlecloud.server.services import job_rows

_REPLICA = re.compile(r"(?:(?P<job>.+)-)?(?P<role>trainer|pserver|heter|master)-(?P<index>\d{1,6})")
_BACK_BYTES = 64 * 1024
_RULE = "=" * 26


@dataclass(frozen=True, slots=True)
class Followed:
    """What a follower asked for, found."""

    job_id: str
    run: int
    replica: tuple[Role, int] | None  # None = all
    engine: Engine


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as a follower needs it."""

    phase: str
    keys: tuple[ReplicaKey, ...]  # every attempt, in the order of roles, ranks and attempts


def engine_of(job_id: str) -> Engine:
    rows = fetch("SELECT cluster FROM jobs_job WHERE id = %s", (job_id,))
    if not rows:
        raise NotFound(f"no job {job_id}", field="job")
    return here().engines.engine(rows[0][0])


def read_run(job_id: str, run: int) -> RunView:
    rows = fetch(
        "SELECT r.phase FROM jobs_run r JOIN jobs_job j ON j.id = r.job_id"
        " WHERE r.job_id = %s AND r.run = %s AND NOT j.deleted",
        (job_id, run),
    )
    if not rows:
        raise NotFound(f"no job {job_id}", field="job")
    keys = fetch(
        'SELECT role, "index", attempt FROM jobs_replica WHERE job_id = %s AND run = %s'
        ' ORDER BY role DESC, "index", attempt',
        (job_id, run),
    )
    return RunView(
        rows[0][0], tuple(ReplicaKey(job_id, run, Role(row[0]), row[1], row[2]) for row in keys)
    )


def find_followed(caller: Principal, ref: str, run: int | None, replica: str | None) -> Followed:
    """Everything a follower needs to know, in one go on one thread."""
    job_id = job_rows.visible_id(caller, ref)
    name, run = job_rows.check_run(job_id, run)
    chosen = parse_replica(replica, name) if replica else None
    return Followed(job_id, run, chosen, engine_of(job_id))


def parse_replica(text: str, job_name: str) -> tuple[Role, int]:
    """`trainer-0` or `<job>-trainer-0`."""
    match = _REPLICA.fullmatch(text)
    if match is None or match["job"] not in (None, job_name):
        raise InvalidInput(
            f"{text[:80]!r} is not a replica of {job_name}",
            field="replica",
            hint=f"such as trainer-0 or {job_name}-trainer-0",
        )
    return Role(match["role"]), int(match["index"])


def choose(view: RunView, replica: tuple[Role, int] | None) -> list[ReplicaKey]:
    return [key for key in view.keys if replica in (None, (key.role, key.index))]


def find_attempt(
    job_id: str, run: int | None, replica: str | None, attempt: int | None
) -> ReplicaKey:
    """The attempt that was asked for: the latest of trainer-0 unless something else was said."""
    name, run = job_rows.check_run(job_id, run)
    role, index = parse_replica(replica or "trainer-0", name)
    keys = choose(read_run(job_id, run), (role, index))
    if not keys:
        raise NotFound(
            f"{name} has no log of {role.value}-{index} in run {run} (it has not started)",
            field="replica",
            hint=f"paddlecloud get workers {name}",
        )
    if attempt is None:
        return keys[-1]
    for key in keys:
        if key.attempt == attempt:
            return key
    raise NotFound(
        f"{role.value}-{index} has had {len(keys)} attempts, not {attempt}", field="attempt"
    )


def tail_start(engine: Engine, key: ReplicaKey, lines: int, limit_bytes: int) -> int:
    """The cursor from which the log has `lines` lines, or as many as `limit_bytes` hold."""
    size = engine.log(key, -1, 1).size
    if lines <= 0:
        return size
    end, found = size, 0
    lowest = max(0, size - limit_bytes)
    while end > lowest:
        start = max(lowest, end - _BACK_BYTES)
        part = engine.log(key, start, end - start)
        data = part.data
        # The line break that ends the log ends its last line; it does not begin another.
        stop = len(data) - 1 if end == size and data.endswith(b"\n") else len(data)
        while stop > 0:
            stop = data.rfind(b"\n", 0, stop)
            if stop < 0:
                break
            found += 1
            if found == lines:
                return part.next - len(data) + stop + 1
        end = start
    return lowest


def read_part(
    job_id: str,
    run: int | None,
    replica: str | None,
    attempt: int | None,
    cursor: int | None,
    tail: int | None,
    limit_bytes: int,
) -> LogSlice:
    key = find_attempt(job_id, run, replica, attempt)
    engine = engine_of(job_id)
    start = cursor or 0
    if tail is not None and cursor is None:
        start = tail_start(engine, key, tail, limit_bytes)
    return engine.log(key, start, limit_bytes)


def parse_cursors(text: str) -> dict[tuple[str, int], int]:
    """`trainer-0.1:123,pserver-0.2:0` → where each attempt's log goes on."""
    cursors = {}
    for item in filter(None, text.split(",")):
        match = re.fullmatch(r"([a-z]+-\d{1,6})\.(\d{1,6}):(\d{1,18})", item)
        if match is None:
            raise InvalidInput(
                f"{item[:60]!r} is not like trainer-0.1:123 (replica, attempt, cursor)",
                field="cursors",
            )
        cursors[match[1], int(match[2])] = int(match[3])
    return cursors


_LEAST_BYTES = 1024


def tails_text(job_id: str, lines: int, replica: str, limit_bytes: int) -> str:
    """The last lines of every replica of the current run under its name, or of one bare.

    A replica whose log cannot be read contributes the reason instead, as it always did.
    """
    name, run = job_rows.check_run(job_id, None)
    chosen = parse_replica(replica, name) if replica else None
    keys = {(key.role, key.index): key for key in choose(read_run(job_id, run), chosen)}
    if chosen is not None and not keys:
        raise NotFound(f"{name} has no worker {replica}", field="w")
    engine = engine_of(job_id)
    texts = []
    each_bytes = max(_LEAST_BYTES, limit_bytes // max(1, len(keys)))  # together one answer
    for key in keys.values():
        try:
            start = tail_start(engine, key, lines, each_bytes)
            text = engine.log(key, start, each_bytes).data.decode("utf-8", "replace")
        except OSError as error:
            text = f"the log cannot be read: {error.strerror}\n"
        texts.append(text if chosen else f"{_RULE}{name}-{key.short}{_RULE}\n{text}")
    return "".join(texts)
