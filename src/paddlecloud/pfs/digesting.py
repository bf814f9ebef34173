"""The digest of a file on disk: from the index if it may be believed, else from the bytes.

Callers hold a descriptor. Before the bytes are read the file's pages are written out, so that a
program that has it mapped cannot change it without changing its times; after the read the times
must be what they were. Only then does the index learn.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from paddlecloud import clock
from paddlecloud.core.errors import Conflict
from paddlecloud.pfs import syscalls
from paddlecloud.pfs.index import Index, Known
from paddlecloud.pfs.promises import WORST, Times
from paddlecloud.wire.buffers import buffer as new_buffer
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_count, leaf_hash

_READ_BYTES = 1 << 20
_ATTEMPTS = 3


class Digests:
    def __init__(self, index: Index, times: Times) -> None:
        self.index = index
        self.times = times

    def times_of(self, facts: os.stat_result) -> Times:
        """What the times of this file tell: they were tried on one device only."""
        return self.times if facts.st_dev == self.index.device else WORST

    def known(self, facts: os.stat_result) -> Known | None:
        return self.index.get(facts)

    def of(self, fd: int, where: str, *, is_fresh: bool = False) -> tuple[os.stat_result, Known]:
        """The file's facts and digests; `is_fresh` reads the bytes whatever is known."""
        for _ in range(_ATTEMPTS):
            facts = os.fstat(fd)
            known = None if is_fresh else self.index.get(facts)
            if known is not None:
                return facts, known
            looked_at_ns = clock.now_ns()
            times = self.times_of(facts)
            if times.mapped_writes_show:
                syscalls.write_out(fd)
                if not is_same(facts, os.fstat(fd)):
                    continue
            leaves = read_leaves(fd, facts.st_size)
            if leaves is not None and is_same(facts, os.fstat(fd)):
                if times.tell(facts.st_ctime_ns, looked_at_ns):
                    self.index.learn(facts, leaves)
                return facts, Known(combine(leaves), tuple(leaves))
        raise Conflict(f"{where} is being written", field="path", hint="try again when it is done")

    def may_keep(self, before: os.stat_result, after: os.stat_result) -> bool:
        """Whether the digest of a file that got its name between the two looks may be kept."""
        return (
            (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)
            and before.st_size == after.st_size
            and before.st_mtime_ns == after.st_mtime_ns
            and self.times_of(after).tell_published(after.st_mtime_ns, after.st_ctime_ns)
        )

    def learn_published(
        self, before: os.stat_result, after: os.stat_result, leaves: Sequence[bytes]
    ) -> None:
        if self.may_keep(before, after):
            self.index.learn(after, leaves)


def is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns) == (
        other.st_ino,
        other.st_size,
        other.st_mtime_ns,
        other.st_ctime_ns,
    )


def read_leaves(fd: int, size_bytes: int) -> list[bytes] | None:
    """The digests of all leaves; None when the file is shorter than it was said to be."""
    buffer = new_buffer(min(_READ_BYTES, max(1, size_bytes)))
    leaves = []
    for index in range(leaf_count(size_bytes)):
        leaf = read_leaf(fd, index, size_bytes, buffer)
        if leaf is None:
            return None
        leaves.append(leaf)
    return leaves


def read_leaf(fd: int, index: int, size_bytes: int, buffer: memoryview) -> bytes | None:
    """The digest of one leaf; None when the file ends before it does."""
    whole = leaf_hash()
    at = index * LEAF_BYTES
    end = min(at + LEAF_BYTES, size_bytes)
    while at < end:
        n_read = os.preadv(fd, [buffer[: end - at]], at)
        if n_read == 0:
            return None
        whole.update(buffer[:n_read])
        at += n_read
    return bytes(whole.digest())
