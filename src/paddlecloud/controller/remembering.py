"""Attempts that a job's status remembers, since their pods will not be there for ever.

A pod's name has no attempt in it, so it must go before the next attempt can come. What it was is
written to the status first and read back as an attempt that ended: a failure (`failures`), which
the restart budget counts; one that had to leave its node (`moved`), whose order is then spent; one
that ended well (`successes`), which is not run again although somebody deletes its pod; one that
was stopped for another job, or with a peer that failed (`preempted`). Pure; `observing` reads,
`planning` writes.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from paddlecloud.controller.identity import Identity, Json
from paddlecloud.core import completion
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import EndCause, Exit, ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.topology import role_from_word
from paddlecloud.forms.fields import MAX_REPLICAS

RUN = 1
FAILURES, SUCCESSES, MOVED, PREEMPTED = "failures", "successes", "moved", "preempted"


_CAUSES = [cause.value for cause in EndCause]


def seconds(text: str | None) -> float | None:
    """Unix seconds of a time as the API server writes it."""
    if not text:
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def written_time(at: float) -> str:
    moment = datetime.datetime.fromtimestamp(at, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- reading ---------------------------------------------------------------------------------


def readable(status: object) -> Json:
    """What of a status can be read. Others may write it too: a row that makes no sense is as if it
    were not there."""
    if not isinstance(status, dict):
        return {}
    kept = dict(status)
    for key in (FAILURES, MOVED, PREEMPTED, SUCCESSES, "conditions"):
        if key in kept:
            rows = kept[key] if isinstance(kept[key], list) else ()
            kept[key] = [row for row in rows if isinstance(row, dict) and _is_readable(key, row)]
    for key, is_good in (
        ("phase", lambda value: isinstance(value, str)),
        ("startTime", _is_time),
        ("completionTime", _is_time),
    ):
        if key in kept and not is_good(kept[key]):
            del kept[key]
    return kept


def _is_readable(key: str, row: Json) -> bool:
    if key == "conditions":
        return isinstance(row.get("type"), str)
    numbers = ["attempt"] if key == SUCCESSES else ["index", "attempt"]
    numbers += [one for one in ("code", "signal") if one in row]
    times = [row[one] for one in ("startedAt", "endedAt") if one in row]
    return (
        isinstance(row.get("role"), str)
        and all(type(row.get(one)) is int and 0 <= row[one] < 2**31 for one in numbers)
        and row.get("cause", EndCause.EXITED.value) in _CAUSES
        and all(map(_is_time, times))
    )


def _is_time(text: object) -> bool:
    try:
        return isinstance(text, str) and seconds(text) is not None
    except ValueError:
        return False


def replaced(who: Identity, status: Json) -> list[ReplicaObserved]:
    """Attempts that are over whatever their pods, if they are still there, say."""
    failed = [_past(who, row) for row in status.get(FAILURES) or ()]
    moved = [_past(who, row, moved=True) for row in status.get(MOVED) or ()]
    return [one for one in (*failed, *moved) if one is not None]


def succeeded(who: Identity, status: Json) -> list[ReplicaObserved]:
    """Attempts that ended well; their pods, where they are still there, know more."""
    found = []
    for row in status.get(SUCCESSES) or ():
        role = role_from_word(str(row.get("role")))
        if role is None:
            continue
        for index in _indexes(str(row.get("indexes"))):
            key = ReplicaKey(who.job_id, RUN, role, index, int(row["attempt"]))
            found.append(ReplicaObserved(key, ReplicaState.ENDED, exit=Exit(EndCause.EXITED)))
    return found


def preempted(who: Identity, status: Json) -> list[ReplicaObserved]:
    """Attempts that were stopped; their pods, while they are there, know more."""
    found = [_past(who, row, moved=True) for row in status.get(PREEMPTED) or ()]
    return [one for one in found if one is not None]


def _past(who: Identity, row: Json, *, moved: bool = False) -> ReplicaObserved | None:
    role = role_from_word(str(row.get("role")))
    if role is None:
        return None
    key = ReplicaKey(who.job_id, RUN, role, int(row["index"]), int(row["attempt"]))
    end = Exit(
        EndCause(row.get("cause", "exited")),
        int(row.get("code", 1)),
        int(row.get("signal", 0)),
        str(row.get("message", "")),
    )
    started_at, ended_at = seconds(row.get("startedAt")), seconds(row.get("endedAt"))
    return ReplicaObserved(key, ReplicaState.ENDED, started_at, ended_at, end, stopping=moved)


# --- writing ---------------------------------------------------------------------------------


def rows_after(
    who: Identity,
    old: Json,
    latest: Mapping[tuple[Role, int], ReplicaObserved],
    failing: Iterable[ReplicaObserved],
    leaving: Iterable[ReplicaObserved],
    now: float,
) -> Json:
    """The three lists as the next status has them; only those that are not empty."""
    lists = {
        FAILURES: _with(who, old.get(FAILURES) or (), failing, failure_row),
        SUCCESSES: _success_rows(who, latest.values()),
        MOVED: _with(
            who, old.get(MOVED) or (), leaving, lambda one, word: _moved_row(one, word, now)
        ),
    }
    return {name: rows for name, rows in lists.items() if rows}


def preempted_rows(who: Identity, old: Json, stopping: Sequence[ReplicaObserved]) -> Json:
    """The last attempt of each replica that was stopped, so that the next has a number of its
    own."""
    if not stopping:
        return {PREEMPTED: old[PREEMPTED]} if old.get(PREEMPTED) else {}
    rows = {(row["role"], row["index"]): row for row in old.get(PREEMPTED) or ()}
    for one in stopping:
        word = who.kind.role_word(one.key.role)
        row: Json = {"role": word, "index": one.key.index, "attempt": one.key.attempt}
        rows[word, one.key.index] = row | ({"node": one.node} if one.node else {})
    return {PREEMPTED: [rows[slot] for slot in sorted(rows)]}


def _with(
    who: Identity,
    rows: Sequence[Json],
    more: Iterable[ReplicaObserved],
    make: Callable[[ReplicaObserved, str], Json],
) -> list[Json]:
    known = {_told(row) for row in rows}
    found = list(rows)
    for one in sorted(more, key=lambda one: one.key):
        word = who.kind.role_word(one.key.role)
        if (word, one.key.index, one.key.attempt) not in known:
            found.append(make(one, word))
    return found


def _told(row: Json) -> tuple[str, int, int]:
    return row["role"], row["index"], row["attempt"]


def failure_row(seen: ReplicaObserved, word: str) -> Json:
    """How a failed attempt is kept in the job's status."""
    end = seen.exit or Exit(EndCause.SIGNALED, 137, 9, "its pod was lost")
    row: Json = {
        "role": word,
        "index": seen.key.index,
        "attempt": seen.key.attempt,
        "cause": end.cause.value,
        "code": end.code,
    }
    row |= {"signal": end.signal} if end.signal else {}
    row |= {"message": end.message[:200]} if end.message else {}
    row |= {"node": seen.node} if seen.node else {}
    if seen.started_at is not None:
        row["startedAt"] = written_time(seen.started_at)
    if seen.ended_at is not None:
        row["endedAt"] = written_time(seen.ended_at)
    return row


