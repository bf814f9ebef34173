"""What a transfer tells while it runs, and what it says at the end.

`on_event` of `Files.copy` and `Files.sync` is called with these, one at a time, from whichever
thread the news comes from, never from two at once. What it raises ends the transfer, as an
interrupt does. Plain values: nothing here does anything.

    Planned     once, before the first byte: what there is to do
    Moved       often: bytes sent or received
    FileDone    once per file that was dealt with
    Note        something worth reading that is no failure
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    from paddlecloud.core.errors import PaddleCloudError

    Action = Literal["sent", "same", "removed", "skipped", "would send", "would remove"]


class Planned(NamedTuple):
    """All files there are, and those of them that are already on the other side.

    A progress bar goes from `same_bytes` to `size_bytes` by what `Moved` says.
    """

    files: int
    size_bytes: int
    same_files: int
    same_bytes: int


class Moved(NamedTuple):
    """Progress. Negative when bytes were lost with a connection and have to go again."""

    n_bytes: int


class FileDone(NamedTuple):
    """`skipped` is what `replace="never"` left alone. `source` is empty for what was removed.

    Of files that were already there, one each is told only when asked for (`tell_same`).
    """

    source: str  # as the user would write it: a local path, or /pfs/...
    target: str
    size_bytes: int
    sent_bytes: int  # less than the size where parts were already there
    action: Action


class Note(NamedTuple):
    text: str


Event = Planned | Moved | FileDone | Note
OnEvent = Callable[[Event], None]


def ignore(event: Event) -> None:
    """The `on_event` of callers who do not listen."""


class Summary:
    """What came of it. With failures, everything else was still done."""

    __slots__ = (
        "failures",
        "files",
        "removed_files",
        "same_bytes",
        "same_files",
        "seconds",
        "sent_bytes",
        "sent_files",
        "size_bytes",
        "skipped_files",
    )

    def __init__(self) -> None:
        self.files = 0  # considered: sent, already there, skipped, failed
        self.size_bytes = 0  # of all of them
        self.sent_files = 0
        self.sent_bytes = 0  # that travelled, or would have in a dry run
        self.same_files = 0
        self.same_bytes = 0  # that were already there, parts of sent files included
        self.skipped_files = 0  # existed, and replace="never"
        self.removed_files = 0
        self.seconds = 0.0
        self.failures: list[tuple[str, PaddleCloudError]] = []  # (path, why), in order

    @property
    def is_complete(self) -> bool:
        return not self.failures

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"Summary({shown})"
