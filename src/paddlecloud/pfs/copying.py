"""Bytes from one descriptor to another, by the kernel where it can."""

from __future__ import annotations

import errno
import os

_AT_ONCE_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_KERNEL_CANNOT = (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def copy_bytes(source: int, target: int, size_bytes: int) -> int:
    """Up to `size_bytes` from the start of `source`; how many there were."""
    done = 0
    try:
        while done < size_bytes:
            n = os.copy_file_range(
                source, target, min(_AT_ONCE_BYTES, size_bytes - done), done, done
            )
            if n == 0:
                return done
            done += n
    except OSError as error:
        if error.errno not in _KERNEL_CANNOT:
            raise
        return done + _by_hand(source, target, done, size_bytes)
    return done


def _by_hand(source: int, target: int, at: int, end: int) -> int:
    buffer = memoryview(bytearray(_PIECE_BYTES))
    start = at
    while at < end:
        n_read = os.preadv(source, [buffer[: end - at]], at)
        if n_read == 0:
            break
        written = 0
        while written < n_read:
            written += os.pwrite(target, buffer[written:n_read], at + written)
        at += n_read
    return at - start
