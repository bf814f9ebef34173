"""Keeps logs within their cap while programs write them.

Looks at the size of each live log, once a second and oftener while one floods; sleeps while
nothing runs. It never reads a log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.local.config import LocalConfig
from paddlecloud.engines.local.kept import Kept
from paddlecloud.engines.local.watching import Watcher

log = logging.getLogger(__name__)

_LOOK_S = 1.0
_LOOK_AT_FLOOD_S = 0.1


class LogBounder:
    def __init__(
        self, config: LocalConfig, watcher: Watcher, live: Callable[[], Sequence[Kept]]
    ) -> None:
        self._config = config
        self._watcher = watcher
        self._live = live
        self._lock = threading.Lock()
        self._is_looking = False
        self._sizes: dict[ReplicaKey, int] = {}
        self.holes_fail = False  # this file system cannot punch holes

    def wake(self) -> None:
        """Something began: look from now on, until nothing runs any more."""
        with self._lock:
            if self._is_looking:
                return
            self._is_looking = True
        self._watcher.after(_LOOK_S, self._look)

    def _look(self) -> None:
        with self._lock:
            live = self._live()
            self._is_looking = bool(live)
        sizes = {kept.key: kept.log.size() for kept in live}
        a_lot = self._config.log_cap_bytes // 16
        floods = any(size - self._sizes.get(key, 0) > a_lot for key, size in sizes.items())
        self._sizes = sizes
        for kept in live:
            self.shorten(kept)
        if live:
            self._watcher.after(_LOOK_AT_FLOOD_S if floods else _LOOK_S, self._look)

    def shorten(self, kept: Kept) -> None:
        """Bring one log under its cap. A log that cannot be shortened is no reason to fail."""
        try:
            used_hole = kept.log.shorten(self._config.log_cap_bytes, self._config.log_head_bytes)
        except OSError:
            log.exception("cannot shorten %s", kept.dir.log)
        else:
            self.holes_fail |= used_hole is False
