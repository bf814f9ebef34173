"""Sending local files: large ones leaf by leaf, small ones in batches, only what is not there.

It promises: every byte is hashed in the pass that sends it, and counts as sent only when the
server's digest of what arrived is the same; after any cut it asks what has arrived and goes on; a
file that changes meanwhile is begun again once, then reported by name. Called by `copying`. It
never decides what to send.
"""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from paddlecloud.core.errors import Conflict, NotFound, PaddleCloudError, error_from_json
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import DigestCache, split_leaves
from paddlecloud.sdk.transfers.local_files import (
    Changed,
    LocalFault,
    changed_twice,
    hash_leaves,
    leaf_pieces,
    read_into,
)
from paddlecloud.sdk.transfers.planning import shares, under
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.walking import Found, found, is_same
from paddlecloud.wire import records, routes
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_bytes, leaf_count, leaf_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SLICE_BYTES = 1 << 20
SPLIT_BYTES = 64 << 20  # from here on two connections send one file
SETTLE_S = 0.25
COMMITS = 3  # a server that keeps asking for more is not believed

Runner = Callable[[Iterable[Task]], None]


class Uploader:
    """Sends files into one directory of the server, or into its blob store."""

    def __init__(
        self,
        session: Session,
        base: str,
        cache: DigestCache,
        *,
        preserve_times: bool = False,
        chunk_bytes: int | None = None,
        reuse: bool = True,
    ) -> None:
        """`reuse`: leaves that the old file at the place has too are copied there, not sent."""
        self._session = session
        self._base = base
        self._cache = cache
        self._reuse = reuse
        self._preserve_times = preserve_times
        self._most_leaves = None if not chunk_bytes else max(1, -(-chunk_bytes // LEAF_BYTES))

    # --- many small files ------------------------------------------------------------------

    def send_batch(self, lane: Lane, files: Sequence[Found]) -> None:
        """Files that changed since they were found, or arrived damaged, get a second chance."""
        refused = self._send_records(lane, files)
        again = []
        for file, error in refused:
            if isinstance(error, PaddleCloudError) and not _may_pass(error):
                self._session.fail(file.path, error)
            else:
                again.append(file)
        if not again:
            return
        for file, error in self._send_records(lane, [_found_again(file) for file in again]):
            error = error if isinstance(error, PaddleCloudError) else changed_twice(file.path)
            self._session.fail(file.path, error)

    def _send_records(
        self, lane: Lane, files: Sequence[Found]
    ) -> list[tuple[Found, PaddleCloudError | Changed]]:
        """One batch; what changed before it was read, and what the server refused of it."""
        session = self._session
        hashed_at_ns = time.time_ns()
        sent, refused, body = self._fill_records(lane, files)
        if not sent:
            return refused
        size_bytes = sum(file.size_bytes for file, _ in sent)
        asked = query({"path": self._base, "files": len(sent), "bytes": str(size_bytes)})
        answer = post_records(session, lane, routes.PFS_BATCH + asked, body, size_bytes)
        errors = {int(i): error_from_json(error) for i, error in answer["refused"]}
        learn, done, base = self._cache.learn, session.done, self._base
        for index, (file, digest) in enumerate(sent):
            if index not in errors:
                learn(file, digest, hashed_at_ns)
                size_bytes = file.size_bytes
                done(file.path, under(base, file.name), size_bytes, size_bytes, "sent")
        session.lost(sum(sent[index][0].size_bytes for index in errors))
        return refused + [(sent[index][0], error) for index, error in sorted(errors.items())]

    def _fill_records(
        self, lane: Lane, files: Sequence[Found]
    ) -> tuple[
        list[tuple[Found, bytes]], list[tuple[Found, PaddleCloudError | Changed]], memoryview
    ]:
        """The stream of records, each file read straight into its place and hashed there."""
        longest = sum(records.record_bytes(file.name, file.size_bytes) for file in files)
        body = lane.scratch(len(records.MAGIC) + longest + len(records.END))
        body[: len(records.MAGIC)] = records.MAGIC
        at = len(records.MAGIC)
        sent: list[tuple[Found, bytes]] = []
        refused: list[tuple[Found, PaddleCloudError | Changed]] = []
        for file in files:
            kind = records.Kind.EXECUTABLE if file.executable else records.Kind.FILE
            mtime_ns = file.mtime_ns if self._preserve_times else None
            head = records.encode_head(kind, file.name, file.size_bytes, mtime_ns)
            start = at + len(head)
            content = body[start : start + file.size_bytes]
            try:
                read_into(file, content)
            except Changed as changed:
                refused.append((file, changed))
                continue
            except LocalFault as fault:
                self._session.fail(file.path, fault.error)
                continue
            digest = leaf_hash()
            digest.update(content)
            found = digest.digest()
            body[at:start] = head
            end = start + file.size_bytes
            body[end : end + len(found)] = found
            at = end + len(found)
            sent.append((file, found))
        body[at : at + len(records.END)] = records.END
        return sent, refused, body[: at + len(records.END)]

    # --- one large file --------------------------------------------------------------------

    def send_large(self, lane: Lane, file: Found, known: bytes | None, run: Runner) -> None:
        """`run` runs parts of the work: on this lane, or on several."""
        try:
            for _ in range(2):
                try:
                    upload = LargeUpload(
                        self._session, self._wish(file), file, known, reuse=self._reuse
                    )
                    entry_bytes = upload.send(lane, run, self._most_leaves)
                except Changed:
                    file, known = found(file.name, file.path, os.stat(file.path)), None
                    continue
                self._cache.learn(file, upload.leaves, upload.hashed_at_ns)
                target = under(self._base, file.name)
                self._session.done(file.path, target, file.size_bytes, entry_bytes, "sent")
                return
            self._session.fail(file.path, changed_twice(file.path))
        except LocalFault as fault:
            self._session.fail(file.path, fault.error)
        except PaddleCloudError as error:
            self._session.fail(file.path, error)
        except FileNotFoundError:
            self._session.fail(file.path, changed_twice(file.path))

    def _wish(self, file: Found) -> dict[str, Any]:
        return {
            "path": under(self._base, file.name),
            "size": file.size_bytes,
            "mtime_ns": file.mtime_ns if self._preserve_times else None,
            "executable": file.executable,
            "source": fingerprint(file),
        }


def post_records(
    session: Session, lane: Lane, path: str, body: bytearray | memoryview, size_bytes: int
) -> Any:
    """Send a stream of records until it is acknowledged; repeating one does no harm."""
    moved = 0

    def pieces() -> Iterator[memoryview]:
        nonlocal moved
        session.lost(moved)  # of the attempt before
        moved = 0
        view = memoryview(body)
        for at in range(0, len(body), SLICE_BYTES):
            piece = view[at : at + SLICE_BYTES]
            yield piece
            # The heads and digests around small files are traffic nobody counts.
            step = size_bytes * (at + len(piece)) // len(body) - moved
            moved += step
            session.moved(step)

    return session.persist(lambda: lane.send("POST", path, pieces, len(body)))


def fingerprint(file: Found) -> str:
    """What makes an unfinished upload this file's: the same command finds it again."""
    facts = (socket.gethostname(), os.path.realpath(file.path), file.inode, file.mtime_ns)
    # Hashed: where a user keeps files is nobody else's business.
    return hashlib.sha256(repr((*facts, file.size_bytes)).encode()).hexdigest()


def _found_again(file: Found) -> Found:
    """As it is now; one that is gone is found missing when it is read."""
    try:
        return found(file.name, file.path, os.stat(file.path))
    except OSError:
        return file


def _may_pass(error: PaddleCloudError) -> bool:
    """Whether sending it again may help: its bytes were damaged, or somebody was in the way."""
    return isinstance(error, Conflict)


class LargeUpload:
    """One upload of one file, over any number of cuts."""

    def __init__(
        self,
        session: Session,
        wish: dict[str, Any],
        file: Found,
        known: bytes | None,
        *,
        reuse: bool = True,
    ) -> None:
        self._may_reuse = reuse
        self._session = session
        self._wish = wish
        self._file = file
        self._leaves: list[bytes | None] = [None] * leaf_count(file.size_bytes)
        if known is not None:
            self._leaves = [*split_leaves(known)]
        self._id = ""
        self._resent: set[int] = set()
        self._arrived: set[int] = set()  # leaves counted as progress
        self._written: set[int] = set()  # leaves handed to the network since it was last asked
        self._sent_bytes = 0
        self._faults: list[Exception] = []
        self.hashed_at_ns = time.time_ns()

    @property
    def leaves(self) -> bytes:
        return b"".join(leaf for leaf in self._leaves if leaf is not None)

    def send(self, lane: Lane, run: Runner, most_leaves: int | None) -> int:
        """Until the file is stored; how many bytes travelled for it."""
        patience = self._session.patience()
        commits = 0
        while True:
            before = self._sent_bytes
            try:
                self._send_leaves(run, self._begin(lane), most_leaves)
                if self._commit(lane):
                    return self._sent_bytes
                commits += 1
                if commits >= COMMITS:
                    raise _corrupted(self._wish, "the server keeps asking for the same parts")
            except OSError as cut:
                if self._sent_bytes - before >= LEAF_BYTES:
                    patience.progressed()
                self._session.wait_after(cut, patience)
            except Changed:
                self._abandon(lane)
                raise

    def _send_leaves(self, run: Runner, needed: Sequence[int], most_leaves: int | None) -> None:
        """All of them, or the gravest of what went wrong; a cut leaves the other lane at work."""
        self._faults.clear()
        if needed:
            run(self._tasks(needed, most_leaves))
        if self._faults:
            raise min(
                self._faults, key=lambda fault: isinstance(fault, OSError)
            )  # stable: first wins

    def _begin(self, lane: Lane) -> list[int]:
        """Ask what is there already; the leaves that still have to be sent."""
        answer = lane.call("POST", routes.PFS_UPLOADS, self._wish)
        received = {int(index): str(digest) for index, digest in answer["received"]}
        if self._written.difference(received):
            # It may still be reading what arrived before the cut: not to be sent again.
            self._session.sleep(SETTLE_S)
            self._written.clear()
            answer = lane.call("POST", routes.PFS_UPLOADS, self._wish)
            received = {int(index): str(digest) for index, digest in answer["received"]}
        self._id = str(answer["id"])
        hash_leaves(self._file, sorted(received), lane.view, self._leaves)
        there = {index for index, digest in received.items() if self._is_mine(index, digest)}
        base = answer.get("base")
        if base and self._may_reuse:
            there |= self._reuse(lane, [str(digest) for digest in base], there)
        self._count(there)
        return [index for index in range(len(self._leaves)) if index not in there]

    def _is_mine(self, index: int, digest: str) -> bool:
        if not 0 <= index < len(self._leaves):
            return False
        leaf = self._leaves[index]
        return leaf is not None and leaf.hex() == digest

    def _reuse(self, lane: Lane, base: list[str], there: set[int]) -> set[int]:
        """Leaves the file that is stored there now has too: the server copies them itself."""
        candidates = [
            index for index in range(min(len(base), len(self._leaves))) if index not in there
        ]
        hash_leaves(self._file, candidates, lane.view, self._leaves)
        same = [index for index in candidates if self._is_mine(index, base[index])]
        if not same:
            return set()
        path = routes.fill(routes.PFS_UPLOAD_REUSE, id=self._id)
        try:
            answer = lane.call("POST", path, {"leaves": same})
        except (NotFound, Conflict):  # it was replaced meanwhile: then they are sent
            return set()
        return {int(index) for index, digest in answer["leaves"] if self._is_mine(index, digest)}

    def _count(self, there: set[int]) -> None:
        """Make the progress shown what the server really has."""
        size_bytes = self._file.size_bytes
        new, gone = there - self._arrived, self._arrived - there
        self._session.spared(sum(leaf_bytes(index, size_bytes) for index in new))
        self._session.lost(sum(leaf_bytes(index, size_bytes) for index in gone))
        self._arrived = set(there)

    def _tasks(self, needed: Sequence[int], most_leaves: int | None) -> list[Task]:
        ways = self._session.connections if self._file.size_bytes >= SPLIT_BYTES else 1

        def task(share: list[tuple[int, int]]) -> Task:
            def send(lane: Lane) -> None:
                try:
                    self._send_share(lane, share)
                except (OSError, Changed, LocalFault, PaddleCloudError) as fault:
                    self._faults.append(fault)

            return send

        return [task(share) for share in shares(needed, ways, most_leaves)]

    def _send_share(self, lane: Lane, share: list[tuple[int, int]]) -> None:
        wrong: list[int] = []
        for first, end in share:
            wrong += self._put(lane, first, end)
        for index in wrong:
            if index in self._resent or self._put(lane, index, index + 1):
                raise _corrupted(self._wish, f"part {index} arrived changed, twice")
            self._resent.add(index)

    def _put(self, lane: Lane, first: int, end: int) -> list[int]:
        """Send these leaves; those that arrived as something else."""
        session, size_bytes = self._session, self._file.size_bytes
        offset = first * LEAF_BYTES
        length = min(end * LEAF_BYTES, size_bytes) - offset
        on_the_way = 0

        def pieces() -> Iterator[memoryview]:
            nonlocal on_the_way
            for piece in leaf_pieces(self._file, first, end, lane.view, self._leaves):
                yield piece
                on_the_way += len(piece)
                if on_the_way % LEAF_BYTES == 0:
                    self._written.add(first + on_the_way // LEAF_BYTES - 1)
                session.moved(len(piece))
                if self._faults and not isinstance(self._faults[0], OSError):
                    raise Changed  # the other half has failed for good: all is in vain

        path = routes.fill(routes.PFS_UPLOAD, id=self._id) + query({"offset": str(offset)})
        right: list[int] = []
        try:
            answer = lane.send("PUT", path, pieces, length)
            told = [str(digest) for digest in answer["leaves"]]
            right = [first + i for i, digest in enumerate(told) if self._is_mine(first + i, digest)]
        finally:
            arrived = sum(leaf_bytes(index, size_bytes) for index in right)
            session.lost(max(0, on_the_way - arrived))
            self._sent_bytes += on_the_way
            self._arrived.update(right)
        kept = set(right)
        return [index for index in range(first, end) if index not in kept]

    def _commit(self, lane: Lane) -> bool:
        """Whether it is stored now; False when leaves have to be sent once more."""
        if not is_same(self._file, _stat(self._file.path)):
            raise Changed
        digest = combine([leaf or b"" for leaf in self._leaves]).hex()
        path = routes.fill(routes.PFS_UPLOAD_COMMIT, id=self._id)
        answer = lane.call("POST", path, {"digest": digest}, accept=(409,))
        if "code" not in answer:
            return True
        if "missing" in answer or "leaves" in answer:
            return False
        raise error_from_json(answer)

    def _abandon(self, lane: Lane) -> None:
        """Best effort: what stays behind is swept by the server in time."""
        if self._id:
            try:
                lane.call("DELETE", routes.fill(routes.PFS_UPLOAD, id=self._id), timeout_s=10.0)
            except (OSError, PaddleCloudError):
                pass


def _stat(path: str) -> os.stat_result:
    try:
        return os.stat(path)
    except OSError:
        raise Changed from None


def _corrupted(wish: dict[str, Any], what: str) -> PaddleCloudError:
    path = str(wish.get("path") or "a file of the package")
    return Conflict(
        f"{path} was damaged on the way: {what}",
        hint="the network changes data; nothing wrong was stored. Try again, or another network",
        field=path,
    )
