"""A session on a terminal, recorded: what was typed, what was printed, and when.

Kept as asciicast version 2 (https://docs.asciinema.org/manual/asciicast/v2/), so that other
programs play it too: a line of facts, then one line `[seconds, kind, text]` per event. `o` is
output, `m` (a marker) names the command whose typing begins there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

OUTPUT, COMMAND = "o", "m"


@dataclass(frozen=True)
class Event:
    at_s: float
    kind: str
    text: str


@dataclass
class Recording:
    columns: int
    rows: int
    recorded_at_s: int  # Unix time
    events: list[Event] = field(default_factory=list)

    def add(self, at_s: float, kind: str, text: str) -> None:
        self.events.append(Event(round(at_s, 3), kind, text))

    @property
    def commands(self) -> list[str]:
        return [event.text for event in self.events if event.kind == COMMAND]

    def without_waits(self, longest_s: float) -> Recording:
        """The same, but that nothing is waited for longer than this."""
        shorter = Recording(self.columns, self.rows, self.recorded_at_s)
        now_s = before_s = 0.0
        for event in self.events:
            now_s += min(event.at_s - before_s, longest_s)
            before_s = event.at_s
            shorter.add(now_s, event.kind, event.text)
        return shorter

    def write(self, path: Path) -> None:
        path.write_text("".join(self._lines()), encoding="utf-8")

    def _lines(self) -> Iterator[str]:
        header = {
            "version": 2,
            "width": self.columns,
            "height": self.rows,
            "timestamp": self.recorded_at_s,
        }
        yield json.dumps(header) + "\n"
        for event in self.events:
            yield json.dumps([event.at_s, event.kind, event.text], ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Recording:
        header, *lines = path.read_text(encoding="utf-8").splitlines()
        facts = json.loads(header)
        found = cls(facts["width"], facts["height"], facts["timestamp"])
        found.events = [Event(*json.loads(line)) for line in lines]
        return found
