"""Sending one large file, leaf by leaf, on one or several connections.

A server on this machine is given the open file and reads it itself. Otherwise, or where it cannot,
the bytes are sent.

It promises: every byte is checked in the pass that sends it, and counts as sent only when the
server's check of what arrived is the same (XXH3; the digest it tells is then that of the leaf. An
older server has digests only); a leaf that arrives as something else is sent once
more; after any cut the server is asked what it has, and only the rest is sent; where the answer to
the commit is lost, the commit is repeated; leaves that the old file at the place has too are copied
there. `Changed` when the file does not stay the same. Called by `uploading` and `blobs`.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Sequence

from paddlecloud.core.errors import Conflict, NotFound, PaddleCloudError, error_from_json
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import split_leaves
from paddlecloud.sdk.transfers.handing_over import hand_over
from paddlecloud.sdk.transfers.local_files import (
    Changed,
    LocalFault,
    check_unchanged,
    hash_leaves,
    is_settled,
    leaf_pieces,
)
from paddlecloud.sdk.transfers.planning import shares
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.walking import Found
from paddlecloud.wire import handovers, routes
from paddlecloud.wire.digests import (
    LEAF_BYTES,
    combine,
    is_digest,
    leaf_bytes,
    leaf_check,
    leaf_count,
    leaf_hash,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SPLIT_BYTES = 64 << 20  # from here on two connections send one file
SETTLE_S = 0.25
TAKEN_LEAVES = handovers.MOST_BYTES // LEAF_BYTES
COMMITS = 3  # a server that keeps asking for more is not believed

Runner = Callable[[Iterable[Task]], None]


def each_on(lane: Lane) -> Runner:
    """Run the parts of one file one after the other, where other files take the other lanes."""

    def run(tasks: Iterable[Task]) -> None:
        for task in tasks:
            task(lane)

    return run


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
        self._checks: list[bytes | None] | None = None  # like the leaves; None: it knows none
        self._resent: set[int] = set()
        self._begun: dict[int, int] = {}  # leaf -> how many bytes of it the server has
        self._there_bytes = 0
        self._arrived: set[int] = set()  # leaves counted as progress
        self._written: set[int] = set()  # leaves handed to the network since it was last asked
        self._sent: set[int] = set()  # leaves handed to the network at any time
        self._asked: set[int] = set()  # leaves the server is reading from the file itself
        self._sent_bytes = 0
        self._is_unsure = False  # the answer to a commit was lost
        self._faults: list[Exception] = []
        self._handed: socket.socket | None = None  # while the server reads the file itself
        self.is_settled = False  # its digests may be remembered
        self.was_told = False  # digests are the server's word

    @property
    def leaves(self) -> bytes:
        return b"".join(leaf for leaf in self._leaves if leaf is not None)

    def send(self, lane: Lane, run: Runner, most_leaves: int | None) -> int:
        """Until the file is stored; how many bytes travelled for it."""
        self.is_settled = is_settled(self._file)
        try:
            return self._send(lane, run, most_leaves)
        finally:
            self._let_go()

    def _send(self, lane: Lane, run: Runner, most_leaves: int | None) -> int:
        patience = self._session.patience()
        commits = 0
        while True:
            before_bytes = self._there_bytes
            try:
                if self._is_unsure and self._is_stored(lane):
                    return self._sent_bytes
                needed = self._begin(lane)
                if self._there_bytes > before_bytes:
                    patience.progressed()
                self._send_leaves(run, needed, most_leaves)
                if self._commit(lane):
                    return self._sent_bytes
                commits += 1
                if commits >= COMMITS:
                    raise _corrupted(self._wish, "the server keeps asking for the same parts")
            except OSError as cut:
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
        self._checks = [None] * len(self._leaves) if answer.get("checks") else None
        self._let_go()  # to a server that is no more
        if self._session.plane.is_here:
            self._handed = hand_over(answer.get("handover"), self._file)
        mine = [index for index in range(len(self._leaves)) if index in received]
        hash_leaves(self._file, mine, lane.view, self._leaves)
        there = {index for index, digest in received.items() if self._is_mine(index, digest)}
        base = answer.get("base")
        if base and self._may_reuse:
            there |= self._reuse(lane, [str(digest) for digest in base], there)
        self._count(there)
        self._begun = {int(index): int(n) for index, n in answer.get("begun", ())}
        size_bytes = self._file.size_bytes
        self._there_bytes = sum(leaf_bytes(index, size_bytes) for index in there)
        self._there_bytes += sum(self._begun.values())
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
        for leaves, tell in (
            (new - self._sent - self._asked, self._session.spared),
            (new & self._sent, self._session.found),
            (new & self._asked - self._sent, self._session.moved),
            (gone, self._session.lost),
        ):
            tell(sum(leaf_bytes(index, size_bytes) for index in leaves))
        self._arrived = set(there)

    def _tasks(self, needed: Sequence[int], most_leaves: int | None) -> list[Task]:
        is_handed = self._handed is not None
        ways = 1
        if self._file.size_bytes >= SPLIT_BYTES:
            ways = self._session.ways(1 if is_handed else 2)
        if is_handed:
            most_leaves = min(most_leaves or TAKEN_LEAVES, TAKEN_LEAVES)

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
            if self._is_in_vain:
                return
            wrong += self._take(lane, first, end) if self._handed else self._put(lane, first, end)
        for index in wrong:
            if index in self._resent or self._put(lane, index, index + 1):
                raise _corrupted(self._wish, f"part {index} arrived changed, twice")
            self._resent.add(index)

    @property
    def _is_in_vain(self) -> bool:
        """The other half has failed for good."""
        return bool(self._faults) and not isinstance(self._faults[0], OSError)

    def _put(self, lane: Lane, first: int, end: int) -> list[int]:
        """Send these leaves; those that arrived as something else."""
        session, size_bytes = self._session, self._file.size_bytes
        skip = self._go_on(first, end)
        offset = first * LEAF_BYTES + skip
        length = min(end * LEAF_BYTES, size_bytes) - offset
        on_the_way = 0
        checks = self._checks
        hashes = self._leaves if checks is None else checks
        new_hash = leaf_hash if checks is None else leaf_check

        def pieces() -> Iterator[memoryview]:
            nonlocal on_the_way
            for piece in leaf_pieces(
                self._file, first, end, lane.view, hashes, skip=skip, new_hash=new_hash
            ):
                yield piece
                on_the_way += len(piece)
                leaf = first + (skip + on_the_way - 1) // LEAF_BYTES
                self._sent.add(leaf)
                if (skip + on_the_way) % LEAF_BYTES == 0 or on_the_way == length:
                    self._written.add(leaf)
                session.moved(len(piece))
                if self._is_in_vain:
                    raise Changed

        asked = {"offset": str(offset)} | ({} if checks is None else {"checks": "1"})
        path = routes.fill(routes.PFS_UPLOAD, id=self._id) + query(asked)
        right: list[int] = []
        try:
            answer = lane.send("PUT", path, pieces, length)
            if checks is not None:
                self._learn(first, end, answer, checks)
            told = [str(digest) for digest in answer["leaves"]]
            right = [first + i for i, digest in enumerate(told) if self._is_mine(first + i, digest)]
        finally:
            arrived = sum(leaf_bytes(index, size_bytes) for index in right)
            session.lost(max(0, skip + on_the_way - arrived))
            self._sent_bytes += on_the_way
            self._arrived.update(right)
        kept = set(right)
        return [index for index in range(first, end) if index not in kept]

    def _take(self, lane: Lane, first: int, end: int) -> list[int]:
        """Have the server read these leaves; where it cannot, they are sent.

        From their beginning: nobody has checked the first bytes of one that was cut.
        """
        offset = first * LEAF_BYTES
        length = min(end * LEAF_BYTES, self._file.size_bytes) - offset
        asked = query({"offset": str(offset), "length": str(length)})
        leaves = range(first, end)
        self._asked.update(leaves)
        try:
            answer = lane.call("POST", routes.fill(routes.PFS_UPLOAD_TAKE, id=self._id) + asked)
        except Conflict:
            self._asked.difference_update(leaves)
            self._let_go()
            return self._put(lane, first, end)
        self._asked.difference_update(leaves)
        self._learn(first, end, answer)
        self._session.moved(length)
        self._sent_bytes += length
        self._arrived.update(leaves)
        return []

    def _let_go(self) -> None:
        """The file is this program's alone again."""
        handed, self._handed = self._handed, None
        if handed is not None:
            handed.close()

    def _learn(
        self, first: int, end: int, answer: Any, checks: Sequence[bytes | None] | None = None
    ) -> None:
        """The digests of leaves that arrived as they are here: of those with the same checks, or
        of all where there was no way to go wrong on. Of the others none is known."""
        self.was_told = True
        mine = [] if checks is None else [(check or b"").hex() for check in checks[first:end]]
        told = answer.get("checks") or []
        for at, digest in enumerate(answer["leaves"][: end - first]):
            is_right = is_digest(digest) and told[at : at + 1] == mine[at : at + 1]
            self._leaves[first + at] = bytes.fromhex(digest) if is_right else None

    def _go_on(self, first: int, end: int) -> int:
        """How much of the first of these leaves need not be sent. All are under way from now on."""
        skip = self._begun.get(first, 0)
        for index in range(first, end):
            self._begun.pop(index, None)
        if not 0 <= skip < leaf_bytes(first, self._file.size_bytes):
            return 0
        tell = self._session.found if first in self._sent else self._session.spared
        tell(skip)
        return skip

    def _commit(self, lane: Lane) -> bool:
        """Whether it is stored now; False when leaves have to be sent once more."""
        check_unchanged(self._file)
        digest = combine([leaf or b"" for leaf in self._leaves]).hex()
        path = routes.fill(routes.PFS_UPLOAD_COMMIT, id=self._id)
        self._is_unsure = True
        answer = lane.call("POST", path, {"digest": digest}, accept=(409,))
        self._is_unsure = False
        if "code" not in answer:
            return True
        if "missing" in answer or "leaves" in answer:
            return False
        raise error_from_json(answer)

    def _is_stored(self, lane: Lane) -> bool:
        """After a commit without an answer. The server remembers those that came through; asking
        to begin anew instead would mean to send everything again."""
        try:
            return self._commit(lane)
        except NotFound:  # a server that was started since remembers none
            self._is_unsure = False
            return self._is_there(lane)
        except Conflict:
            self._is_unsure = False
            return False

    def _is_there(self, lane: Lane) -> bool:
        """Whether the place has exactly what was wished."""
        path, wish = self._wish.get("path"), self._wish
        if path is None:  # a blob, which has no place
            return False
        try:
            entry = lane.call("GET", routes.PFS_ENTRY + query({"path": path, "digest": "1"}))
        except (NotFound, Conflict):
            return False
        return (
            entry.get("digest") == combine([leaf or b"" for leaf in self._leaves]).hex()
            and entry["executable"] == wish["executable"]
            and wish["mtime_ns"] in (None, entry["mtime_ns"])
        )

    def _abandon(self, lane: Lane) -> None:
        """Best effort: what stays behind is swept by the server in time."""
        if self._id:
            try:
                lane.call("DELETE", routes.fill(routes.PFS_UPLOAD, id=self._id), timeout_s=10.0)
            except (OSError, PaddleCloudError):
                pass


def _corrupted(wish: dict[str, Any], what: str) -> PaddleCloudError:
    path = str(wish.get("path") or "a file of the package")
    return Conflict(
        f"{path} was damaged on the way: {what}",
        hint="the network changes data; nothing wrong was stored. Try again, or another network",
        field=path,
    )
