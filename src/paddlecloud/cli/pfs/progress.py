"""How far a transfer is, as one line that is written over in place.

    data  ████████████░░░░░░░░  61%  1.2 of 2.0 GiB  812 MiB/s  1s left   4,102 of 6,000 files

`Progress` only counts and says the line; `ProgressLine` draws it on the standard error: only on a
terminal, not before SHOWN_AFTER_S, at most ten times a second, never wider than the terminal. A
thread keeps it true while nothing happens. Told by `transfer`. Neither ever reads a file or a
connection.
"""

from __future__ import annotations

import sys
import time
from _thread import RLock

from paddlecloud.cli import sizes, times
from paddlecloud.cli.terminal import FALLBACK_COLUMNS, Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event

SHOWN_AFTER_S = 0.3
REDRAWN_EVERY_S = 0.1
_BAR_CELLS = 20
# The rate is that of the last seconds: an average from the start would hide a stall.
_RATE_WINDOW_S = 3.0
STALLED_AFTER_S = 3.0
_TICK_S = 0.25


class Progress:
    """The numbers of one transfer. Bytes that were there already count as done."""

    def __init__(self, label: str, now_s: float) -> None:
        self.label = label
        self.started_s = now_s
        self.files = 0
        self.size_bytes = 0
        self.done_files = 0
        self.done_bytes = 0
        self.is_planned = False
        self.furthest_percent = 0
        self._marks: list[tuple[float, int]] = []  # when, and how many bytes had moved by then
        self._moved_bytes = 0
        self._last_s = now_s  # when anything was heard

    def heard(self, now_s: float) -> None:
        self._last_s = now_s

    def plan(self, files: int, size_bytes: int, same_files: int, same_bytes: int) -> None:
        self.is_planned = True
        self.files, self.size_bytes = files, size_bytes
        self.done_files, self.done_bytes = same_files, same_bytes
        self.furthest_percent = self.percent

    def move(self, n_bytes: int, now_s: float) -> None:
        self.done_bytes += n_bytes
        self._moved_bytes += n_bytes
        # What is taken back while a transfer is being stopped has mostly arrived all the same.
        self.furthest_percent = max(self.furthest_percent, self.percent)
        if not self._marks or now_s - self._marks[-1][0] >= REDRAWN_EVERY_S:
            self._marks.append((now_s, self._moved_bytes))
            while now_s - self._marks[0][0] > _RATE_WINDOW_S and len(self._marks) > 2:
                self._marks.pop(0)

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 means all of it."""
        if self.size_bytes:
            return min(100, max(0, self.done_bytes) * 100 // self.size_bytes)
        return self.done_files * 100 // self.files if self.files else 0

    def rate(self, now_s: float) -> float:
        """Bytes per second of late; 0 while that cannot be said."""
        since_s, before = self._marks[0] if len(self._marks) > 1 else (self.started_s, 0)
        took_s = now_s - since_s
        return (self._moved_bytes - before) / took_s if took_s > 0.05 else 0.0

    def line(self, now_s: float, columns: int, full: str = "█", empty: str = "░") -> str:
        """The most telling line that fits."""
        if not self.is_planned:
            return _cut(f"{self.label}  looking for what has changed ...", columns)
        rate = self.rate(now_s)
        amount = sizes.binary_of(min(self.done_bytes, self.size_bytes), self.size_bytes)
        speed = f"{sizes.binary(int(rate))}/s" if rate else ""
        left = self._left(rate)
        if now_s - self._last_s >= STALLED_AFTER_S:
            is_all_there = self.done_bytes >= self.size_bytes
            speed, left = "being stored" if is_all_there else "waiting for the server", ""
        files = ""
        if self.files > 1:
            files = f" {min(self.done_files, self.files):,} of {self.files:,} files"
        percent = f"{self.percent}%"
        wide, narrow = (self._bar(cells, full, empty) for cells in (_BAR_CELLS, _BAR_CELLS // 2))
        for parts in (
            (self.label, wide, percent, amount, speed, left, files),
            (self.label, narrow, percent, amount, speed, left, files),
            (self.label, percent, amount, speed, left, files),
            (self.label, percent, amount, speed, left),
            (self.label, percent, speed, left),
            (percent, speed, left),
        ):
            text = "  ".join(part for part in parts if part)
            if _cells(text) <= columns:
                return text
        return _cut(percent, columns)

    def _bar(self, cells: int, full: str, empty: str) -> str:
        filled = self.percent * cells // 100
        return full * filled + empty * (cells - filled)

    def _left(self, rate: float) -> str:
        if rate < 1 or self.done_bytes >= self.size_bytes:
            return ""
        return f"{times.fine(max(1, round((self.size_bytes - self.done_bytes) / rate)))} left"


def _cells(text: str) -> int:
    """How many columns of a terminal it takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    wide = sum(1 for char in text if east_asian_width(char) in "WF")
    return len(text) + wide - sum(1 for char in text if combining(char))


def _cut(text: str, columns: int) -> str:
    while text and _cells(text) > columns:
        text = text[:-1]
    return text


class ProgressLine:
    """The line on the standard error."""

    def __init__(self, progress: Progress) -> None:
        self.progress = progress
        self._terminal = Terminal(sys.stderr)
        self._is_drawn = False
        self._due_s = progress.started_s + SHOWN_AFTER_S
        encoding = (getattr(sys.stderr, "encoding", "") or "").lower().replace("-", "")
        self._cells = ("█", "░") if encoding.startswith("utf") else ("#", ".")
        self.lock = RLock()  # held while anything else is written
        self._stop: Event | None = None

    @property
    def is_live(self) -> bool:
        return self._terminal.can_redraw

    def begin(self) -> None:
        """Redraw from now on, also while nobody tells anything."""
        if not self.is_live:
            return
        from threading import Event, Thread

        self._stop = Event()
        Thread(target=self._tick, args=(self._stop,), daemon=True).start()

    def end(self) -> None:
        if self._stop is not None:
            self._stop.set()
            with self.lock:
                self._due_s = float("inf")  # whatever the thread was about to do

    def _tick(self, stop: Event) -> None:
        while not stop.wait(_TICK_S):
            with self.lock:
                self.refresh()

    def refresh(self) -> None:
        now_s = time.monotonic()
        if now_s < self._due_s or not self.is_live:
            return
        self._due_s = now_s + REDRAWN_EVERY_S
        # One column is left free: writing into the last one makes some terminals wrap.
        columns = (self._terminal.width or FALLBACK_COLUMNS) - 1
        text = self.progress.line(now_s, columns, *self._cells)
        sys.stderr.write(f"\r{text}\x1b[K")
        sys.stderr.flush()
        self._is_drawn = True

    def erase(self) -> None:
        """Give the line back, before something else is printed."""
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._is_drawn = False

    def leave(self) -> None:
        """Keep what is drawn and go to the next line: after Ctrl-C, where the terminal echoes."""
        if self._terminal.is_terminal:
            sys.stderr.write("\n")
            sys.stderr.flush()
            self._is_drawn = False
