"""A running transfer in words: progress, what is said per file, the summary, the exit code.

It promises: a summary at the end of everything that was not stopped; each failure by its name on
the standard error; after Ctrl-C how far it got and how to go on. Used by `cp`, `sync` and `file`.
It never decides what is moved: that is the SDK's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from paddlecloud.cli import sizes, times
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.pfs.progress import Progress, ProgressLine
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import (
    InvalidInput,
    PaddleCloudError,
    ServerUnreachable,
    Unavailable,
)
from paddlecloud.sdk.transfers.events import FileDone, Moved, Note, Planned

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.sdk.transfers.events import Event, OnEvent, Summary

EXIT_PARTIAL = 1
EXIT_INTERRUPTED = 130
AGAIN = "Run the same command again to go on from there."


class Direction:
    """Which way the bytes go, and the words for it."""

    def __init__(self, doing: str, do: str, done: str, old_word: str) -> None:
        self.doing = doing  # Uploading
        self.do = do  # send
        self.done = done  # sent
        self.old_word = old_word  # Uploaded, as the first client logged it

    def word(self, action: str) -> str:
        """What was done to a file, seen from here."""
        return {"sent": self.done, "would send": f"would {self.do}"}.get(action, action)

    def file_line(self, done: FileDone) -> str:
        """`sent data/a -> /pfs/local/home/alice/data/a`"""
        if not done.source:
            return f"{self.word(done.action)} {done.target}"
        return f"{self.word(done.action)} {done.source} -> {done.target}"


UP = Direction("Uploading", "send", "sent", "Uploaded")
DOWN = Direction("Downloading", "receive", "received", "Downloaded")
ACROSS = Direction("Copying", "copy", "copied", "Copied")


def direction(sources: Sequence[str], target: str, verb: str) -> Direction:
    """Which way it goes; a command that goes no way is refused before anything is asked."""
    remote = [source for source in sources if paths.is_remote(source)]
    for path in remote:
        paths.check(path, verb)
    if paths.is_remote(target):
        paths.check_fully(target, verb)
    if remote and len(remote) < len(sources):
        here = next(source for source in sources if not paths.is_remote(source))
        raise InvalidInput(
            f"{here} is here and {remote[0]} is on the platform; sources must be on one side",
            hint=f"{verb} them one after the other",
            field=here,
        )
    if not remote and not paths.is_remote(target):
        raise InvalidInput(
            f"{sources[0]} and {target} are both here; one side must begin with /pfs/",
            hint=paths.quote_hint([*sources, target]) or f"paths on the platform are {paths.FORM}",
            field=target,
        )
    if not remote:
        return UP
    return ACROSS if paths.is_remote(target) else DOWN


class Teller:
    """What people are told while files move. `told` is called for each file, if at all."""

    def __init__(
        self,
        session: Session,
        way: Direction,
        sources: Sequence[str],
        *,
        told: Callable[[FileDone], str | None] | None = None,
        has_head: bool = False,
    ) -> None:
        label = paths.base_name(sources[0]) if len(sources) == 1 else f"{len(sources)} sources"
        self.progress = Progress(paths.shown(label or sources[0]), time.monotonic())
        self.line = ProgressLine(self.progress)
        self.only_source = sources[0] if len(sources) == 1 else ""
        self._session = session
        self._told = told
        # `Downloading <source> ... Done`, for one file, or whatever is fetched, from one source.
        self._is_for_many = way is DOWN
        self._head = (
            f"{way.doing} {paths.shown(sources[0])} ... " if has_head and len(sources) == 1 else ""
        )
        self._is_head_written = False

    def on_event(self, event: Event) -> None:
        with self.line.lock:
            self._take(event)

    def _take(self, event: Event) -> None:
        now_s = time.monotonic()
        self.progress.heard(now_s)
        if isinstance(event, Moved):
            self.progress.move(event.n_bytes, now_s)
        elif isinstance(event, Planned):
            self.progress.plan(*event)
            self._open_head(event)
        elif isinstance(event, FileDone):
            self._file_done(event)
        elif isinstance(event, Note):
            self.line.erase()
            self._session.note(f"note: {paths.shown(event.text)}")
        self.line.refresh()

    def _open_head(self, planned: Planned) -> None:
        is_known = planned.same_files == planned.files
        if is_known or (planned.files != 1 and not self._is_for_many):
            self._head = ""
        elif self._head and not self.line.is_live:  # a line being redrawn would write over it
            self._session.write(self._head)
            self._session.flush()
            self._is_head_written = True

    def _file_done(self, done: FileDone) -> None:
        if done.action in ("sent", "skipped"):
            self.progress.done_files += 1
        text = self._told(done) if self._told is not None else None
        if text is not None:
            self.line.erase()
            self._session.say(paths.shown(text))
            self._session.flush()

    def close(self, word: str) -> None:
        """The end of it, as the head's last word."""
        self.line.end()
        self.line.erase()
        if self._head and self.progress.is_planned:
            self._session.say(word if self._is_head_written else self._head + word)
            self._session.flush()
        self._head = ""

    def stop(self) -> None:
        """Ctrl-C: the terminal has echoed it behind whatever was drawn."""
        self.line.end()
        self.line.leave()
        if self._is_head_written:
            self._session.say("stopped")
            self._session.flush()

    def how_far(self) -> str:
        if not self.progress.is_planned:
            return f"stopped before anything was moved. {AGAIN}"
        return f"stopped at {self.progress.furthest_percent}%. {AGAIN}"


