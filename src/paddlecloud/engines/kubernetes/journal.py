"""The engine's memory: which run is which object, what was last told of it, and the log of changes.

The truth about a run is on the cluster; here is what the cluster forgets (attempts whose pods are
gone, who asked for what) and what makes the cursor of `watch` survive a restart. Secrets are not
kept. Thread safe; each method is one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from paddlecloud.core.actions import Event, Status
from paddlecloud.core.observed import ReplicaObserved
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.core.status_json import (
    replica_from_json,
    replica_to_json,
    status_from_json,
    status_to_json,
)
from paddlecloud.engines.changes import ChangeLog, dumps
from paddlecloud.engines.kubernetes.reading import Seen
from paddlecloud.engines.protocols import Change, History

_SCHEMA = """
create table if not exists runs (
  job_id text not null, run integer not null, kind text not null, namespace text not null,
  name text not null, uid text not null default '', is_ours integer not null,
  live integer not null, status text not null, replicas text not null default '[]',
  primary key (job_id, run));
create unique index if not exists runs_by_object on runs (kind, namespace, name)
  where live;
create table if not exists members (
  name text not null, namespace text not null, primary key (name, namespace));
"""

Place = tuple[str, str, str]  # kind, namespace, name


@dataclass(frozen=True, slots=True)
class Entry:
    """One run and the object that it is."""

    job_id: str
    run: int
    place: Place
    uid: str = ""  # of the object; empty: it may not have been made yet
    is_ours: bool = True  # made by us; else found in an account's namespace
    live: bool = True


class Journal:
    def __init__(self, path: Path) -> None:
        self._log = ChangeLog(path, _SCHEMA)
        self._runs: dict[tuple[str, int], Entry] = {}
        self._live: dict[Place, Entry] = {}
        self._by_uid: dict[str, Entry] = {}
        for row in self._log.db.execute(
            "select job_id, run, kind, namespace, name, uid, is_ours, live from runs"
        ):
            self._remember(
                Entry(row[0], row[1], (row[2], row[3], row[4]), row[5], bool(row[6]), bool(row[7]))
            )
        self._forgetting = {
            row[0].removeprefix("forget ")
            for row in self._log.db.execute("select name from facts where name like 'forget %'")
        }

    def close(self) -> None:
        self._log.close()

    def _remember(self, entry: Entry) -> None:
        self._runs[entry.job_id, entry.run] = entry
        if entry.uid:
            self._by_uid[entry.uid] = entry
        if entry.live:
            self._live[entry.place] = entry
        elif (held := self._live.get(entry.place)) and held.uid == entry.uid:
            del self._live[entry.place]

    # --- runs --------------------------------------------------------------------------------

    def add(self, entry: Entry) -> Entry:
        """Remember a run before its object is made; what was known of it stays."""
        with self._log.transaction() as db:
            known = self._runs.get((entry.job_id, entry.run))
            if known is not None:
                return known
            db.execute(
                "insert into runs (job_id, run, kind, namespace, name, uid, is_ours, live, status)"
                " values (?, ?, ?, ?, ?, ?, ?, 1, ?)",
                (
                    entry.job_id,
                    entry.run,
                    *entry.place,
                    entry.uid,
                    int(entry.is_ours),
                    dumps(status_to_json(Status(Phase.SUBMITTED))),
                ),
            )
            self._remember(entry)
        return entry

    def made(self, entry: Entry, uid: str) -> None:
        """Its object is there."""
        key = (entry.job_id, entry.run)
        with self._log.transaction() as db:
            db.execute("update runs set uid = ? where job_id = ? and run = ?", (uid, *key))
            self._remember(replace(self._runs[key], uid=uid))

    def find(self, job_id: str, run: int) -> Entry | None:
        return self._runs.get((job_id, run))

    def at(self, place: Place) -> Entry | None:
        """The live run that this object is."""
        return self._live.get(place)

    def by_uid(self, uid: str) -> Entry | None:
        """The run whose object has, or had, this uid."""
        return self._by_uid.get(uid)

    def of_job(self, job_id: str) -> list[Entry]:
        with self._log.lock:
            return [entry for key, entry in self._runs.items() if key[0] == job_id]

    def live(self) -> list[Entry]:
        with self._log.lock:
            return list(self._live.values())

    def known(self, entry: Entry) -> tuple[Status, list[ReplicaObserved]]:
        """What was last told of it."""
        with self._log.lock:
            row = self._log.db.execute(
                "select status, replicas from runs where job_id = ? and run = ?",
                (entry.job_id, entry.run),
            ).fetchone()
        if row is None:
            return Status(Phase.SUBMITTED), []
        replicas = [replica_from_json(one) for one in json.loads(row[1])]
        return status_from_json(json.loads(row[0])), replicas

    # --- telling -----------------------------------------------------------------------------

    def save(self, entry: Entry, seen: Seen, events: Sequence[Event] = ()) -> bool:
        """Tell what is new about a live run; whether it is over now."""
        status_text = dumps(status_to_json(seen.status))
        replicas_text = dumps([replica_to_json(one) for one in seen.replicas])
        is_over = seen.status.phase in TERMINAL
        key = (entry.job_id, entry.run)
        with self._log.transaction() as db:
            before = db.execute(
                "select status, replicas, live from runs where job_id = ? and run = ?", key
            ).fetchone()
            if before is None or not before[2]:
                return False
            told = self._log.tell_events(*key, [*events, *seen.events])
            changed = before[:2] != (status_text, replicas_text)
            if changed:
                db.execute(
                    "update runs set status = ?, replicas = ?, live = ?"
                    " where job_id = ? and run = ?",
                    (status_text, replicas_text, int(not is_over), *key),
                )
                self._log.tell_status(*key, status_text, replicas_text, seen.granted)
            if is_over:
                self._remember(replace(self._runs[key], live=False))
        if changed or told:
            self._log.notify()
        return is_over

    def tell(self, entry: Entry, events: Sequence[Event]) -> None:
        with self._log.transaction():
            told = self._log.tell_events(entry.job_id, entry.run, events)
        if told:
            self._log.notify()

    def changes(self, after: int, timeout_s: float) -> list[Change]:
        return self._log.changes(after, timeout_s)

    def history(self) -> History:
        return self._log.history()

    # --- forgetting --------------------------------------------------------------------------

    def forget(self, job_id: str) -> None:
        with self._log.transaction() as db:
            db.execute("delete from runs where job_id = ?", (job_id,))
            db.execute("delete from facts where name = ?", (f"forget {job_id}",))
            self._log.forget(job_id)
            self._forgetting.discard(job_id)
            for key in [key for key in self._runs if key[0] == job_id]:
                entry = self._runs.pop(key)
                self._by_uid.pop(entry.uid, None)
                if self._live.get(entry.place) is entry:
                    del self._live[entry.place]

    def forget_when_ended(self, job_id: str) -> None:
        with self._log.transaction() as db:
            db.execute("insert or ignore into facts values (?, '')", (f"forget {job_id}",))
            self._forgetting.add(job_id)

    def is_to_forget(self, job_id: str) -> bool:
        return job_id in self._forgetting

    # --- who uses which group ----------------------------------------------------------------

    def join(self, group: str, namespace: str) -> bool:
        """A job of this namespace was accepted for the group; whether that is new."""
        with self._log.transaction() as db:
            row = (group, namespace)
            return bool(db.execute("insert or ignore into members values (?, ?)", row).rowcount)

    def members(self) -> dict[str, list[str]]:
        with self._log.lock:
            rows = self._log.db.execute(
                "select name, namespace from members order by namespace"
            ).fetchall()
        found: dict[str, list[str]] = {}
        for group, namespace in rows:
            found.setdefault(group, []).append(namespace)
        return found