def _moved_row(seen: ReplicaObserved, word: str, now: float) -> Json:
    row: Json = {"role": word, "index": seen.key.index, "attempt": seen.key.attempt}
    row |= {"node": seen.node} if seen.node else {}
    if seen.started_at is not None:
        row["startedAt"] = written_time(seen.started_at)
    return {**row, "endedAt": written_time(now)}


def _success_rows(who: Identity, latest: Iterable[ReplicaObserved]) -> list[Json]:
    done: dict[tuple[str, int], list[int]] = defaultdict(list)
    for one in latest:
        if completion.ended_well(one):
            done[who.kind.role_word(one.key.role), one.key.attempt].append(one.key.index)
    return [
        {"role": role, "attempt": attempt, "indexes": _ranges(indexes)}
        for (role, attempt), indexes in sorted(done.items())
    ]


def is_told(status: Json, word: str, index: int, attempt: int) -> bool:
    """Whether the status remembers this attempt, so that its pod may go."""
    rows = (*(status.get(FAILURES) or ()), *(status.get(MOVED) or ()))
    if (word, index, attempt) in {_told(row) for row in rows}:
        return True
    return any(
        (row.get("role"), row.get("attempt")) == (word, attempt)
        and index in _indexes(str(row.get("indexes")))
        for row in status.get(SUCCESSES) or ()
    )


# --- many indexes in few characters --------------------------------------------------------------


def _ranges(indexes: Iterable[int]) -> str:
    """`0-3,7`"""
    parts: list[list[int]] = []
    for index in sorted(indexes):
        if parts and parts[-1][-1] == index - 1:
            parts[-1] = [parts[-1][0], index]
        else:
            parts.append([index])
    return ",".join("-".join(map(str, part)) for part in parts)


def _indexes(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            found += range(int(first), min(int(last or first), MAX_REPLICAS) + 1)
    return found
