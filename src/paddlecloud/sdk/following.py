"""Follows a job's log over cuts: the same bytes, each once, whatever happens to the connection.

It promises: every record is given exactly once and in order per replica; after a cut it asks
again from the byte cursors it has given, and a half received line counts as not received. A reader
that asked for the last lines goes on where these began, also if it was cut off before the first of
them: the server says at once where it enters each log. Called by `Client.follow_logs`. It never
invents data: what the server dropped is a record of its own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

from paddlecloud.sdk.http import Response

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The server sends an empty line each 15 s; three missed ones mean the connection is dead.
SILENCE_S = 45.0
LIVED_WELL_S = 30.0
RECONNECT_DELAYS_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0)


class Cursors:
    """Where each attempt's log has been read up to: the `cursors=` of the next request."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}

    def note(self, record: dict[str, Any]) -> None:
        if "cursor" in record:
            self._at[f"{record['replica']}.{record['attempt']}"] = int(record["cursor"])

    def __str__(self) -> str:
        return ",".join(f"{name}:{at}" for name, at in sorted(self._at.items()))


def follow(
    open_stream: Callable[[str | None], Response],
    *,
    unreachable: Callable[[OSError], Exception],
    on_cut: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """Records until the one that says `end`.

    `open_stream` is given the cursors so far, None as long as no stream has said anything.

    `on_cut` is called once per outage, however often it takes to connect again.
    """
    from paddlecloud.core.errors import ServerUnreachable, Unavailable

    cursors = Cursors()
    delays = iter(RECONNECT_DELAYS_S)
    was_open = was_heard = is_cut = False
    opened_s = time.monotonic()
    while True:
        trouble: Exception
        response: Response | None = None
        try:
            response = open_stream(str(cursors) if was_heard else None)
            was_open, opened_s = True, time.monotonic()
            for line in response.lines():
                record = json.loads(line) if line.strip() else {}
                was_heard = True
                cursors.note(record)
                if not record or record.get("data") == "":
                    continue  # a sign of life, or where a log is entered
                delays, is_cut = iter(RECONNECT_DELAYS_S), False
                yield record
                if record.get("end"):
                    return
            trouble = unreachable(ConnectionError("the stream ended early"))
        except (ServerUnreachable, Unavailable) as error:
            if not was_open:
                raise
            trouble = error
        except OSError as error:
            trouble = unreachable(error)
        finally:
            if response is not None:
                response.close()
        if response is not None and time.monotonic() - opened_s > LIVED_WELL_S:
            delays, is_cut = iter(RECONNECT_DELAYS_S), False  # a quiet log, not a sick server
        delay_s = next(delays, None)
        if delay_s is None:
            raise trouble
        if not is_cut:
            on_cut()
        is_cut = True
        time.sleep(delay_s)
