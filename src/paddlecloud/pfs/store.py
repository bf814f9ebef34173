"""The file store: everything a server does with users' files, over one root on disk.

    Store(root, datacenters).open() ... close()

Every method takes the caller (`Owner`) and parsed paths, decides by the path alone whether the
caller may go there, and raises errors of `core.errors` only. Thread safe. One process per root:
quotas and locks are in its memory. The plain tree is the truth; the index may be deleted any time.
"""

from __future__ import annotations

import dataclasses
import os
import secrets
import stat
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, InvalidInput, OutOfSpace
from paddlecloud.localfs.trees import Totals
from paddlecloud.pfs import changing, comparing, listing, promises
from paddlecloud.pfs.batches import MOST_FILES, Batch
from paddlecloud.pfs.copying import Copying
from paddlecloud.pfs.digesting import Digests
from paddlecloud.pfs.directories import Directories
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.faults import missing, named, shown
from paddlecloud.pfs.index import Index, Known
from paddlecloud.pfs.leftovers import Leftovers
from paddlecloud.pfs.owners import Owner, Places
from paddlecloud.pfs.publishing import Services
from paddlecloud.pfs.relative_names import split
from paddlecloud.pfs.root_lock import RootLock
from paddlecloud.pfs.shapes import (
    Comparison,
    Content,
    Copied,
    Entry,
    Page,
    Removed,
    SnapshotAnswer,
    UploadRow,
    UploadWish,
    UsageAnswer,
)
from paddlecloud.pfs.snapshots import UNNAMED_S, Snapshots
from paddlecloud.pfs.streamed_files import StreamedFile
from paddlecloud.pfs.unfinished import FORGOTTEN_S, Uploads
from paddlecloud.pfs.uploads import Upload
from paddlecloud.pfs.usage import Usage
from paddlecloud.wire.pfspath import MAX_PATH_BYTES, PfsPath
from paddlecloud.wire.snapshots import Snapshot, Wish

SWEEP_EVERY_S = 60.0
SWEEP_BLOBS_EVERY_S = 600.0


