"""Which leaves of an unfinished upload are here, and how far the others have come.

It promises: a leaf counts as whole only with its digest; of a leaf that is not whole, so many bytes
from its beginning are in the part file, and nobody has written there since. Both are in a file
(all digests, then four bytes for each leaf), so a killed server knows them too. Written by
receivers, each for leaves that are its own.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from paddlecloud.wire.digests import DIGEST_BYTES, leaf_count

_NO_DIGEST = bytes(DIGEST_BYTES)
_LENGTH = struct.Struct("<I")


class LeafRecord:
    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._count = leaf_count(size_bytes)
        self._lengths_at = DIGEST_BYTES * self._count
        self._kept = bytearray(self._lengths_at + _LENGTH.size * self._count)

    def create(self) -> None:
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))

    def load(self) -> None:
        """What an earlier process knew. A version that did not count bytes left none."""
        kept = self._path.read_bytes()[: len(self._kept)]
        self._kept[: len(kept)] = kept

    def forget(self) -> None:
        """The upload is over: nobody asks any more."""
        self._count, self._kept = 0, bytearray()

    # --- asking ---

    def digest(self, index: int) -> bytes | None:
        found = bytes(self._kept[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES])
        return None if found == _NO_DIGEST else found

    def digests(self) -> list[bytes | None]:
        return [self.digest(index) for index in range(self._count)]

    def whole(self) -> list[tuple[int, bytes]]:
        return [(index, found) for index, found in enumerate(self.digests()) if found is not None]

    def begun_bytes(self, index: int) -> int:
        """Bytes from the beginning of a leaf that is not whole."""
        return int(_LENGTH.unpack_from(self._kept, self._at(index))[0])

    def begun(self) -> list[tuple[int, int]]:
        lengths = _LENGTH.iter_unpack(self._kept[self._lengths_at :])
        return [
            (index, length)
            for index, (length,) in enumerate(lengths)
            if length and self.digest(index) is None  # both: killed between the two
        ]

    def has(self, index: int, n_bytes: int) -> bool:
        """Whether so many bytes from its beginning are here."""
        return self.digest(index) is not None or self.begun_bytes(index) >= n_bytes

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
        self._kept[at : at + len(data)] = data
