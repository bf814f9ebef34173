"""Fetching one large file: in ranges, on several connections, going on after any cut.

It promises: the file gets its name only when every leaf has the digest the server gives for it;
leaves that an earlier run received, or that the old file in that place already has, do not travel
again; by those digests all bytes are of one version of the file. A leaf that arrives wrong is
fetched once more; then the server is asked to read its copy again, so that damage on the way and
bit rot at rest are told apart. Called by `copying`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from paddlecloud.core.errors import Conflict, PaddleCloudError
from paddlecloud.sdk.http import Cut, Response, query
from paddlecloud.sdk.transfers import page_cache
from paddlecloud.sdk.transfers.allocating import Allocation
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.large_uploads import SPLIT_BYTES, Runner
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault, cannot
from paddlecloud.sdk.transfers.local_targets import Part, write_all
from paddlecloud.sdk.transfers.planning import shares
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.wire import routes
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_bytes, leaf_count, leaf_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RANGE_NOT_SATISFIABLE = 416


class LargeDownload:
    """One file on its way into one part file.

    That the server's file is still the same is told by size and time while it is fetched (a tag
    is not always given twice for a file that was just written), and by its digests at the end.
    """

    def __init__(self, session: Session, source: str, part: Part, *, reuse: bool) -> None:
        """`reuse`: parts that the old file at the place has too are taken from it."""
        self._may_reuse = reuse
        self._session = session
        self._source = source
        self._part = part
        self._version: tuple[str, str] | None = None  # size and time, as headers
        self._expected: list[str] | None = None  # the server's leaves, where asked for
        self._leaves: list[bytes | None] = []
        self._refetched: set[int] = set()
        self._faults: list[Exception] = []
        self._is_fresh = True
        self.size_bytes = 0
        self.mtime_ns = 0
        self.sent_bytes = 0

    def fetch(self, lane: Lane, run: Runner, most_leaves: int | None) -> None:
        """Until the part holds the whole file; `Changed` when the server's file was replaced."""
        patience = self._session.patience()
        while True:
            before = self.sent_bytes
            try:
                needed = self._begin(lane)
                while needed:
                    self._fetch_leaves(run, needed, most_leaves)
                    needed = self._wrong(lane)
                return
            except OSError as cut:
                if self.sent_bytes - before >= LEAF_BYTES:
                    patience.progressed()
                self._session.wait_after(cut, patience)

    @property
    def progress_bytes(self) -> int:
        """Of what has been counted as moved, how much is in the part."""
        return sum(
            leaf_bytes(index, self.size_bytes)
            for index, leaf in enumerate(self._leaves)
            if leaf is not None
        )

    # --- what is needed --------------------------------------------------------------------

    def _begin(self, lane: Lane) -> list[int]:
        """Look at the file on the server and at what is here; the leaves to fetch."""
        head = lane.open("HEAD", routes.PFS_CONTENT + query({"path": self._source})).headers
        size, mtime = head["content-length"], head.get(routes.PFS_MTIME.lower(), "0")
        if self._version not in (None, (size, mtime)):
            raise Changed
        self._version = (size, mtime)
        self.size_bytes, self.mtime_ns = int(size), int(mtime)
        self._digest = head.get(routes.PFS_DIGEST.lower(), "")
        if self._is_fresh:
            self._leaves = [None] * leaf_count(self.size_bytes)
            if self._part.size_bytes or self._has_old_file():
                self._ask_leaves(lane)
                self._keep_what_is_here(lane)
            self._is_fresh = False
        return [index for index, leaf in enumerate(self._leaves) if leaf is None]

    def _ask_leaves(self, lane: Lane) -> None:
        asked = query({"path": self._source, "digest": "1", "leaves": "1"})
        entry = lane.call("GET", routes.PFS_ENTRY + asked)
        leaves = [str(digest) for digest in entry.get("leaves") or ()]
        if (str(entry["size"]), str(entry["mtime_ns"])) != self._version:
            raise Changed
        if len(leaves) != len(self._leaves):
            raise Cut("the server gave too few or too many digests")
        self._expected = leaves

    def _keep_what_is_here(self, lane: Lane) -> None:
        for index, leaf in self._matching(self._part.path, lane):
            self._leaves[index] = leaf
            self._session.spared(leaf_bytes(index, self.size_bytes))
        if not self._has_old_file() or all(leaf is not None for leaf in self._leaves):
            return
        try:
            with open(self._part.path, "r+b", buffering=0) as part:
                for index, leaf in self._matching(self._part.target, lane):
                    self._copy_leaf(index, part.fileno(), lane)
                    self._leaves[index] = leaf
                    self._session.spared(leaf_bytes(index, self.size_bytes))
        except OSError as error:
            raise cannot("write", self._part.path, error) from error

    def _has_old_file(self) -> bool:
        target = self._part.target
        return self._may_reuse and os.path.isfile(target) and not os.path.islink(target)

    def _matching(self, path: str, lane: Lane) -> Iterator[tuple[int, bytes]]:
        """Leaves that a local file has in the right place, of those still missing."""
        expected = self._expected or []
        try:
            with open(path, "rb", buffering=0) as opened:
                size_bytes = os.fstat(opened.fileno()).st_size
                for index, digest in enumerate(expected):
                    length = leaf_bytes(index, self.size_bytes)
                    if self._leaves[index] is not None:
                        continue
                    if index * LEAF_BYTES + length > size_bytes:
                        continue
                    found = _hash_range(opened, index * LEAF_BYTES, length, lane.view)
                    if found.hex() == digest:
                        yield index, found
        except OSError as error:
            raise cannot("read", path, error) from error

    def _copy_leaf(self, index: int, descriptor: int, lane: Lane) -> None:
        with open(self._part.target, "rb", buffering=0) as old:
            old.seek(index * LEAF_BYTES)
            os.lseek(descriptor, index * LEAF_BYTES, os.SEEK_SET)
            left = leaf_bytes(index, self.size_bytes)
            while left:
                n_bytes = old.readinto(lane.view[:left] if left < len(lane.view) else lane.view)
                if not n_bytes:
                    raise Changed
                _write(descriptor, lane.view[:n_bytes])
                left -= n_bytes

    # --- fetching --------------------------------------------------------------------------

    def _fetch_leaves(self, run: Runner, needed: Sequence[int], most_leaves: int | None) -> None:
        self._faults.clear()
        ways = self._session.connections if self.size_bytes >= SPLIT_BYTES else 1

        def guarded(work: Task) -> Task:
            def guard(lane: Lane) -> None:
                try:
                    work(lane)
                except (OSError, Changed, LocalFault, PaddleCloudError) as fault:
                    self._faults.append(fault)

            return guard

        def task(share: list[tuple[int, int]]) -> Task:
            def fetch(lane: Lane) -> None:
                for first, end in share:
                    self._fetch_range(lane, first, end)

            return guarded(fetch)

        tasks = [task(share) for share in shares(needed, ways, most_leaves)]
        if ways > 1 and not self._digest and self._expected is None:
            # The server has to read the file for its digests: meanwhile it is fetched.
            tasks.insert(0, guarded(self._ask_leaves))
            self._session.run(tasks, len(tasks))
        else:
            run(tasks)
        if self._faults:
            raise min(self._faults, key=lambda fault: isinstance(fault, OSError))

    def _fetch_range(self, lane: Lane, first: int, end: int) -> None:
        start = first * LEAF_BYTES
        stop = min(end * LEAF_BYTES, self.size_bytes)
        is_part = start > 0 or stop < self.size_bytes
        response = lane.open(
            "GET",
            routes.PFS_CONTENT + query({"path": self._source}),
            headers={"Range": f"bytes={start}-{stop - 1}"} if is_part else {},
            accept=(RANGE_NOT_SATISFIABLE,),
        )
        try:
            self._check_version(response, is_part)
            with _opened(self._part.path) as part:
                part.seek(start)
                passing = page_cache.writing(part.fileno(), start, self.size_bytes)
                room = Allocation(part.fileno(), start, stop)
                for index in range(first, end):
                    _make_room(room, index * LEAF_BYTES)
                    self._receive_leaf(response, index, part.fileno(), lane.view)
                    passing.reached((index + 1) * LEAF_BYTES)
        finally:
            response.close()

    def _check_version(self, response: Response, is_part: bool) -> None:
        if response.status == RANGE_NOT_SATISFIABLE:
            raise Changed
        headers = response.headers
        size = headers.get("content-length", "")
        if is_part:
            if response.status != 206:
                raise Cut("the server sent the whole file for a part of it")
            size = headers.get("content-range", "").rpartition("/")[2]
        if (size, headers.get(routes.PFS_MTIME.lower(), "0")) != self._version:
            raise Changed

    def _receive_leaf(
        self, response: Response, index: int, descriptor: int, view: memoryview
    ) -> None:
        session, left = self._session, leaf_bytes(index, self.size_bytes)
        digest = leaf_hash()
        received = 0
        try:
            while left:
                n_bytes = response.read_into(view[:left] if left < len(view) else view)
                if not n_bytes:
                    raise Cut("the answer ended too soon")
                piece = view[:n_bytes]
                digest.update(piece)
                _write(descriptor, piece)
                left -= n_bytes
                received += n_bytes
                session.moved(n_bytes)
            self._leaves[index] = digest.digest()
        finally:
            self.sent_bytes += received
            if left:
                session.lost(received)

    # --- checking --------------------------------------------------------------------------

    def _wrong(self, lane: Lane) -> list[int]:
        """Leaves that are not what the server has; they are fetched once more."""
        digest = combine([leaf or b"" for leaf in self._leaves]).hex()
        if self._expected is None:
            asked = query({"path": self._source, "digest": "1"})
            expected = self._digest or lane.call("GET", routes.PFS_ENTRY + asked)["digest"]
            if digest == expected:
                return []
            self._ask_leaves(lane)
        told = self._expected or []
        wrong = [
            index
            for index, leaf in enumerate(self._leaves)
            if leaf is None or leaf.hex() != told[index]
        ]
        if self._refetched.intersection(wrong):
            raise self._damaged(lane)
        self._refetched.update(wrong)
        for index in wrong:
            self._leaves[index] = None
            self._session.lost(leaf_bytes(index, self.size_bytes))
        return wrong

    def _damaged(self, lane: Lane) -> PaddleCloudError:
        return damaged(lane, self._source)