class Store:
    def __init__(
        self,
        root: Path,
        datacenters: Collection[str] | None = None,
        *,
        sync: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = Places(Path(root), datacenters)
        self.sync = sync
        self.promises = promises.Promises(promises.WORST, tried=False)
        self._lock = RootLock(self.places, sync=sync)
        self._left_over = Leftovers(self.places.hidden / "parts")
        self._clock = clock
        self._swept_at_s = self._blobs_swept_at_s = clock()

    # --- its life ---

    def open(self) -> Store:
        """Check what the storage promises, take up unfinished uploads, delete leftovers."""
        with named(str(self.places.root)):
            self.places.make()
            self.places.check_device()
            self._lock.take()
        try:
            self.promises = promises.check(self.places.hidden, sync=self.sync)
            self.index = Index(self.places.hidden / "index.db")
            self.digests = Digests(self.index, self.promises.times)
            self._usage = Usage(self._count)
            self.services = Services(self._usage, self.digests, self.sync)
            self._uploads = Uploads(self.places, self.services)
            self._changes = changing.Changes(self.places, self.services)
            self._snapshots = Snapshots(self.places, self._usage, sync=self.sync)
            self._uploads.take_up()
            self._left_over.find(self._uploads)
        except BaseException:
            self._lock.drop()
            raise
        return self

    def close(self) -> None:
        self.index.close()
        self._lock.close()

    def __enter__(self) -> Store:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    def check(self, owner: Owner, path: PfsPath, *, to_write: bool = False) -> None:
        """Whether the caller may go there; by the path alone."""
        self.places.check(owner, path, to_write=to_write)

    def tick(self) -> None:
        """Called every few seconds by whoever runs the store: sweeps when it is time."""
        if not self.promises.tried:  # the disk was full at the start
            self.promises = promises.check(self.places.hidden, sync=self.sync)
            self.digests.times = self.promises.times
        now_s = self._clock()
        if self._left_over or now_s - self._swept_at_s >= SWEEP_EVERY_S:
            self._swept_at_s = now_s
            self.sweep(may_rest=True)
        if now_s - self._blobs_swept_at_s >= SWEEP_BLOBS_EVERY_S:
            self._blobs_swept_at_s = now_s
            self.sweep_blobs()

    def sweep(self, forgotten_s: float = FORGOTTEN_S, *, may_rest: bool = False) -> int:
        """See what jobs wrote, drop forgotten uploads; how many were dropped."""
        self.index.flush()
        self._left_over.remove()
        self._usage.sweep(may_rest=may_rest)
        return self._uploads.sweep(forgotten_s)

    def _count(self, owner: Owner) -> Totals:
        """All that counts against an account's limits, but for what is unfinished."""
        total = Totals()
        kept = (self.places.blobs_of, self.places.snapshots_of)
        for tree in (
            self.places.home(owner),
            *(Tree(folder(owner.account_id)) for folder in kept),
        ):
            with Directories(tree) as dirs:
                total += listing.count(dirs, ())
        return total

    # --- looking ---

    def entry(
        self,
        owner: Owner,
        path: PfsPath,
        *,
        digest: bool = False,
        leaves: bool = False,
        verify: bool = False,
    ) -> Entry:
        tree = self.places.tree(owner, path)
        with named(path):
            with Directories(tree) as dirs:
                facts = self._look(tree, dirs, path)
            if stat.S_ISDIR(facts.st_mode):
                return _with_path(Entry.of(path.name, facts), path)
            if path.is_directory:
                raise missing(path, "it is a file, not a directory")
            known = None
            if digest or leaves or verify:
                facts, known = self._read(tree, path, verify=verify)
            else:
                known = self.digests.known(facts)
        entry = Entry.of(path.name, facts, known.digest if known else None)
        return _with_path(entry, path, known.leaves if known and leaves else None)

    def _look(self, tree: Tree, dirs: Directories, path: PfsPath) -> os.stat_result:
        if path.is_root:
            return os.fstat(dirs.open(()))
        fd = dirs.open(path.parts[:-1])
        facts = os.stat(path.name, dir_fd=fd, follow_symlinks=False)
        if not (stat.S_ISDIR(facts.st_mode) or tree.serves(facts)):
            raise missing(path, "links and devices are not served")
        return facts

    def _read(self, tree: Tree, path: PfsPath, *, verify: bool) -> tuple[os.stat_result, Known]:
        fd, before = tree.open_file(path.parts)
        try:
            believed = self.digests.known(before) if verify else None
            facts, known = self.digests.of(fd, shown(path), is_fresh=verify)
        finally:
            os.close(fd)
        is_same_state = (before.st_mtime_ns, before.st_ctime_ns) == (
            facts.st_mtime_ns,
            facts.st_ctime_ns,
        )
        if believed is not None and is_same_state and believed.digest != known.digest:
            self.index.forget(facts)
            raise Conflict(
                f"{shown(path)}: stored bytes have changed without a write (bit rot)",
                field="path",
                hint="send the file again",
            )
        return facts, known

    def entries(
        self,
        owner: Owner,
        path: PfsPath,
        *,
        recursive: bool = False,
        digests: bool = False,
        after: str = "",
        limit: int = 1000,
    ) -> Page:
        if not 1 <= limit <= listing.MOST_AT_ONCE:
            raise InvalidInput(f"must be 1 to {listing.MOST_AT_ONCE}", field="limit")
        tree = self.places.tree(owner, path)
        behind = split(after) if after else ()
        index = self.index if digests else None
        with named(path), Directories(tree) as dirs:
            facts = self._look(tree, dirs, path)
            if stat.S_ISDIR(facts.st_mode):
                return listing.page(
                    tree,
                    dirs,
                    path.parts,
                    shown(path),
                    recursive=recursive,
                    after=behind,
                    limit=limit,
                    index=index,
                )
        if path.is_directory:
            raise missing(path, "it is a file, not a directory")
        known = self.digests.known(facts) if digests else None
        entry = Entry.of(path.name, facts, known.digest if known else None)
        return Page(shown(path), [entry] if not after else [], None, 0)

    def open_content(self, owner: Owner, path: PfsPath) -> Content:
        tree = self.places.tree(owner, path)
        if path.is_root:
            raise InvalidInput(f"{shown(path)} is a directory", field="path")
        with named(path):
            fd, facts = tree.open_file(path.parts)
        known = self.digests.known(facts)
        return Content(
            fd=fd,
            size_bytes=facts.st_size,
            etag=self._etag(facts),
            digest=known.digest if known else None,
            mtime_ns=facts.st_mtime_ns,
            executable=bool(facts.st_mode & stat.S_IXUSR),
        )

    def _etag(self, facts: os.stat_result) -> str:
        text = f"{facts.st_ino:x}-{facts.st_size:x}-{facts.st_mtime_ns:x}-{facts.st_ctime_ns:x}"
        if not self.digests.times_of(facts).tell_writes(facts.st_ctime_ns, clock.now_ns()):
            # A change right now might not show in the times: nobody may continue on this one.
            text += f"-{secrets.token_hex(8)}"
        return f'"{text}"'

    def compare(
        self,
        owner: Owner,
        base: PfsPath,
        files: Sequence[comparing.Wanted],
        folders: Sequence[comparing.WantedFolder] = (),
    ) -> Comparison:
        tree = self.places.tree(owner, base)
        with named(base), Directories(tree) as dirs:
            return comparing.Comparing(tree, dirs, base.parts, self.digests).run(files, folders)

    def usage(self, owner: Owner, path: PfsPath) -> UsageAnswer:
        tree = self.places.tree(owner, path)
        below = changing.totals(tree, path)
        used, unfinished_bytes = self._usage.totals(owner)
        return UsageAnswer(
            path=shown(path),
            files=below.files,
            directories=below.directories,
            size_bytes=below.size_bytes,
            unfinished_bytes=unfinished_bytes,
            used_bytes=used.size_bytes,
            used_files=used.files,
            limit_bytes=owner.limit_bytes,
            limit_files=owner.limit_files,
        )

    # --- changing ---

    def make_directories(self, owner: Owner, paths: Sequence[PfsPath]) -> list[str]:
        return self._changes.make_directories(owner, paths)

    def remove(
        self,
        owner: Owner,
        paths: Sequence[PfsPath],
        *,
        recursive: bool = False,
        missing_ok: bool = False,
    ) -> list[Removed]:
        return self._changes.remove(owner, paths, recursive=recursive, missing_ok=missing_ok)

    def move(
        self, owner: Owner, source: PfsPath, target: PfsPath, *, replace: bool = False
    ) -> Entry:
        return self._changes.move(owner, source, target, replace_it=replace)

    def copy(
        self,
        owner: Owner,
        source: PfsPath,
        target: PfsPath,
        *,
        recursive: bool = False,
        replace: bool = False,
    ) -> Copied:
        work = Copying(self.places, self.services, owner, source, target, only_new=not replace)
        return work.run(recursive=recursive)

    # --- receiving ---

    def begin_upload(self, owner: Owner, wish: UploadWish) -> Upload:
        return self._uploads.begin(owner, wish)

    def upload(self, owner: Owner, upload_id: str) -> Upload:
        return self._uploads.get(owner, upload_id)

    def uploads(self, owner: Owner) -> list[UploadRow]:
        return self._uploads.rows(owner)

    def begin_stream(
        self, owner: Owner, path: PfsPath, most_bytes: int | None = None
    ) -> StreamedFile:
        """A file of unknown size; see `streamed_files`."""
        if path.is_root or path.is_directory:
            raise InvalidInput("must name a file, not a directory", field="path")
        tree = self.places.tree(owner, path, to_write=True)
        folder = self.places.parts_of(owner.account_id)
        return StreamedFile(owner, (tree, path.parts), folder, self.services, most_bytes)

    def begin_batch(self, owner: Owner, base: PfsPath, files: int, size_bytes: int) -> Batch:
        tree = self.places.tree(owner, base, to_write=True)
        room_bytes = MAX_PATH_BYTES - len(str(base).encode()) - 1
        return self._batch(owner, tree, base.parts, files, size_bytes, room_bytes=room_bytes)

    def begin_blobs(self, owner: Owner, files: int, size_bytes: int) -> Batch:
        tree = Tree(self.places.blobs_of(owner.account_id))
        return self._batch(owner, tree, (), files, size_bytes, are_blobs=True)

    def _batch(
        self,
        owner: Owner,
        tree: Tree,
        base: tuple[str, ...],
        files: int,
        size_bytes: int,
        *,
        room_bytes: int = MAX_PATH_BYTES,
        are_blobs: bool = False,
    ) -> Batch:
        if not 0 <= files <= MOST_FILES:
            raise InvalidInput(f"must be 0 to {MOST_FILES}", field="files")
        if size_bytes < 0:
            raise InvalidInput("must be a number of bytes", field="bytes")
        if size_bytes > tree.free_bytes():
            raise OutOfSpace("the disk of the file store is full", field="bytes")
        return Batch(
            owner,
            tree,
            base,
            self.places.parts_of(owner.account_id),
            self.services,
            self._usage.reserve(owner, size_bytes, files),
            (files, size_bytes),
            room_bytes=room_bytes,
            are_blobs=are_blobs,
        )

    # --- snapshots ---

    def put_snapshot(self, owner: Owner, wish: Wish) -> SnapshotAnswer:
        return self._snapshots.put(owner, wish)

    def snapshot(self, account_id: int, digest: str) -> Snapshot:
        return self._snapshots.get(account_id, digest)

    def materialise(self, account_id: int, digest: str, tree: Tree, parts: Sequence[str]) -> None:
        """Write a snapshot's files below `parts` of a tree."""
        self._snapshots.materialise(account_id, digest, tree, tuple(parts))

    def sweep_blobs(self, unnamed_s: float = UNNAMED_S) -> int:
        """Remove blobs that no snapshot names; how many."""
        return self._snapshots.sweep(unnamed_s)


def _with_path(entry: Entry, path: PfsPath, leaves: tuple[bytes, ...] | None = None) -> Entry:
    return dataclasses.replace(entry, path=shown(path), leaves=leaves)
