"""The embedded engine's memory: one SQLite file of runs and of what there is to tell.

The engine is the only writer. `runs` is the truth about grants, orders and phases; `changes` is
the log that `watch` reads. Survives kill -9 at any moment (WAL; each method is one transaction).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from paddlecloud.core.actions import Event, Grant, Status
from paddlecloud.core.observed import Move, ReplicaObserved
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.status_json import replica_to_json, status_from_json, status_to_json
from paddlecloud.engines.changes import ChangeLog, dumps
from paddlecloud.engines.local.run_rows import (
    SCHEMA,
    Placed,
    job_from_json,
    job_to_json,
    moves_from_json,
    moves_to_json,
)
from paddlecloud.engines.protocols import Change, History, JobRun
from paddlecloud.engines.reconcile import Preempted, RunRecord


class Store:
    def __init__(self, path: Path) -> None:
        self._log = ChangeLog(path, SCHEMA)
        self._lock, self._db = self._log.lock, self._log.db
        self._transaction = self._log.transaction
        # Runs that have not ended, kept decoded: the loop and the planner read them all the time.
        self._live: dict[str, RunRecord] = {}
        self._networks: dict[str, int] = {}
        self._gpus: dict[str, dict[str, list[int]]] = {}
        for row in self._db.execute(
            "select job, granted, grant_reason, grant_revision, cancel, status, first_started_at,"
            " network_base, gpus, moves, times, at, trainers from runs"
            " left join moves using (job_id, run) left join preemptions using (job_id, run)"
            " where live"
        ):
            record = RunRecord(
                job=job_from_json(json.loads(row[0])),
                grant=Grant(row[1], row[2], row[3]),
                cancel_asked=row[4],
                status=status_from_json(json.loads(row[5])),
                first_started_at=row[6],
                moves=moves_from_json(json.loads(row[9] or "[]")),
                preempted=Preempted(*row[10:]) if row[10] else None,
            )
            self._live[record.job.job_id] = record
            self._networks[record.job.job_id] = row[7]
            self._gpus[record.job.job_id] = json.loads(row[8])

    def close(self) -> None:
        self._log.close()

    # --- runs -------------------------------------------------------------------------------

    def add(self, job: JobRun, placed: Placed | None = None) -> bool:
        """Remember a new run, `placed` if it has its resources already; False if it was known."""
        status = Status(Phase.STARTING if placed else Phase.SUBMITTED)
        grant = Grant(placed.trainers if placed else 0)
        base, cards = (placed.network_base, dict(placed.gpus)) if placed else (0, {})
        with self._transaction() as db:
            added = db.execute(
                "insert or ignore into runs"
                " (job_id, run, job, account_id, live, status, granted, network_base, gpus)"
                " values (?, ?, ?, ?, 1, ?, ?, ?, ?)",
                (
                    job.job_id,
                    job.run,
                    dumps(job_to_json(job)),
                    job.account_id,
                    dumps(status_to_json(status)),
                    grant.trainers,
                    base,
                    dumps(cards),
                ),
            ).rowcount
            if added:
                self._live[job.job_id] = RunRecord(job, grant, status)
                if placed:
                    self._networks[job.job_id] = base
                    self._gpus[job.job_id] = cards
        return bool(added)

    def knows(self, job_id: str, run: int) -> bool:
        with self._lock:
            row = self._db.execute(
                "select 1 from runs where job_id = ? and run = ?", (job_id, run)
            ).fetchone()
        return row is not None

    def live_run(self, job_id: str) -> RunRecord | None:
        return self._live.get(job_id)

    def live_runs(self) -> list[RunRecord]:
        return list(self._live.values())

    def ask_cancel(self, job_id: str, run: int, reason: str) -> bool:
        with self._transaction() as db:
            record = self._live.get(job_id)
            if record is None or record.job.run != run or record.cancel_asked:
                return False
            db.execute(
                "update runs set cancel = ? where job_id = ? and run = ?", (reason, job_id, run)
            )
            self._live[job_id] = replace(record, cancel_asked=reason)
        return True

    def ask_moves(self, job_id: str, run: int, moves: Sequence[Move]) -> bool:
        """Remember them; False if there is nothing new in them."""
        with self._transaction() as db:
            record = self._live.get(job_id)
            if record is None or record.job.run != run:
                return False
            known = {(move.role, move.index, move.attempt) for move in record.moves}
            new = [move for move in moves if (move.role, move.index, move.attempt) not in known]
            if not new:
                return False
            together = (*record.moves, *new)
            row = (job_id, run, dumps(moves_to_json(together)))
            db.execute("insert or replace into moves values (?, ?, ?)", row)
            self._live[job_id] = replace(record, moves=together)
        return True

    def set_grant(
        self,
        job_id: str,
        grant: Grant,
        network_base: int | None = None,
        gpus: Mapping[str, list[int]] | None = None,
        event: Event | None = None,
    ) -> None:
        """Both or neither: what was granted, and the event that tells of it (see `tell`)."""
        with self._transaction() as db:
            record = self._live[job_id]
            grant = replace(grant, revision=record.grant.revision + 1)
            base = self._networks.get(job_id, 0) if network_base is None else network_base
            cards = self._gpus.get(job_id, {}) if gpus is None else dict(gpus)
            db.execute(
                "update runs set granted = ?, grant_reason = ?, grant_revision = ?,"
                " network_base = ?, gpus = ? where job_id = ? and run = ?",
                (
                    grant.trainers,
                    grant.reason,
                    grant.revision,
                    base,
                    dumps(cards),
                    job_id,
                    record.job.run,
                ),
            )
            self._log.tell_events(job_id, record.job.run, [event] if event else [])
            self._live[job_id] = replace(record, grant=grant)
            self._networks[job_id] = base
            self._gpus[job_id] = cards

    def preempt(self, job_id: str, grant: Grant, at: float) -> Preempted:
        """Nothing is granted any more; its replicas hold what they have until they have ended."""
        with self._transaction() as db:
            record = self._live[job_id]
            times = record.preempted.times + 1 if record.preempted else 1
            noted = Preempted(times, at, record.grant.trainers)
            grant = replace(grant, revision=record.grant.revision + 1)
            key = (job_id, record.job.run)
            db.execute(
                "update runs set granted = 0, grant_reason = ?, grant_revision = ?,"
                " first_started_at = null where job_id = ? and run = ?",
                (grant.reason, grant.revision, *key),
            )
            row = (*key, noted.times, noted.at, noted.trainers)
            db.execute("insert or replace into preemptions values (?, ?, ?, ?, ?)", row)
            self._live[job_id] = replace(
                record, grant=grant, first_started_at=None, preempted=noted
            )
        return noted

    def network_base(self, job_id: str) -> int:
        return self._networks[job_id]

    def gpus(self, job_id: str) -> Mapping[str, list[int]]:
        return self._gpus.get(job_id, {})

    def forget(self, job_id: str) -> None:
        with self._transaction() as db:
            db.execute("delete from runs where job_id = ?", (job_id,))
            db.execute("delete from moves where job_id = ?", (job_id,))
            db.execute("delete from preemptions where job_id = ?", (job_id,))
            self._log.forget(job_id)
            db.execute("delete from facts where name = ?", (f"forget {job_id}",))
            self._drop_live(job_id)

    def forget_when_ended(self, job_id: str) -> None:
        with self._transaction() as db:
            db.execute("insert or ignore into facts values (?, '')", (f"forget {job_id}",))

    def is_to_forget(self, job_id: str) -> bool:
        with self._lock:
            row = self._db.execute(
                "select 1 from facts where name = ?", (f"forget {job_id}",)
            ).fetchone()
        return row is not None

    def _drop_live(self, job_id: str) -> None:
        self._live.pop(job_id, None)
        self._networks.pop(job_id, None)
        self._gpus.pop(job_id, None)

    # --- telling ----------------------------------------------------------------------------

    def save(
        self,
        record: RunRecord,
        status: Status,
        replicas: Sequence[ReplicaObserved],
        events: Sequence[Event],
        first_started_at: float | None,
    ) -> None:
        """Write what changed, once; equal values are not written and events are told once."""
        job = record.job
        replicas_text = dumps([replica_to_json(seen) for seen in replicas])
        with self._transaction() as db:
            before = db.execute(
                "select status, replicas, granted from runs where job_id = ? and run = ?",
                (job.job_id, job.run),
            ).fetchone()
            status_text = dumps(status_to_json(status))
            changed = before is not None and before[:2] != (status_text, replicas_text)
            if changed:
                ended = status.phase in TERMINAL
                db.execute(
                    "update runs set status = ?, replicas = ?, live = ?, first_started_at = ?"
                    " where job_id = ? and run = ?",
                    (
                        status_text,
                        replicas_text,
                        int(not ended),
                        first_started_at,
                        job.job_id,
                        job.run,
                    ),
                )
            told = self._log.tell_events(job.job_id, job.run, events)
            if changed:
                self._log.tell_status(job.job_id, job.run, status_text, replicas_text, before[2])
                if ended:
                    self._drop_live(job.job_id)
                else:
                    self._live[job.job_id] = replace(
                        self._live[job.job_id], status=status, first_started_at=first_started_at
                    )
        if changed or told:
            self._log.notify()

    def tell(self, job: JobRun, event: Event) -> None:
        """Watchers hear of it with what comes next, or when they are called by `notify`."""
        with self._transaction():
            self._log.tell_events(job.job_id, job.run, [event])

    def notify(self) -> None:
        """Call watchers, whatever there is to tell."""
        self._log.notify()

    def changes(self, after: int, timeout_s: float, limit: int = 1000) -> list[Change]:
        """Changes past `after`; waits up to `timeout_s` when there are none."""
        return self._log.changes(after, timeout_s, limit)

    def history(self) -> History:
        return self._log.history()

    # --- facts ------------------------------------------------------------------------------

    def next_network(self, count: int) -> int:
        """The first of `count` consecutive address numbers, not used by a live run.

        Numbers rotate instead of being re-used at once: a socket of the last job may still be in
        TIME_WAIT on its address.
        """
        taken = [
            (base, base + record.job.spec.replicas_at(record.job.spec.trainers.max_replicas))
            for job_id, base in self._networks.items()
            if base and (record := self._live.get(job_id))
        ]
        row = self._db.execute("select value from facts where name = 'next_network'").fetchone()
        base = int(row[0]) if row else FIRST_NETWORK
        for _ in range(len(taken) + 2):
            if base + count > LAST_NETWORK:
                base = FIRST_NETWORK
            clash = [end for start, end in taken if base < end and start < base + count]
            if not clash:
                break
            base = max(clash)
        with self._transaction() as db:
            db.execute(
                "insert or replace into facts values ('next_network', ?)", (str(base + count),)
            )
        return base


# Address numbers n stand for 127.(n>>16).(n>>8).n; 1 is everybody's localhost.
FIRST_NETWORK = 2
LAST_NETWORK = 2**20
