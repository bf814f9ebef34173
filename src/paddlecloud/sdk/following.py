"""Follows a job's log over cuts: the same bytes, each once, whatever happens to the connection.

It promises: every record is given exactly once and in order per replica; after a cut it asks
again from the byte cursors it has given, and a half received line counts as not received. Called
by `Client.follow_logs`. It never invents data: what the server dropped is a record of its own.
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
    open_stream: Callable[[str], Response],
    *,
    unreachable: Callable[[OSError], Exception],
    on_cut: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """Records until the one that says `end`. `open_stream` is given the cursors so far.

    `on_cut` is called once per outage, however often it takes to connect again.
    """
    from paddlecloud.core.errors import ServerUnreachable, Unavailable

    cursors = Cursors()
    delays = iter(RECONNECT_DELAYS_S)
    was_open = is_cut = False
    while True:
        trouble: Exception
        response: Response | None = None
        try:
            response = open_stream(str(cursors))
            was_open = True
            for line in response.lines():
                if not line.strip():
                    continue
                record = json.loads(line)
                cursors.note(record)
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
        delay_s = next(delays, None)
        if delay_s is None:
            raise trouble
        if not is_cut:
            on_cut()
        is_cut = True
        time.sleep(delay_s)
