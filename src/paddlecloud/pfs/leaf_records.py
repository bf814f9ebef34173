"""Which leaves of an unfinished upload are here, and how far the others have come.

It promises: a leaf counts as whole only with its digest; of a leaf that is not whole, so many bytes
from its beginning are in the part file, and nobody has written there since. Both are in a sparse
file (all digests, then four bytes for each leaf) and nowhere else: a killed server knows them too,
and what is announced but never sent costs neither memory nor disk. Written by receivers, each for
leaves that are its own.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from paddlecloud.wire.digests import DIGEST_BYTES, leaf_count

_NO_DIGEST = bytes(DIGEST_BYTES)
_LENGTH = struct.Struct("<I")
_PIECE_BYTES = 64 << 10  # a multiple of both sizes


class LeafRecord:
    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._count = leaf_count(size_bytes)
        self._lengths_at = DIGEST_BYTES * self._count

    def create(self) -> None:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))

    def forget(self) -> None:
        """The upload is over: nobody asks any more."""
        self._count = 0

    # --- asking ---

    def digest(self, index: int) -> bytes | None:
        found = self._read(index * DIGEST_BYTES, DIGEST_BYTES)
        return None if found == _NO_DIGEST else found

    def digests(self) -> list[bytes | None]:
        """Of every leaf, so much that it is only for who has announced to have sent them all."""
        known = dict(self.whole())
        return [known.get(index) for index in range(self._count)]

    def whole(self) -> list[tuple[int, bytes]]:
        return [
            (at // DIGEST_BYTES, found)
            for at, found in self._records(0, self._lengths_at, DIGEST_BYTES)
            if found != _NO_DIGEST
        ]

    def begun_bytes(self, index: int) -> int:
        """Bytes from the beginning of a leaf that is not whole."""
        return int(_LENGTH.unpack(self._read(self._at(index), _LENGTH.size))[0])

    def begun(self) -> list[tuple[int, int]]:
        lengths = self._records(self._lengths_at, self._at(self._count), _LENGTH.size)
        found = [
            ((at - self._lengths_at) // _LENGTH.size, _LENGTH.unpack(raw)[0]) for at, raw in lengths
        ]
        return [
            (index, length)
            for index, length in found
            if length and self.digest(index) is None  # both: killed between the two
        ]

    def has(self, index: int, n_bytes: int) -> bool:
        """Whether so many bytes from its beginning are here."""
        return self.digest(index) is not None or self.begun_bytes(index) >= n_bytes

    def _read(self, at: int, length: int) -> bytes:
        """As if it were full of zeros; also when it is gone."""
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return bytes(length)
        try:
            return os.pread(fd, length, at).ljust(length, b"\0")
        finally:
            os.close(fd)

    def _records(self, start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
        """Where and what, of all records in a range that may be something else than zeros."""
        if start >= end:
            return
        try:
            fd = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            for at, data in _pieces(fd, start, end):
                for skipped in range(0, len(data) - size + 1, size):
                    yield at + skipped, data[skipped : skipped + size]
        finally:
            os.close(fd)

    # --- telling ---

    def begins(self, index: int, after_bytes: int = 0) -> None:
        """Its bytes after these are about to change."""
        if self.digest(index) is not None:
            self._write(index * DIGEST_BYTES, _NO_DIGEST)
        if self.begun_bytes(index) != after_bytes:
            self.reached(index, after_bytes)

    def reached(self, index: int, n_bytes: int) -> None:
        self._write(self._at(index), _LENGTH.pack(n_bytes))

    def ends(self, index: int, digest: bytes) -> None:
        """It is whole."""
        self._write(index * DIGEST_BYTES, digest)
        if self.begun_bytes(index):
            self.reached(index, 0)

    def _at(self, index: int) -> int:
        return self._lengths_at + index * _LENGTH.size

    def _write(self, at: int, data: bytes) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.pwrite(fd, data, at)
        finally:
            os.close(fd)


def _pieces(fd: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """What is not a hole between two places of a file. Holes begin and end where blocks of the
    disk do, so no record is cut by one."""
    at = start
    while at < end:
        try:
            data_at = os.lseek(fd, at, os.SEEK_DATA)
            hole_at = os.lseek(fd, data_at, os.SEEK_HOLE)
        except OSError:  # nothing but a hole up to the end
            return
        at = data_at
        while at < min(hole_at, end):
            data = os.pread(fd, min(_PIECE_BYTES, end - at), at)
            if not data:
                return
            yield at, data
            at += len(data)
