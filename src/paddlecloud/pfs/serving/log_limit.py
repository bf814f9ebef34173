"""A bound on what the logs of both servers grow by: so many lines a minute from one place.

Most lines are written because of something a client did, and some clients are hostile. What is
held back is counted, and the count is written with the next line of that place.
"""

from __future__ import annotations

import logging
import time

PER_MINUTE = 30
_WINDOW_S = 60.0
_LONGEST = 4000  # characters of one message: paths and names in it are the clients'


class LogLimit(logging.Filter):
    """Lets `most` records a minute through from each line of code that logs."""

    def __init__(self, most: int = PER_MINUTE) -> None:
        super().__init__()
        self._most = most
        # By place: when its minute began, lines since then.
        self._places: dict[tuple[str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        place = (record.pathname, record.lineno)
        now_s = time.monotonic()
        began_s, count = self._places.get(place, (now_s, 0))
        held_back = 0
        if now_s - began_s >= _WINDOW_S:
            held_back = max(0, count - self._most)
            began_s, count = now_s, 0
        self._places[place] = (began_s, count + 1)
        if count >= self._most:
            return False
        text = record.getMessage()
        if held_back or len(text) > _LONGEST:
            more = f" (and {held_back} like it that were not written)" if held_back else ""
            record.msg, record.args = text[:_LONGEST] + more, None
        return True


def limit_logs() -> None:
    """Of every handler there is; call it after the handlers are made."""
    for handler in logging.getLogger().handlers:
        handler.addFilter(LogLimit())
