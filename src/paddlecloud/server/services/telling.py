"""Tells engines the limits of accounts and the groups: all of them, whenever one has changed.

Each engine is told in its own time, off the request's path, so a slow one delays nothing but
itself. What is told is read when the engine listens, one telling after the other: an older state
never comes after a newer one. Before an engine starts it is told once and waited for, so that
nothing is planned without limits. Called by `quotas`, `groups` and at the start.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict

from paddlecloud.core.errors import Unavailable
from paddlecloud.engines.protocols import Engine
from paddlecloud.server.database import forget_broken_connection
from paddlecloud.server.process import here

log = logging.getLogger(__name__)

_turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)  # by cluster


def tell_engines() -> None:
    process = here()
    for engine in process.engines:
        process.asking.submit(_tell, (engine,), _noted)


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


def _noted(result: object, error: BaseException | None) -> None:
    if error is not None:
        log.error("an engine was not told its limits", exc_info=error)
        forget_broken_connection()
