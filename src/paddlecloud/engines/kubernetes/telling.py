"""One look at one object: which run it is, what there is to tell of it, and into the journal.

The engine's loop calls `look` for every object of which something was heard. It reads copies and
writes the journal, and never asks the API server; what cannot be told yet is looked at again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from paddlecloud import clock
from paddlecloud.core.actions import Event, Status
from paddlecloud.core.errors import InvalidInput
from paddlecloud.core.phases import TERMINAL, Phase
from paddlecloud.engines.kubernetes import reading, rendering
from paddlecloud.engines.kubernetes.journal import Entry, Journal, Place
from paddlecloud.engines.kubernetes.reading import Look, Seen
from paddlecloud.engines.kubernetes.watching import ClusterView
from paddlecloud.kube.pods import seconds
from paddlecloud.kube.words import ACCOUNT_ANNOTATION, JOB_ID_LABEL

Json = dict[str, Any]

_AGAIN_S = 1.0
_SETTLE_S = 0.1  # between looks at a run that is over while a pod of it is not, as far as we see
_PATIENCE_S = 15.0  # then it is believed
_SAID_WITHIN_S = 1.0  # the operator writes the event of an end before the end itself
_TENDED_WITHIN_S = 10.0  # an operator that runs has written a status long before
_UNTENDED = "no operator has taken it up: is `paddlecloud controller` running?"


def is_untended(body: Json) -> bool:
    """Nobody has written a status on the object although there was time."""
    made = seconds(body["metadata"].get("creationTimestamp")) or 0.0
    return not body.get("status") and clock.now() - made > _TENDED_WITHIN_S


class Teller:
    def __init__(
        self,
        view: ClusterView,
        journal: Journal,
        again: Callable[[Place, float], None],
        ended: Callable[[Entry], None],
    ) -> None:
        self._view, self._journal = view, journal
        self._again, self._ended = again, ended
        self._unsettled: dict[Place, float] = {}
        self.deleted: set[str] = set()  # uids of objects that the engine itself has deleted

    def look(self, place: Place) -> None:
        body, entry = self._view.job(place), self._journal.at(place)
        if entry is None and body is not None:
            entry = self._adopt(place, body)
            if entry is not None and not entry.live:
                self._journal.tell(entry, self._events(entry))  # what came after its end
                return
        if entry is None or not entry.uid:
            return
        if body is None or body["metadata"]["uid"] != entry.uid:
            self._vanished(entry)
            return
        seen, events = self._read(entry, body), self._events(entry)
        told = self._believed(place, self._with_tending(place, body, seen), events)
        if told is not None and self._journal.save(entry, told, events):
            self._ended(entry)

    def _events(self, entry: Entry) -> list[Event]:
        return [reading.event_of(one) for one in self._view.events(entry.place, entry.uid)]

    def _adopt(self, place: Place, body: Json) -> Entry | None:
        """A run that has ended, or a job that somebody made in an account's namespace with tools
        of the cluster."""
        metadata, home = body["metadata"], self._view.namespace(place[1])
        notes = ((home or {}).get("metadata") or {}).get("annotations") or {}
        uid = metadata["uid"]
        if (known := self._journal.by_uid(uid)) is not None:
            return known  # it has ended, and was told
        is_claimed = JOB_ID_LABEL in (metadata.get("labels") or {})  # whoever says so must put it
        if ACCOUNT_ANNOTATION not in notes or is_claimed or uid in self.deleted:
            return None
        job_id = "job-" + uid.replace("-", "")[:16]
        return self._journal.add(Entry(job_id, 1, place, uid, is_ours=False))

    def _read(self, entry: Entry, body: Json) -> Seen:
        try:
            spec = rendering.parse(body).spec
        except InvalidInput as error:
            return _unreadable(body, error.message)
        return reading.read(
            Look(
                entry.job_id,
                entry.run,
                spec,
                body,
                self._view.pods(entry.place, entry.uid),
                self._journal.known(entry)[1],
                self._view.lost_nodes(),
            )
        )

    def _with_tending(self, place: Place, body: Json, seen: Seen) -> Seen:
        """An object on which nobody has written a status is looked after by nobody."""
        if body.get("status"):
            return seen
        if not is_untended(body):
            self._again(place, _TENDED_WITHIN_S)
            return seen
        return replace(seen, status=replace(seen.status, reason=_UNTENDED))

    def _believed(self, place: Place, seen: Seen, events: Sequence[Event]) -> Seen | None:
        """The copies of jobs, pods and events are not of one moment: an end is told when they
        agree."""
        is_over = seen.status.phase in TERMINAL
        is_said = any(event.reason == seen.status.phase.value for event in events)
        if seen.is_settled and (is_said or not is_over):
            self._unsettled.pop(place, None)
            return seen
        since = self._unsettled.setdefault(place, time.monotonic())
        waited_s = time.monotonic() - since
        if waited_s > (_SAID_WITHIN_S if seen.is_settled else _PATIENCE_S):
            del self._unsettled[place]
            return replace(seen, replicas=tuple(map(reading.gone, seen.replicas)))
        self._again(place, _SETTLE_S)
        return None

    def _vanished(self, entry: Entry) -> None:
        status, before = self._journal.known(entry)
        kind, namespace, name = entry.place
        words = f"its {kind} {namespace}/{name} was deleted from the cluster"
        pods = self._view.pods(entry.place, entry.uid)
        seen = reading.read_vanished(status, before, pods, words, clock.now())
        if self._journal.save(entry, seen):
            self._ended(entry)
            self._again(entry.place, 0.0)  # another may have its name by now
        elif pods:
            self._again(entry.place, _AGAIN_S)


def _unreadable(body: Json, problem: str) -> Seen:
    """It never gets pods, but it can be ended."""
    phase, said = reading.phase_of(body, ()), body.get("status") or {}
    if phase not in TERMINAL:
        return Seen(Status(Phase.QUEUED, problem))
    ended_at = seconds(said.get("completionTime"))
    return Seen(Status(phase, str(said.get("reason") or problem), ended_at=ended_at))
