"""Writes of the first protocol: `touch` a file of some size, then ask for and post its chunks.

The first server wrote into the visible file. Here the writes go to a hidden draft that begins as a
copy of the file, and it takes the name when every chunk was posted or passed over, that is, the
client asked for its checksum and went on. Whether the last chunk was passed over shows only by
silence: after `QUIET_S` without a call it is taken as such. A chunk for a file nobody touched
changes a draft of the existing file, published after the same silence. Drafts are in memory: after
a restart the old client finds its file as it was and sends it again.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from paddlecloud.core.errors import Conflict, InvalidInput, OutOfSpace, PaddleCloudError
from paddlecloud.pfs.copying import copy_bytes
from paddlecloud.pfs.directories import Directories
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import named
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.publishing import Draft, standing
from paddlecloud.pfs.shapes import Content
from paddlecloud.pfs.store import Store
from paddlecloud.pfs.usage import Reservation
from paddlecloud.wire.pfspath import PUBLIC, PfsPath

QUIET_S = 2.0
FORGOTTEN_S = 24 * 3600.0
MOST_BYTES = 1 << 40
_READ_BYTES = 1 << 20
_Key = tuple[int, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ChunkMeta:
    checksum: str  # MD5 in hex
    size_bytes: int


class _Writing:
    """A draft of one file, and which of its bytes the client has settled."""

    def __init__(
        self, owner: Owner, path: PfsPath, tree: Tree, draft: Draft, held: Reservation
    ) -> None:
        self.owner = owner
        self.path = path
        self.tree = tree
        self.draft = draft
        self.held = held
        self.size_bytes = 0
        self.is_touched = False
        self.settled: list[tuple[int, int]] = []  # sorted, apart
        self.asked: tuple[int, int] | None = None
        self.receivers = 0
        self.quiet_since_s = 0.0
        self.executable = False
        self.is_claimed = False

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

    def is_ready_when_quiet(self) -> bool:
        if not self.is_touched or self.is_whole:
            return True
        return self.asked is not None and self._with(*self.asked) == [(0, self.size_bytes)]


class LegacyFiles:
    """Thread safe. `tick` is called every second or so, `flush` at the end."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.RLock()
        self._writings: dict[_Key, _Writing] = {}

    # --- what the client calls ---

    def touch(self, owner: Owner, path: PfsPath, size_bytes: int) -> None:
        """The file will have this size. An existing one keeps its bytes as far as they go."""
        if not 0 <= size_bytes <= MOST_BYTES:
            raise InvalidInput("bad file size", field="filesize")
        tree = self._check(owner, path)
        with self._lock:
            writing = self._writings.get(_key(owner, path))
            if writing is None or writing.size_bytes != size_bytes:
                if writing is not None and not self._supersede(writing):
                    raise Conflict("somebody is writing this file", field="path", hint="try again")
                writing = self._begin(owner, path, tree, size_bytes)
            writing.is_touched = True
            writing.settled = []
            writing.asked = None
            writing.quiet_since_s = self._clock()
            is_done = size_bytes == 0 and self._claim(writing)
        if is_done:
            self._publish(writing)

    def chunk_meta(self, owner: Owner, path: PfsPath, offset: int, length: int) -> ChunkMeta:
        """The checksum of a chunk, of the draft if there is one; short or empty at the end."""
        if offset < 0 or length <= 0:
            raise InvalidInput("chunksize error", field="chunksize")
        self._store.check(owner, path)
        with self._lock:
            writing = None if path.area == PUBLIC else self._writings.get(_key(owner, path))
            fd = -1 if writing is None else os.dup(writing.draft.fd)
        if writing is None:
            with self._store.open_content(owner, path) as content:
                return _meta(content.fd, offset, length)
        try:
            meta = _meta(fd, offset, length)
        finally:
            os.close(fd)
        with self._lock:
            writing.went_on(offset)
            writing.asked = (offset, offset + length)
            writing.quiet_since_s = self._clock()
            is_done = writing.is_whole and self._claim(writing)
        if is_done:
            self._publish(writing)
        return meta

    def open_chunk(self, owner: Owner, path: PfsPath) -> Content:
        """The visible file, to send a chunk of."""
        return self._store.open_content(owner, path)

    def receive_chunk(self, owner: Owner, path: PfsPath, offset: int) -> ChunkReceiver:
        tree = self._check(owner, path)
        with self._lock:
            writing = self._writings.get(_key(owner, path))
            if writing is None:
                with self._store.open_content(owner, path) as content:
                    size_bytes = content.size_bytes
                writing = self._begin(owner, path, tree, size_bytes)
            if not 0 <= offset <= writing.size_bytes:
                raise InvalidInput("the chunk lies behind the end of the file", field="offset")
            writing.went_on(offset)
            writing.asked = None
            writing.receivers += 1
            return ChunkReceiver(self, writing, offset)

    def write_chunk(self, owner: Owner, path: PfsPath, offset: int, data: bytes) -> None:
        """A whole chunk at once."""
        receiver = self.receive_chunk(owner, path, offset)
        try:
            receiver.write(data)
            receiver.finish()
        finally:
            receiver.cut()

    def read_chunk(self, owner: Owner, path: PfsPath, offset: int, length: int) -> bytes:
        """A whole chunk at once; short or empty at the end."""
        with self._store.open_content(owner, path) as content:
            return os.pread(content.fd, length, offset)

    # --- time ---

    def tick(self) -> None:
        """Publish what is whole and quiet, drop what was given up."""
        now_s = self._clock()
        with self._lock:
            quiet = [one for one in self._writings.values() if now_s - one.quiet_since_s >= QUIET_S]
            ready = [one for one in quiet if one.is_ready_when_quiet() and self._claim(one)]
            for writing in quiet:
                if now_s - writing.quiet_since_s > FORGOTTEN_S and self._claim(writing):
                    self._drop(writing)
        for writing in ready:
            self._publish_or_keep(writing)

    def _publish_or_keep(self, writing: _Writing) -> None:
        """A full disk, or a directory in the way: nobody waits for the answer, so try later."""
        try:
            self._publish(writing, or_drop=False)
        except PaddleCloudError:
            with self._lock:
                key = _key(writing.owner, writing.path)
                if key in self._writings or writing.draft.is_doubtful:
                    self._drop(writing)
                else:
                    writing.is_claimed = False
                    writing.quiet_since_s = self._clock()
                    self._writings[key] = writing

    def flush(self) -> None:
        """The end: what can be published is, the rest is dropped."""
        with self._lock:
            ends = [one for one in list(self._writings.values()) if self._claim(one)]
        for writing in ends:
            try:
                if writing.is_ready_when_quiet():
                    self._publish(writing)
                else:
                    self._drop(writing)
            except PaddleCloudError:
                continue

    # --- drafts ---

    def _check(self, owner: Owner, path: PfsPath) -> Tree:
        tree = self._store.places.tree(owner, path, to_write=True)
        if path.is_root or path.is_directory:
            raise InvalidInput("should be a file not a directory", field="path")
        return tree

    def _begin(self, owner: Owner, path: PfsPath, tree: Tree, size_bytes: int) -> _Writing:
        services = self._store.services
        if size_bytes > tree.free_bytes():
            raise OutOfSpace("the disk of the file store is full", field="filesize")
        with named(path), Directories(tree) as dirs:
            try:
                standing(dirs.open(path.parts[:-1]), path.name)
            except FileNotFoundError:
                pass
            held = services.usage.reserve(owner, size_bytes, 1)
            draft: Draft | None = None
            try:
                folder = self._store.places.parts_of(owner.account_id)
                draft = Draft(folder, services)
                writing = _Writing(owner, path, tree, draft, held)
                self._copy_existing(writing, size_bytes)
                os.ftruncate(draft.fd, size_bytes)
            except BaseException:
                held.release()
                if draft is not None:
                    draft.discard()
                    draft.close()
                raise
        writing.size_bytes = size_bytes
        writing.quiet_since_s = self._clock()
        self._writings[_key(owner, path)] = writing
        return writing

    def _copy_existing(self, writing: _Writing, size_bytes: int) -> None:
        try:
            fd, facts = writing.tree.open_file(writing.path.parts)
        except FileNotFoundError:
            return
        try:
            copy_bytes(fd, writing.draft.fd, min(facts.st_size, size_bytes))
            writing.executable = bool(facts.st_mode & 0o100)
        finally:
            os.close(fd)

    def _claim(self, writing: _Writing) -> bool:
        """Take it out, under the lock, to publish or drop it without; False if it is in use."""
        if writing.is_claimed or writing.receivers:
            return False
        writing.is_claimed = True
        key = _key(writing.owner, writing.path)
        if self._writings.get(key) is writing:
            del self._writings[key]
        return True

    def _supersede(self, writing: _Writing) -> bool:
        if not self._claim(writing):
            return False
        self._drop(writing)
        return True

    def _publish(self, writing: _Writing, *, or_drop: bool = True) -> None:
        try:
            with named(writing.path):
                writing.draft.publish(
                    writing.owner,
                    (writing.tree, writing.path.parts),
                    writing.held,
                    executable=writing.executable,
                )
        except BaseException:
            if or_drop:
                self._drop(writing)
            raise
        writing.draft.close()

    @staticmethod
    def _drop(writing: _Writing) -> None:
        writing.draft.discard()
        writing.draft.close()
        writing.held.release()

    def received(self, writing: _Writing, start: int, end: int, *, is_whole: bool) -> None:
        """A receiver is done with its chunk."""
        with self._lock:
            writing.receivers -= 1
            writing.quiet_since_s = self._clock()
            if is_whole:
                writing.settle(start, end)
            elif end > start:
                writing.unsettle(start, end)  # half of its bytes may be new
            is_done = writing.is_touched and writing.is_whole and self._claim(writing)
        if is_done:
            self._publish(writing)