def carry_out(
    session: Session, teller: Teller, start: Callable[[OnEvent], Summary]
) -> Summary | None:
    """Run it; None after Ctrl-C. An error on the way says how far it got."""
    try:
        teller.line.begin()
        summary = start(teller.on_event)
    except KeyboardInterrupt:
        teller.stop()
        session.note(teller.how_far())
        return None
    except PaddleCloudError as error:
        teller.close("failed")
        is_cut = isinstance(error, ServerUnreachable | Unavailable)
        if is_cut and teller.progress.is_planned:
            error.hint = teller.how_far()
        if isinstance(error, InvalidInput) and not error.faults:
            error.message = paths.naming(error.message, teller.only_source)
        paths.explain(session, error)
        raise
    teller.close("failed" if summary.failures else "Done")
    return summary


def finish(
    session: Session,
    way: Direction,
    summary: Summary | None,
    *,
    dry_run: bool = False,
    has_summary: bool = True,
) -> int:
    """Failures by name, then the summary; the exit code."""
    if summary is None:
        return EXIT_INTERRUPTED
    session.flush()
    for path, error in summary.failures:
        session.note(f"error: {paths.naming(error.message, path)}")
    if has_summary and "o" not in session.parsed:
        session.say(would_line(way, summary) if dry_run else summary_line(way, summary))
    return EXIT_PARTIAL if summary.failures else 0


def summary_line(way: Direction, summary: Summary) -> str:
    """`6,000 files, 2.0 GiB: sent 0.8 GiB, already there 1.2 GiB, 1.1 s`"""
    total = summary.size_bytes
    parts = []
    if summary.sent_files and way is ACROSS:  # nothing travels
        parts.append(f"copied {sizes.counted(summary.sent_files, 'file')} on the platform")
    elif summary.sent_files or not (summary.same_files or summary.skipped_files):
        parts.append(f"{way.done} {sizes.binary(summary.sent_bytes, total)}")
    if summary.same_files or summary.same_bytes:
        parts.append(f"already there {sizes.binary(summary.same_bytes, total)}")
    if summary.skipped_files:
        parts.append(f"left alone {sizes.counted(summary.skipped_files, 'file')}")
    if summary.removed_files:
        parts.append(f"removed {sizes.counted(summary.removed_files, 'file')}")
    if summary.failures:
        parts.append(f"failed {sizes.counted(len(summary.failures), 'file')}")
    parts.append(took(summary.seconds))
    files = sizes.counted(summary.files, "file")
    return f"{files}, {sizes.binary(total)}: {', '.join(parts)}"


def would_line(way: Direction, summary: Summary) -> str:
    files, size = sizes.counted(summary.sent_files, "file"), sizes.binary(summary.sent_bytes)
    parts = [f"{way.do} {files}" + ("" if way is ACROSS else f", {size}")]
    if summary.removed_files:
        parts.append(f"remove {sizes.counted(summary.removed_files, 'file')}")
    same = sizes.counted(summary.same_files, "file")
    return f"dry run, nothing was done. It would {' and '.join(parts)}; {same} already there"


def took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else times.fine(seconds)


def as_data(summary: Summary, done: Sequence[FileDone] = ()) -> dict[str, Any]:
    """The summary for programs, and each file if they were kept."""
    value: dict[str, Any] = {
        name: getattr(summary, name)
        for name in (
            *("files", "size_bytes", "sent_files", "sent_bytes", "same_files", "same_bytes"),
            *("skipped_files", "removed_files"),
        )
    }
    value["seconds"] = round(summary.seconds, 3)
    value["failures"] = [
        {"path": paths.shown(path), "code": error.code, "message": paths.shown(error.message)}
        for path, error in summary.failures
    ]
    if done:
        value["items"] = [item._asdict() for item in done]
    return value
