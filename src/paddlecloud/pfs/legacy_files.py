"""Writes of the first protocol: `touch` a file of some size, then ask for and post its chunks.

The first server wrote into the visible file. Here the writes go to a hidden draft that begins as a
copy of the file, and it takes the name when every chunk was posted or passed over, that is, the
client asked for its checksum and went on. Whether the last chunk was passed over shows only by
silence: after `QUIET_S` without a call it is taken as such. A chunk for a file nobody touched
changes a draft of the existing file, published after the same silence. Beside a draft lies a note
of what has arrived (`legacy_notes`), so a killed or restarted server goes on with it.

`receive_chunk`, `write` and `cut` never wait for a copy, whoever makes it: where the draft is not
there yet, the chunk is set aside, and `finish` puts it in. All else may take as long as a copy or
a sync. Between two calls nothing is open.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from paddlecloud.core.errors import Conflict, InvalidInput, OutOfSpace, PaddleCloudError
from paddlecloud.pfs import legacy_notes
from paddlecloud.pfs.copying import copy_whole
from paddlecloud.pfs.directories import Directories
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import named, shown
from paddlecloud.pfs.legacy_writings import (
    ChunkMeta,
    ChunkReceiver,
    Writing,
    check_end,
    check_offset,
    copy_to,
    meta_of,
)
from paddlecloud.pfs.owners import Owner, account_folders
from paddlecloud.pfs.publishing import Draft, standing
from paddlecloud.pfs.shapes import Content
from paddlecloud.pfs.store import Store
from paddlecloud.wire.pfspath import PUBLIC, PfsPath

QUIET_S = 2.0
FORGOTTEN_S = 24 * 3600.0
MOST_BYTES = 1 << 40
MOST_PER_ACCOUNT = 1000
_Key = tuple[int, tuple[str, ...]]


class LegacyFiles:
    """Thread safe. `tick` is called every second or so, `flush` at the end."""

    def __init__(self, store: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._clock = clock
        # Of all accounts: for the numbers in here, never while a disk is touched.
        self._lock = threading.Lock()
        self._writings: dict[_Key, Writing] = {}
        self._counts: Counter[int] = Counter()
        for folder in account_folders(store.places.hidden / "parts"):
            for name, note in legacy_notes.find(folder):
                with suppress(PaddleCloudError, OSError):
                    self._take_up(int(folder.name), folder, name, note)

    def _take_up(self, account_id: int, folder: Path, name: str, note: legacy_notes.Note) -> None:
        owner, path = Owner(note.owner, account_id, note.uid), PfsPath.parse(note.path)
        writing = self._enter(owner, path, self._check(owner, path))
        services = self._store.services
        writing.draft = Draft(folder, services, name=name)
        writing.draft.close()
        writing.held = services.usage.readopt(account_id, note.size_bytes, 1)
        writing.take_up(note)
        writing.quiet_since_s = self._clock()

    # --- what the client calls ---

    def touch(self, owner: Owner, path: PfsPath, size_bytes: int) -> None:
        """The file will have this size. An existing one keeps its bytes as far as they go."""
        if not 0 <= size_bytes <= MOST_BYTES:
            raise InvalidInput("bad file size", field="filesize")
        writing = self._use(owner, path, self._check(owner, path), size_bytes)
        with self._lock:
            writing.is_touched = True
            writing.settled = []
            writing.asked = None
        self._leave(writing)

    def chunk_meta(self, owner: Owner, path: PfsPath, offset: int, length: int) -> ChunkMeta:
        """The checksum of a chunk, of the draft if there is one; short or empty at the end."""
        if offset < 0 or length <= 0:
            raise InvalidInput("chunksize error", field="chunksize")
        self._store.check(owner, path)
        writing = None if path.area == PUBLIC else self._use_if_there(owner, path)
        if writing is None:
            with self._store.open_content(owner, path) as content:
                return meta_of(content.fd, offset, length)
        try:
            fd = self._open(writing)
            try:
                meta = meta_of(fd, offset, length)
            finally:
                os.close(fd)
            with self._lock:
                writing.went_on(offset)
                writing.asked = (offset, offset + length)
        finally:
            self._leave(writing)
        return meta

    def open_chunk(self, owner: Owner, path: PfsPath) -> Content:
        """The visible file, to send a chunk of."""
        return self._store.open_content(owner, path)

    def receive_chunk(self, owner: Owner, path: PfsPath, offset: int) -> ChunkReceiver:
        tree = self._check(owner, path)
        with self._lock:
            writing = self._writings.get(_key(owner, path))
            is_ready = writing is not None and writing.is_ready
            if writing is not None and is_ready:
                check_offset(offset, writing.size_bytes)
                writing.went_on(offset)
                writing.asked = None
                writing.users += 1
        if writing is None or not is_ready:
            size_bytes = MOST_BYTES if writing is not None else self._size_of(owner, path)
            check_offset(offset, size_bytes)
            return self._receive_aside(Writing(owner, path, tree), offset, size_bytes)
        try:
            fd = self._open(writing)
            return ChunkReceiver(self, writing, offset, writing.size_bytes, fd=fd)
        except BaseException:
            self._leave(writing, may_publish=False)
            raise

    def _size_of(self, owner: Owner, path: PfsPath) -> int:
        with self._store.open_content(owner, path) as content:
            return content.size_bytes

    def _receive_aside(self, wish: Writing, offset: int, size_bytes: int) -> ChunkReceiver:
        with named(wish.path):
            folder = self._store.places.parts_of(wish.owner.account_id)
            aside = Draft(folder, self._store.services)
        return ChunkReceiver(self, wish, offset, size_bytes, aside=aside)

    # --- time ---

    def tick(self) -> None:
        """Publish what is whole and quiet, drop what was given up."""
        now_s = self._clock()
        with self._lock:
            quiet = [
                one
                for one in self._writings.values()
                if one.is_ready and now_s - one.quiet_since_s >= QUIET_S
            ]
            whole = [one for one in quiet if one.is_whole_when_quiet and self._claim(one)]
            given_up = [
                one for one in quiet if now_s - one.quiet_since_s > FORGOTTEN_S and self._claim(one)
            ]
        for writing in given_up:
            writing.drop()
        for writing in whole:
            self._publish_or_keep(writing)

    def _publish_or_keep(self, writing: Writing) -> None:
        """A full disk, or a directory in the way: nobody waits for the answer, so try later."""
        try:
            self._publish(writing, or_drop=False)
        except PaddleCloudError:
            key = _key(writing.owner, writing.path)
            with self._lock:
                is_kept = writing.may_be_published_again and key not in self._writings
                if is_kept:
                    writing.is_over = False
                    writing.quiet_since_s = self._clock()
                    self._writings[key] = writing
                    self._counts[writing.owner.account_id] += 1
            if not is_kept:
                writing.drop()

    def flush(self) -> None:
        """The end: what can be published is, the rest waits for the next process."""
        with self._lock:
            ready = [one for one in self._writings.values() if one.is_ready]
            whole = [one for one in ready if one.is_whole_when_quiet and self._claim(one)]
        for writing in whole:
            with suppress(PaddleCloudError):
                self._publish(writing)

    # --- drafts ---

    def _check(self, owner: Owner, path: PfsPath) -> Tree:
        tree = self._store.places.tree(owner, path, to_write=True)
        if path.is_root or path.is_directory:
            raise InvalidInput("should be a file not a directory", field="path")
        return tree

    def _use(self, owner: Owner, path: PfsPath, tree: Tree, size_bytes: int | None) -> Writing:
        """The writing of a path, its draft made if there is none of this size (None: of any; the
        file must be there). Stays as it is until `_leave`."""
        while True:
            writing = self._enter(owner, path, tree)
            with writing.making:
                with self._lock:
                    is_superseded = self._is_superseded(writing, size_bytes)
                    is_over = writing.is_over
                    if writing.is_ready and not is_over:
                        writing.users += 1
                        return writing
                if is_superseded:
                    writing.drop()
                if not is_over:
                    self._make_ready(writing, size_bytes)
                    return writing

    def _is_superseded(self, writing: Writing, size_bytes: int | None) -> bool:
        """Whether it was of another size, and is over because of that."""
        if not writing.is_ready or writing.is_over or size_bytes in (None, writing.size_bytes):
            return False
        if not self._claim(writing):
            raise Conflict("somebody is writing this file", field="path", hint="try again")
        return True

    def _make_ready(self, writing: Writing, size_bytes: int | None) -> None:
        try:
            self._make(writing, size_bytes)
        except BaseException:
            with self._lock:
                self._remove(writing)
            raise
        with self._lock:
            writing.is_ready = True
            writing.users += 1

    def _enter(self, owner: Owner, path: PfsPath, tree: Tree) -> Writing:
        key = _key(owner, path)
        with self._lock:
            writing = self._writings.get(key)
            if writing is None:
                if self._counts[owner.account_id] >= MOST_PER_ACCOUNT:
                    raise Conflict(
                        f"{MOST_PER_ACCOUNT} files are being written already",
                        field="path",
                        hint="finish some of them first",
                    )
                writing = self._writings[key] = Writing(owner, path, tree)
                self._counts[owner.account_id] += 1
            return writing

    def _use_if_there(self, owner: Owner, path: PfsPath) -> Writing | None:
        with self._lock:
            writing = self._writings.get(_key(owner, path))
        if writing is None:
            return None
        with writing.making, self._lock:  # another call may be making its draft
            if writing.is_over or not writing.is_ready:
                return None
            writing.users += 1
            return writing

    def _make(self, writing: Writing, size_bytes: int | None) -> None:
        """The draft: a copy of the file that is there, as far as it goes."""
        services, path = self._store.services, writing.path
        with named(path), Directories(writing.tree) as dirs:
            source = -1
            try:
                parent = dirs.open(path.parts[:-1])
                standing(parent, path.name)
                source, facts = writing.tree.open_file_in(parent, path.name)
            except FileNotFoundError:
                if size_bytes is None:
                    raise
            try:
                wanted = facts.st_size if size_bytes is None else size_bytes
                if wanted > writing.tree.free_bytes():
                    raise OutOfSpace("the disk of the file store is full", field="filesize")
                writing.size_bytes = wanted
                writing.held = services.usage.reserve(writing.owner, wanted, 1)
                try:
                    folder = self._store.places.parts_of(writing.owner.account_id)
                    writing.draft = Draft(folder, services)
                    self._fill(writing, source, is_whole=size_bytes is None)
                except BaseException:
                    writing.drop()
                    raise
            finally:
                if source >= 0:
                    os.close(source)
        writing.draft.close()
        writing.quiet_since_s = self._clock()

    @staticmethod
    def _fill(writing: Writing, source: int, *, is_whole: bool) -> None:
        assert writing.draft is not None
        if source >= 0:
            where = shown(writing.path)
            facts = copy_whole(source, writing.draft.fd, where, writing.size_bytes)
            if is_whole and facts.st_size != writing.size_bytes:
                raise Conflict(f"{where} is being written", field="path", hint="try again")
            writing.executable = bool(facts.st_mode & 0o100)
        os.ftruncate(writing.draft.fd, writing.size_bytes)

    def _open(self, writing: Writing) -> int:
        """A descriptor of the draft of a writing in use."""
        assert writing.draft is not None
        try:
            return writing.draft.open()
        except FileNotFoundError:  # somebody deleted what is hidden: the client begins again
            with self._lock:
                self._remove(writing)
            writing.drop()
            raise Conflict(
                f"what was sent of {shown(writing.path)} is gone",
                field="path",
                hint="send it again",
            ) from None
        except OSError as error:
            with named(writing.path):
                raise error

    def _leave(self, writing: Writing, *, may_publish: bool = True) -> None:
        """A call is done with it; the last one publishes it if nothing is missing."""
        with self._lock:
            writing.users -= 1
            writing.quiet_since_s = self._clock()
            is_whole = writing.is_touched and writing.is_whole
            is_done = may_publish and is_whole and self._claim(writing)
        if is_done:
            self._publish(writing)
        else:
            self._note(writing)

    def _note(self, writing: Writing) -> None:
        with writing.noting:
            with self._lock:
                note = None if writing.is_over else writing.to_note()
            if note is not None and writing.draft is not None:
                legacy_notes.write(writing.draft.path, note)

    def _claim(self, writing: Writing) -> bool:
        """Take it out, under the lock, to publish or drop it without; False if it is in use."""
        if writing.is_over or writing.users:
            return False
        self._remove(writing)
        return True

    def _remove(self, writing: Writing) -> None:
        writing.is_over = True
        key = _key(writing.owner, writing.path)
        if self._writings.get(key) is writing:
            del self._writings[key]
            self._counts[writing.owner.account_id] -= 1

    def _publish(self, writing: Writing, *, or_drop: bool = True) -> None:
        draft, held = writing.draft, writing.held
        assert draft is not None
        assert held is not None
        try:
            with named(writing.path):
                draft.reopen()
                draft.publish(
                    writing.owner,
                    (writing.tree, writing.path.parts),
                    held,
                    executable=writing.executable,
                )
            writing.forget_note()
        except BaseException:
            if or_drop:
                writing.drop()
            raise
        finally:
            draft.close()

    # --- what a receiver calls ---

    def put_in(self, wish: Writing, aside: int, start: int, end: int) -> None:
        """A chunk that was set aside, because there was no draft when it came."""
        writing = self._use(wish.owner, wish.path, wish.tree, None)
        is_whole = False
        try:
            check_end(end, writing.size_bytes)
            with self._lock:
                writing.went_on(start)
                writing.asked = None
            fd = self._open(writing)
            try:
                with named(wish.path):
                    copy_to(aside, fd, start, end)
            finally:
                os.close(fd)
            is_whole = True
        finally:
            self.received(writing, start, end, is_whole=is_whole)

    def received(self, writing: Writing, start: int, end: int, *, is_whole: bool) -> None:
        """A chunk is in the draft, or only a part of it."""
        with self._lock:
            if is_whole:
                writing.settle(start, end)
            elif end > start:
                writing.unsettle(start, end)  # half of its bytes may be new
        self._leave(writing, may_publish=is_whole)


def _key(owner: Owner, path: PfsPath) -> _Key:
    return owner.account_id, path.parts
