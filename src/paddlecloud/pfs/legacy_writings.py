"""What the first protocol's writes consist of: a file on its way, and one chunk on its way.

Used by `legacy_files` only, which guards the numbers in here with its lock.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paddlecloud.core.errors import InvalidInput
from paddlecloud.pfs import legacy_notes
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import named
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.publishing import Draft
from paddlecloud.pfs.usage import Reservation
from paddlecloud.wire.pfspath import PfsPath

if TYPE_CHECKING:
    from paddlecloud.pfs.legacy_files import LegacyFiles

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ChunkMeta:
    checksum: str  # MD5 in hex
    size_bytes: int


def meta_of(fd: int, offset: int, length: int) -> ChunkMeta:
    checksum = hashlib.md5(usedforsecurity=False)
    at, end = offset, offset + length
    while at < end:
        data = os.pread(fd, min(_PIECE_BYTES, end - at), at)
        if not data:
            break
        checksum.update(data)
        at += len(data)
    return ChunkMeta(checksum.hexdigest(), at - offset)


class Writing:
    """A draft of one file, and which of its bytes the client has settled."""

    def __init__(self, owner: Owner, path: PfsPath, tree: Tree) -> None:
        self.owner = owner
        self.path = path
        self.tree = tree
        self.making = threading.Lock()  # while the draft is made, which may take long
        self.noting = threading.Lock()  # the note is that of the latest numbers
        self.is_ready = False  # there is a draft
        self.is_over = False  # published or dropped, or about to be
        self.draft: Draft | None = None
        self.held: Reservation | None = None
        self.size_bytes = 0
        self.executable = False
        self.is_touched = False
        self.settled: list[tuple[int, int]] = []  # sorted, apart
        self.asked: tuple[int, int] | None = None
        self.users = 0
        self.quiet_since_s = 0.0

    def settle(self, start: int, end: int) -> None:
        self.settled = self._with(start, end)

    def _with(self, start: int, end: int) -> list[tuple[int, int]]:
        spans = sorted([*self.settled, (start, min(end, self.size_bytes))])
        merged: list[tuple[int, int]] = []
        for left, right in spans:
            if merged and left <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(merged[-1][1], right))
            elif right > left:
                merged.append((left, right))
        return merged

    def unsettle(self, start: int, end: int) -> None:
        self.settled = [
            span
            for left, right in self.settled
            for span in ((left, min(right, start)), (max(left, end), right))
            if span[0] < span[1]
        ]

    def went_on(self, start: int) -> None:
        """Another chunk is spoken of: the one asked for before was passed over."""
        if self.asked is not None and self.asked[0] != start:
            self.settle(*self.asked)
            self.asked = None

    @property
    def is_whole(self) -> bool:
        return self.size_bytes == 0 or self.settled == [(0, self.size_bytes)]

    @property
    def is_whole_when_quiet(self) -> bool:
        if not self.is_touched or self.is_whole:
            return True
        return self.asked is not None and self._with(*self.asked) == [(0, self.size_bytes)]

    @property
    def may_be_published_again(self) -> bool:
        """After it failed: the draft is still there, and what it holds is not in doubt."""
        return self.draft is not None and not (self.draft.is_named or self.draft.is_doubtful)

    def to_note(self) -> legacy_notes.Note:
        return legacy_notes.Note(
            owner=self.owner.name,
            uid=self.owner.uid,
            path=str(self.path),
            size_bytes=self.size_bytes,
            executable=self.executable,
            is_touched=self.is_touched,
            settled=tuple(self.settled),
            asked=self.asked,
        )

    def take_up(self, note: legacy_notes.Note) -> None:
        """Go on where an earlier process was."""
        self.size_bytes = note.size_bytes
        self.executable = note.executable
        self.is_touched = note.is_touched
        self.settled = list(note.settled)
        self.asked = note.asked
        self.is_ready = True

    def forget_note(self) -> None:
        """Without it the draft is a leftover."""
        if self.draft is not None:
            with self.noting:
                legacy_notes.forget(self.draft.path)

    def drop(self) -> None:
        self.forget_note()
        if self.draft is not None:
            self.draft.discard()
            self.draft.close()
        if self.held is not None:
            self.held.release()


class ChunkReceiver:
    """`write`, then `finish`; `cut` at the end in any case. Neither `write` nor `cut` waits."""

    def __init__(
        self,
        files: LegacyFiles,
        writing: Writing,
        offset: int,
        size_bytes: int,
        *,
        fd: int = -1,
        aside: Draft | None = None,
    ) -> None:
        """Into `fd`, the draft of a writing in use; or into `aside`, a hidden file of the chunk's
        own, while there is no draft yet and `writing` only says whose it will be."""
        self._files = files
        self._writing = writing
        self._size_bytes = size_bytes
        self._start = self._at = offset
        self._aside = aside
        self._fd = fd if aside is None else aside.fd
        self._shift_bytes = 0 if aside is None else offset

    def write(self, data: memoryview | bytes | bytearray) -> None:
        view = memoryview(data)
        check_end(self._at + len(view), self._size_bytes)
        with named(self._writing.path):
            while view:
                n_written = os.pwrite(self._fd, view, self._at - self._shift_bytes)
                self._at += n_written
                view = view[n_written:]

    def finish(self) -> None:
        """The chunk is whole; with the last one the file takes its name before this returns."""
        if self._fd < 0:
            return
        try:
            if self._aside is not None:
                self._files.put_in(self._writing, self._aside.fd, self._start, self._at)
        finally:
            self._end(is_whole=True)

    def cut(self) -> None:
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        if self._fd < 0:
            return
        self._fd, fd = -1, self._fd
        if self._aside is not None:
            self._aside.discard()
            self._aside.close()
            return
        os.close(fd)
        self._files.received(self._writing, self._start, self._at, is_whole=is_whole)


def check_offset(offset: int, size_bytes: int) -> None:
    if not 0 <= offset <= size_bytes:
        raise InvalidInput("the chunk lies behind the end of the file", field="offset")


def check_end(end: int, size_bytes: int) -> None:
    if end > size_bytes:
        raise InvalidInput("the chunk reaches behind the end of the file", field="chunk")


def copy_to(source: int, target: int, offset: int, end: int) -> None:
    """All of `source`, which has so many bytes, to `offset` up to `end` of `target`."""
    at = offset
    while at < end:
        data = memoryview(os.pread(source, min(_PIECE_BYTES, end - at), at - offset))
        while data:
            n_written = os.pwrite(target, data, at)
            at += n_written
            data = data[n_written:]
