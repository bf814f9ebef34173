"""Log records made into lines: whole ones, each with the name of who wrote it.

It promises: bytes of one replica appear in order and nothing is lost, also a last line without an
end; output of several replicas never mixes within a line. Called by `logs -f` and
`submit --follow`. It never talks to a server.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.cli.terminal import REPLICA_COLOURS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PREFIX_COLUMNS = 12
# A line without an end is shown once it is this long, or one replica could hold all memory.
LONGEST_LINE = 65536


class LogPrinter:
    """Give it records; it writes lines. Call `finish` when no more will come."""

    def __init__(self, session: Session, *, is_prefixed: bool = True) -> None:
        self._session = session
        self._is_prefixed = is_prefixed
        self._pending: dict[str, str] = {}
        self._colours: dict[str, str] = {}

    def take(self, record: dict[str, Any]) -> None:
        replica = str(record.get("replica", ""))
        dropped = record.get("dropped_bytes")
        if dropped:
            self._end_line(replica)
            self._line(replica, f"[... {dropped} bytes dropped ...]")
        data = record.get("data")
        if data:
            text = self._pending.pop(replica, "") + data
            *whole, rest = text.split("\n")
            for line in whole:
                self._line(replica, line)
            if len(rest) > LONGEST_LINE:
                self._line(replica, rest)
            elif rest:
                self._pending[replica] = rest
        self._session.flush()

    def _end_line(self, replica: str) -> None:
        if rest := self._pending.pop(replica, ""):
            self._line(replica, rest)

    def finish(self) -> None:
        for replica in list(self._pending):
            self._end_line(replica)
        self._session.flush()

    def _line(self, replica: str, line: str) -> None:
        line = line.removesuffix("\r")
        if not self._is_prefixed:
            self._session.say(line)
            return
        colour = self._colours.setdefault(
            replica, REPLICA_COLOURS[len(self._colours) % len(REPLICA_COLOURS)]
        )
        head = self._session.terminal.paint(f"{replica:<{PREFIX_COLUMNS}}|", colour)
        self._session.say(f"{head} {line}")