def damaged(lane: Lane, source: str) -> PaddleCloudError:
    """Ask the server to read its copy again: is it rotten there, or was it hurt on the way?"""
    try:
        lane.call("GET", routes.PFS_ENTRY + query({"path": source, "verify": "1"}))
    except PaddleCloudError as error:
        if not isinstance(error, Conflict):
            return error
        return Conflict(
            f"{source} is damaged where it is stored: {error.message}",
            hint="put it there again from another copy; nothing was written here",
            field=source,
        )
    return Conflict(
        f"{source} was damaged on the way, twice; it is intact on the server",
        hint="the network changes data; nothing wrong was kept. Try again, or another network",
        field=source,
    )


def _hash_range(opened: Any, start: int, length: int, view: memoryview) -> bytes:
    digest = leaf_hash()
    opened.seek(start)
    left = length
    while left:
        n_bytes = opened.readinto(view[:left] if left < len(view) else view)
        if not n_bytes:
            break
        digest.update(view[:n_bytes])
        left -= n_bytes
    return bytes(digest.digest())


def _opened(path: str) -> Any:
    try:
        return open(path, "r+b", buffering=0)
    except OSError as error:
        raise cannot("write", path, error) from error


def _make_room(room: Allocation, at: int) -> None:
    try:
        room.reach(at)
    except OSError as error:
        raise cannot("write", "the downloaded file", error) from error


def _write(descriptor: int, piece: memoryview) -> None:
    """Trouble with the disk is no trouble with the network."""
    try:
        write_all(descriptor, piece)
    except OSError as error:
        raise cannot("write", "the downloaded file", error) from error
