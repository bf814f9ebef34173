"""Where the mirror goes on after a start, also when an engine's memory is not what it was.

An engine's database may have been deleted, or put back from a backup, while ours stayed. Its
cursors then mean something else: waiting at the old one would be waiting for ever. Called once per
engine, before it starts and before the feeder hands over what is live.

A live run of which such an engine has neither a record nor any trace on disk is treated by what we
know of it. If it never began, the feeder hands it over again, as it does after every start: nothing
can be done twice. If it had begun it ends as Failed: it may have done half of its work, and doing
that again over its own outputs is for its owner to decide (`rerun`). A run that left its replicas
is known, and goes on with them.
"""

from __future__ import annotations

import logging

from paddlecloud.core.phases import Phase
from paddlecloud.engines.protocols import Engine, History
from paddlecloud.server.database import writing
from paddlecloud.server.jobs.models import EngineCursor, Job
from paddlecloud.server.services import mirroring

log = logging.getLogger(__name__)

LOST = "the engine has lost its records of this run, so how it ended is unknown"
_NOT_BEGUN = (Phase.SUBMITTED.value, Phase.QUEUED.value)


def resume(engine: Engine) -> int:
    """The cursor to go on from."""
    history = engine.history()
    stored = EngineCursor.objects.filter(cluster=engine.cluster).first()
    if stored is None or (stored.epoch == history.epoch and stored.cursor <= history.last):
        cursor = stored.cursor if stored else 0
        if stored is None:
            _store(engine.cluster, cursor, history)
        return cursor
    is_other = bool(stored.epoch) and stored.epoch != history.epoch
    is_older = stored.cursor > history.last
    if is_other or is_older:
        log.warning(
            "the memory of engine %s is %s than at our last start; settling what it has lost",
            engine.cluster,
            "another" if is_other else "older",
        )
        _end_what_is_lost(engine)
    # All that an older copy of the same memory holds has been told; another one tells anew.
    cursor = 0 if is_other else min(stored.cursor, history.last)
    _store(engine.cluster, cursor, history)
    return cursor


def _store(cluster: str, cursor: int, history: History) -> None:
    with writing():
        EngineCursor.objects.update_or_create(
            cluster=cluster, defaults={"cursor": cursor, "epoch": history.epoch}
        )


def _end_what_is_lost(engine: Engine) -> None:
    begun = Job.objects.filter(cluster=engine.cluster, live=True).exclude(
        phase__in=_NOT_BEGUN, started_at=None
    )
    for job in begun.select_related("account"):
        if not engine.knows(job.id, job.run):
            log.warning("%s (%s) is lost", job.id, job.name)
            mirroring.record_end(job, Phase.FAILED, LOST)
