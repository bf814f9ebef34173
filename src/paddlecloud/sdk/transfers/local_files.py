"""Reading local files for sending: whole small ones, leaves of large ones.

It promises: what is read is one version of the file or `Changed` is raised; trouble with the local
disk is never mistaken for trouble with the network (`LocalFault` is no `OSError`). Called by
uploading and snapshots.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from paddlecloud.core.errors import Conflict, InvalidInput, OutOfSpace, PaddleCloudError
from paddlecloud.sdk.transfers import page_cache, settling
from paddlecloud.sdk.transfers.walking import Found, found, is_same
from paddlecloud.wire.digests import LEAF_BYTES, leaf_bytes, leaf_count, leaf_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import Any

    NewHash = Callable[[], Any]

_FULL = ("ENOSPC", "EDQUOT")
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


class Changed(Exception):
    """The file is no longer what it was when it was found."""


class LocalFault(Exception):
    """The local disk refused; `error` says it in the user's terms."""

    def __init__(self, error: PaddleCloudError) -> None:
        super().__init__(error.message)
        self.error = error


def cannot(what: str, path: str, error: OSError) -> LocalFault:
    """`what` is "read", "write", "make"."""
    import errno

    message = f"cannot {what} {path}: {error.strerror or error}"
    if errno.errorcode.get(error.errno or 0, "") in _FULL:
        return LocalFault(OutOfSpace(message, hint="make room on this machine", field=path))
    return LocalFault(InvalidInput(message, field=path))


def changed_twice(path: str) -> PaddleCloudError:
    return Conflict(
        f"{path} changed while it was sent", hint="send it again when it is still", field=path
    )


def fingerprint(file: Found) -> str:
    """What makes an unfinished upload this file's: the same command finds it again."""
    facts = (socket.gethostname(), os.path.realpath(file.path), file.inode, file.mtime_ns)
    # Hashed: where a user keeps files is nobody else's business.
    whole = leaf_hash()
    whole.update(repr((*facts, file.size_bytes)).encode())
    return str(whole.hexdigest())


def read_small(file: Found) -> tuple[Found, bytes]:
    """The whole file as it is now, with its state; it may have changed since it was found."""
    try:
        # Unbuffered: one read for all of it, and one more that finds the end.
        with open(file.path, "rb", buffering=0) as opened:
            before = os.fstat(opened.fileno())
            data = _read_all(opened.fileno(), before.st_size)
            now = found(file.name, file.path, before)
            if len(data) != before.st_size or not is_same(now, os.fstat(opened.fileno())):
                raise Changed
            return now, data
    except OSError as error:
        raise cannot("read", file.path, error) from error


def _read_all(descriptor: int, size_bytes: int) -> bytes:
    data = os.read(descriptor, size_bytes + 1)
    if len(data) >= size_bytes or not data:
        return data
    parts = [data]
    while data := os.read(descriptor, LEAF_BYTES):
        parts.append(data)
    return b"".join(parts)


def read_into(file: Found, view: memoryview) -> bool:
    """A whole small file into a buffer of its size; `Changed` if it is not what was found.

    Whether its digest may be remembered; see `settling`.
    """
    try:
        descriptor = os.open(file.path, _READ)
        try:
            before = os.fstat(descriptor)
            if not is_same(file, before):
                raise Changed
            is_settled = settling.is_settled(descriptor, before)
            n_bytes = _fill(descriptor, view)
            if n_bytes != file.size_bytes or not is_same(file, os.fstat(descriptor)):
                raise Changed
            return is_settled
        finally:
            os.close(descriptor)
    except OSError as error:
        raise cannot("read", file.path, error) from error


def _fill(descriptor: int, view: memoryview) -> int:
    if not hasattr(os, "readv"):  # Windows
        data = _read_all(descriptor, len(view))
        view[: len(data)] = data[: len(view)]
        return len(data)
    n_bytes = at = os.readv(descriptor, [view]) if view else 0
    while n_bytes and at < len(view):
        n_bytes = os.readv(descriptor, [view[at:]])
        at += n_bytes
    return at


@contextmanager
def opened_as_found(file: Found) -> Iterator[tuple[FileIO, os.stat_result]]:
    """The file that was found, with its state; `Changed` when it is another by now."""
    try:
        with open(file.path, "rb", buffering=0) as opened:
            info = os.fstat(opened.fileno())
            if not is_same(file, info):
                raise Changed
            yield opened, info
    except OSError as error:
        raise cannot("read", file.path, error) from error


def check_unchanged(file: Found) -> None:
    """`Changed` unless the path still names the file that was found, as it was."""
    try:
        info = os.stat(file.path)
    except OSError:
        raise Changed from None
    if not is_same(file, info):
        raise Changed


def is_settled(file: Found) -> bool:
    """Whether the digest of what is read after this may be remembered; see `settling`."""
    with opened_as_found(file) as (opened, info):
        return settling.is_settled(opened.fileno(), info)


def leaf_pieces(
    file: Found,
    first: int,
    end: int,
    view: memoryview,
    leaves: list[bytes | None],
    *,
    skip: int = 0,
    new_hash: NewHash = leaf_hash,
) -> Iterator[memoryview]:
    """The bytes of leaves `first` up to `end`, through `view`; their digests go into `leaves`.

    The first `skip` of them, less than a leaf, are hashed but not given.
    """
    start = at = first * LEAF_BYTES
    length = min(end * LEAF_BYTES, file.size_bytes) - start
    with opened_as_found(file) as (opened, _):
        passing = page_cache.reading(opened.fileno(), start, length, file.size_bytes)
        for piece in _pieces(opened, file.size_bytes, (first, end), view, leaves, new_hash):
            given = piece[max(0, start + skip - at) :]
            if given:
                yield given
            at += len(piece)
            passing.reached(at)


def _pieces(
    opened: FileIO,
    size_bytes: int,
    wanted: tuple[int, int],
    view: memoryview,
    leaves: list[bytes | None],
    new_hash: NewHash = leaf_hash,
) -> Iterator[memoryview]:
    first, end = wanted
    opened.seek(first * LEAF_BYTES)
    for leaf in range(first, end):
        digest = new_hash()
        left = leaf_bytes(leaf, size_bytes)
        while left:
            n_bytes = opened.readinto(view[:left] if left < len(view) else view)
            if not n_bytes:
                raise Changed
            piece = view[:n_bytes]
            digest.update(piece)
            left -= n_bytes
            if not left:
                leaves[leaf] = digest.digest()
            yield piece
        if leaves[leaf] is None:  # an empty file's only leaf
            leaves[leaf] = digest.digest()


def hash_leaves(
    file: Found, wanted: Iterable[int], view: memoryview, leaves: list[bytes | None]
) -> None:
    """Fill in the digests of these leaves, where they are not known yet."""
    for leaf in wanted:
        if leaves[leaf] is None:
            for _ in leaf_pieces(file, leaf, leaf + 1, view, leaves):
                pass


class Hashed(NamedTuple):
    leaves: bytes  # the digests of all leaves in a row
    is_settled: bool  # it may be remembered; see `settling`


def hash_file(file: Found, view: memoryview) -> Hashed:
    """For what must be known before anything is sent."""
    leaves: list[bytes | None] = [None] * leaf_count(file.size_bytes)
    with opened_as_found(file) as (opened, info):
        is_settled = settling.is_settled(opened.fileno(), info)
        for _ in _pieces(opened, file.size_bytes, (0, len(leaves)), view, leaves):
            pass
    check_unchanged(file)
    return Hashed(b"".join(leaf for leaf in leaves if leaf is not None), is_settled)
