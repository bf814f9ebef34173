"""Unfinished uploads: a hidden part file, which leaves of it have arrived, and how they finish.

An upload is found again by who sends what where, so running the command again is the resume. Each
leaf is hashed in the pass that writes it and recorded when whole; one that was cut goes on in the
middle. State is on disk (`up-<id>`, `.json`, `.leaves`), so a killed server resumes too, a MiB per
connection behind; after a reboot the recorded leaves are read again before they are believed. A
file appears under its name complete or not at all: dress, fsync, rename, fsync of the directory.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput
from paddlecloud.pfs import page_cache
from paddlecloud.pfs.boots import boot_id
from paddlecloud.pfs.digesting import read_leaf
from paddlecloud.pfs.directories import Parts
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import DifferentLeaves, MissingLeaves, named
from paddlecloud.pfs.leaf_records import LeafRecord
from paddlecloud.pfs.owners import Owner
from paddlecloud.pfs.publishing import Draft, Services
from paddlecloud.pfs.receiving import Receiver
from paddlecloud.pfs.shapes import Entry, UploadRow, UploadWish
from paddlecloud.pfs.usage import Reservation
from paddlecloud.wire.buffers import buffer as new_buffer
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_bytes, leaf_count, leaf_hash

MOST_RECEIVERS = 2
_QUIET_S = 0.25
_MOST_WAIT_S = 1.0
_LOOK_EVERY_S = 0.01
_COPY_BYTES = 1 << 20


class Upload:
    """One unfinished upload. Thread safe; made by `unfinished.Uploads` only."""

    def __init__(
        self,
        upload_id: str,
        owner: Owner,
        wish: UploadWish,
        folder: Path,
        target: tuple[Tree, Parts],
        services: Services,
        reservation: Reservation,
        on_end: Callable[[Upload], None],
    ) -> None:
        self.id = upload_id
        self.owner = owner
        self.wish = wish
        self.size_bytes = wish.size_bytes
        self.shown = str(wish.path) if wish.path is not None else f"blob {wish.blob}"
        self.used_at_s = time.monotonic()
        self._folder = folder
        self._tree, self._target = target
        self._services = services
        self._passes = services.sync and self.size_bytes >= page_cache.LARGE_BYTES
        self._reservation = reservation
        self._on_end = on_end
        self._lock = threading.RLock()
        self._receivers: list[Receiver] = []
        self._leaves = LeafRecord(self._file(".leaves"), self.size_bytes)
        self._is_doubtful = False
        self._entry: Entry | None = None
        self._is_abandoned = False

    # --- files of its own ---

    def _file(self, suffix: str) -> Path:
        return self._folder / f"up-{self.id}{suffix}"

    def create(self) -> None:
        """Begin anew: whatever a half-made one left is overwritten."""
        with named(self.shown):
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
            os.close(os.open(self._file(""), flags, 0o600))
            self._record.create()
            self.note()
            if self.size_bytes == 0:
                self._record.ends(0, bytes(leaf_hash().digest()))

    def note(self) -> None:
        """Write down what was wished."""
        wish = self.wish
        body = {
            "path": None if wish.path is None else str(wish.path),
            "blob": wish.blob,
            "size": wish.size_bytes,
            "mtime_ns": wish.mtime_ns,
            "executable": wish.executable,
            "source": wish.source,
            "owner": self.owner.name,
            "uid": self.owner.uid,
            "boot": boot_id(),
        }
        new = self._file(".json.new")
        new.write_text(json.dumps(body))
        os.rename(new, self._file(".json"))

    def renew(self, owner: Owner, wish: UploadWish, tree: Tree) -> bool:
        """The same file is sent again: what may have changed is taken over.

        Waits for a commit under way. False: it is over, and a new one can be begun.
        """
        with self._lock, named(self.shown):
            if not self._is_over and not self._file("").exists():
                self.abandon()  # somebody deleted what had arrived
            if self._is_over:
                return False
            self.owner = owner
            self.wish = wish
            self._tree = tree
            self.note()
            return True

    def take_up(self, *, is_doubtful: bool) -> None:
        """Go on with what an earlier process received; nothing of it is read before it is used."""
        with named(self.shown):
            os.stat(self._file(""))  # gone: killed after it took its name
        self._is_doubtful = is_doubtful

    @property
    def _record(self) -> LeafRecord:
        """The leaves. The first to ask after a reboot waits until they have been read again."""
        if self._is_doubtful:
            with self._lock:
                if self._is_doubtful:
                    self._is_doubtful = False
                    with named(self.shown):
                        self._believe_only_what_is_there()
                        self.note()
        return self._leaves

    def _believe_only_what_is_there(self) -> None:
        """A power cut may have lost bytes whose digest was kept, or that were counted."""
        buffer = new_buffer(_COPY_BYTES)
        fd = os.open(self._file(""), os.O_RDONLY | os.O_CLOEXEC)
        try:
            for index, digest in self.received():
                if read_leaf(fd, index, self.size_bytes, buffer) != digest:
                    self._record.begins(index)
            for index, _ in self._record.begun():
                self._record.begins(index)
        finally:
            os.close(fd)

    def _believe_nothing(self) -> None:
        """After a failed fsync the next one may succeed without the lost bytes: all come again."""
        for index in range(leaf_count(self.size_bytes)):
            self._record.begins(index)

    # --- receiving ---

    def received(self) -> list[tuple[int, bytes]]:
        """(index, digest) of the leaves that are here."""
        with self._lock:
            return self._record.whole()

    @property
    def received_bytes(self) -> int:
        with self._lock:
            whole = sum(leaf_bytes(index, self.size_bytes) for index, _ in self._record.whole())
            return whole + sum(length for _, length in self._record.begun())

    @property
    def missing_bytes(self) -> int:
        """What it has been promised and the disk has not got yet."""
        try:
            return max(0, self.size_bytes - os.stat(self._file("")).st_blocks * 512)
        except OSError:
            return 0

    def base(self) -> tuple[bytes, ...] | None:
        """The leaves of the file now at the path, if they are known."""
        try:
            fd, facts = self._tree.open_file(self._target)
        except OSError:
            return None
        os.close(fd)
        known = self._services.digests.known(facts)
        return known.leaves if known else None

    def receive(self, offset: int, length: int, *, checks: bool = False) -> Receiver:
        """Take `length` bytes from `offset` on; see `Receiver`."""
        end = offset + length
        if not 0 <= offset <= self.size_bytes:
            raise InvalidInput("must be in the file", field="offset")
        is_empty = length <= 0 and self.size_bytes > 0
        if is_empty or end > self.size_bytes or (end % LEAF_BYTES and end != self.size_bytes):
            raise InvalidInput(
                f"a body must have a multiple of {LEAF_BYTES} bytes, or reach the end of the file",
                field="body",
            )
        with self._lock:
            self._check_open()
            self._stop_others(offset // LEAF_BYTES * LEAF_BYTES, end)
            self._check_goes_on(offset)
            with named(self.shown):
                fd = os.open(self._file(""), os.O_RDWR | os.O_CLOEXEC)
                receiver = Receiver(
                    fd,
                    offset,
                    end,
                    self._record,
                    self._forget,
                    checks=checks,
                    syncs=self._services.sync,
                    passes=self._passes,
                )
            self._receivers.append(receiver)
            return receiver

    def _check_goes_on(self, offset: int) -> None:
        """In the middle of a leaf, all before it must be here."""
        index, skipped = divmod(offset, LEAF_BYTES)
        if skipped and not self._record.has(index, skipped):
            raise InvalidInput(
                f"must be a multiple of {LEAF_BYTES}, or where a leaf that is begun goes on",
                hint="begin again: the answer tells which are begun",
                field="offset",
            )

    def _stop_others(self, start: int, end: int) -> None:
        """Nobody else may write these leaves, and two connections are enough.

        The newest wins: an old one may be a connection that died and has not noticed.
        """
        for other in list(self._receivers):
            if other.overlaps(start, end) or len(self._receivers) >= MOST_RECEIVERS:
                other.stop()
                self._forget(other)

    def wait_for_bytes_on_the_way(self) -> None:
        """What a cut connection had sent may still be in the kernel's buffers, several leaves of
        it: who comes back to go on shall not send those again. A connection that is silent, or
        very much alive, is not waited for longer than a moment."""
        until_s = time.monotonic() + _MOST_WAIT_S
        while any(each.has_moved_within(_QUIET_S) for each in list(self._receivers)):
            if time.monotonic() > until_s:
                return
            time.sleep(_LOOK_EVERY_S)

    def _forget(self, receiver: Receiver) -> None:
        self.used_at_s = time.monotonic()
        with suppress(ValueError):
            self._receivers.remove(receiver)

    @property
    def _is_over(self) -> bool:
        return self._is_abandoned or self._entry is not None

    def _check_open(self) -> None:
        if self._is_over:
            raise Conflict("this upload is finished", hint="begin it again")

    @property
    def is_committed(self) -> bool:
        return self._entry is not None

    @property
    def is_idle(self) -> bool:
        return not self._receivers

    def reuse(self, indices: Sequence[int]) -> list[tuple[int, bytes]]:
        """Take leaves from the file now at the path; those it does not have are left out."""
        with self._lock, named(self.shown):
            self._check_open()
            fd, facts = self._tree.open_file(self._target)
            try:
                mine = os.open(self._file(""), os.O_RDWR | os.O_CLOEXEC)
                try:
                    return [
                        (index, digest)
                        for index in indices
                        if (digest := self._copy_leaf(fd, facts.st_size, mine, index)) is not None
                    ]
                finally:
                    os.close(mine)
            finally:
                os.close(fd)

    def _copy_leaf(self, source: int, source_bytes: int, mine: int, index: int) -> bytes | None:
        at = index * LEAF_BYTES
        length = leaf_bytes(index, self.size_bytes)
        if not 0 <= index < leaf_count(self.size_bytes):
            raise InvalidInput(f"the file has no leaf {index}", field="leaves")
        if at + length > source_bytes:
            return None
        self._stop_others(at, at + length)
        receiver = Receiver(os.dup(mine), at, at + length, self._record, self._forget)
        self._receivers.append(receiver)
        buffer = new_buffer(_COPY_BYTES)
        try:
            while length:
                n_read = os.preadv(source, [buffer[:length]], at)
                if n_read == 0:  # it shrank
                    return None
                receiver.write(buffer[:n_read])
                at += n_read
                length -= n_read
            return receiver.finish()[0]
        finally:
            receiver.cut()

    # --- the end ---

    def commit(self, digest: bytes) -> Entry:
        """The file takes its name. Repeating it after it succeeded gives the same answer."""
        with self._lock:
            if self._entry is not None and self._entry.digest == digest:
                return self._entry
            self._check_open()
            for receiver in list(self._receivers):
                receiver.stop()
            self._receivers.clear()
            leaves = self._whole(digest)
            with named(self.shown):
                self._entry = self._publish(leaves, digest)
            self._record.forget()  # the upload is remembered for a while
            self._on_end(self)
            return self._entry

    def _whole(self, digest: bytes) -> list[bytes]:
        digests = self._record.digests()
        leaves = [leaf for leaf in digests if leaf is not None]
        if len(leaves) < len(digests):
            raise MissingLeaves([index for index, leaf in enumerate(digests) if leaf is None])
        if combine(leaves) != digest:
            raise DifferentLeaves(leaves)
        if self.wish.blob is not None and digest.hex() != self.wish.blob:
            raise InvalidInput("a blob is called by its digest", field="blob")
        return leaves

    def _publish(self, leaves: list[bytes], digest: bytes) -> Entry:
        draft = Draft(self._folder, self._services, name=f"up-{self.id}")
        try:
            facts = draft.publish(
                self.owner,
                (self._tree, self._target),
                self._reservation,
                executable=self.wish.executable,
                mtime_ns=self.wish.mtime_ns,
                leaves=leaves,
            )
            if self._passes:
                page_cache.let_go(draft.fd)
        except BaseException:
            if draft.is_named:
                # The name is taken, but may not survive a power cut: nothing is acknowledged, and
                # as there is nothing left to commit, the client has to begin again.
                self.abandon()
            elif draft.is_doubtful:
                self._believe_nothing()
            raise
        finally:
            draft.close()
        self._remove_files()
        return Entry.of(self._target[-1], facts, digest)

    def abandon(self) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_abandoned = True
            for receiver in list(self._receivers):
                receiver.stop()
            self._receivers.clear()
            self._remove_files()
            self._reservation.release()
            self._on_end(self)

    def _remove_files(self) -> None:
        # The note goes first: without it the others are leftovers.
        for suffix in (".json", ".leaves", ""):
            with suppress(OSError):  # found and removed at the next start
                self._file(suffix).unlink(missing_ok=True)

    def age_s(self) -> float:
        try:
            return max(0.0, clock.now() - self._file(".json").stat().st_mtime)
        except FileNotFoundError:
            return 0.0

    def to_row(self) -> UploadRow:
        return UploadRow(self.id, self.shown, self.size_bytes, self.received_bytes, self.age_s())

    def to_json(self) -> dict[str, Any]:
        """The answer to POST uploads."""
        base = self.base()
        return {
            "id": self.id,
            "received": [[index, digest.hex()] for index, digest in self.received()],
            "begun": [[index, length] for index, length in self._record.begun()],
            "base": None if base is None else [leaf.hex() for leaf in base],
            "checks": True,
        }
