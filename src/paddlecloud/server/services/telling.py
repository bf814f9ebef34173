"""Tells engines the limits of accounts and the groups: all of them, whenever one has changed.

An engine that listens has been told when the change is answered; a slow one is told in its own
time and delays nothing but itself. What is told is read when the engine listens, one telling after
the other: an older state never comes after a newer one. Before an engine starts it is told once and
waited for, so that nothing is planned without limits. Called by `quotas`, `groups` and the start.
"""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import defaultdict

from paddlecloud.core.errors import Unavailable
from paddlecloud.engines.protocols import Engine
from paddlecloud.server.database import forget_broken_connection
from paddlecloud.server.process import here

log = logging.getLogger(__name__)

_PATIENCE_S = 0.5
_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by cluster


def tell_engines() -> None:
    process = here()
    told = []
    for engine in process.engines:
        done = threading.Event()
        told.append(done)
        process.asking.submit(_tell, (engine,), functools.partial(_noted, done))
    deadline = time.monotonic() + _PATIENCE_S
    for done in told:
        done.wait(max(0.0, deadline - time.monotonic()))


def tell_before_start() -> None:
    process = here()
    within_s = process.configuration.engines.answer_within_s
    for engine in process.engines:
        try:
            process.asking.ask(within_s, f"the engine of {engine.cluster}", _tell, engine)
        except Unavailable as error:
            log.warning("%s was not told its limits yet: %s", engine.cluster, error.message)


def _tell(engine: Engine) -> None:
    from paddlecloud.server.services import groups, quotas

    with _turns[engine.cluster]:
        engine.set_quota(quotas.all_quotas())
        engine.set_groups(groups.all_on(engine.cluster))


def _noted(done: threading.Event, result: object, error: BaseException | None) -> None:
    done.set()
    if error is not None:
        log.error("an engine was not told its limits", exc_info=error)
        forget_broken_connection()