class ChunkReceiver:
    """`write`, then `finish`; `cut` at the end in any case."""

    def __init__(self, files: LegacyFiles, writing: _Writing, offset: int) -> None:
        self._files = files
        self._writing = writing
        self._start = self._at = offset
        self._fd = os.dup(writing.draft.fd)

    def write(self, data: memoryview | bytes | bytearray) -> None:
        view = memoryview(data)
        if self._at + len(view) > self._writing.size_bytes:
            raise InvalidInput("the chunk reaches behind the end of the file", field="chunk")
        with named(self._writing.path):
            while view:
                n_written = os.pwrite(self._fd, view, self._at)
                self._at += n_written
                view = view[n_written:]

    def finish(self) -> None:
        """The chunk is whole; with the last one the file takes its name before this returns."""
        self._end(is_whole=True)

    def cut(self) -> None:
        self._end(is_whole=False)

    def _end(self, *, is_whole: bool) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            self._files.received(self._writing, self._start, self._at, is_whole=is_whole)


def _key(owner: Owner, path: PfsPath) -> _Key:
    return owner.account_id, path.parts


def _meta(fd: int, offset: int, length: int) -> ChunkMeta:
    checksum = hashlib.md5(usedforsecurity=False)
    at, end = offset, offset + length
    while at < end:
        data = os.pread(fd, min(_READ_BYTES, end - at), at)
        if not data:
            break
        checksum.update(data)
        at += len(data)
    return ChunkMeta(checksum.hexdigest(), at - offset)
