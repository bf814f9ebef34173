"""Many small files as one stream of bytes, the same in both directions.

    8 bytes    magic, `PFSREC\\0\\1`
    a record   head: kind (1), size (8), mtime_ns (8, signed), length of the name (2), the name
               then `size` bytes of content, then, after a file, the 32 bytes of their BLAKE3
    ...
    1 byte     kind 0: the end; a stream without it was cut

Numbers are big-endian. A name is a relative path in UTF-8 (in a stream of blobs, a digest in hex).
The digest comes last, so the sender hashes in the pass in which it reads; the receiver compares
before a file appears. A FAILED record, only ever sent by a server, holds a JSON error instead of
content. This module is bytes in, values out; names are checked by whoever makes paths of them.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from paddlecloud.core.errors import InvalidInput

MAGIC = b"PFSREC\0\1"
CONTENT_TYPE = "application/x-paddlecloud-records"
END = b"\0"
MAX_NAME_BYTES = 4096
MAX_ERROR_BYTES = 64 << 10
NO_TIME = -(1 << 63)  # the sender says nothing about the time

_HEAD = struct.Struct(">BQqH")
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    END = 0
    FILE = 1
    EXECUTABLE = 2
    DIRECTORY = 3  # without content or digest
    FAILED = 4  # content is a JSON error; without digest


class Head(NamedTuple):
    """What stands before the content, but for the name, which is `name_bytes` long."""

    kind: Kind
    size_bytes: int
    mtime_ns: int | None
    name_bytes: int

    @property
    def has_digest(self) -> bool:
        return self.kind in (Kind.FILE, Kind.EXECUTABLE)


def encode_head(kind: Kind, name: str, size_bytes: int = 0, mtime_ns: int | None = None) -> bytes:
    raw = name.encode()
    if not 0 < len(raw) <= MAX_NAME_BYTES:
        raise InvalidInput(f"a name may have 1 to {MAX_NAME_BYTES} bytes, not {len(raw)}")
    time_ns = NO_TIME if mtime_ns is None else mtime_ns
    return _HEAD.pack(kind, size_bytes, time_ns, len(raw)) + raw


def decode_head(data: bytes | bytearray | memoryview) -> Head:
    """The head in the first HEAD_BYTES of `data`, of any kind but END."""
    kind_number, size_bytes, time_ns, name_bytes = _HEAD.unpack_from(data)
    try:
        kind = Kind(kind_number)
    except ValueError:
        raise bad(f"a record of the unknown kind {kind_number}") from None
    if kind is Kind.END:
        raise bad("an end where a record must be")
    if not 0 < name_bytes <= MAX_NAME_BYTES:
        raise bad(f"a name of {name_bytes} bytes")
    if kind is Kind.DIRECTORY and size_bytes:
        raise bad("a directory with content")
    if kind is Kind.FAILED and size_bytes > MAX_ERROR_BYTES:
        raise bad("an error without measure")
    return Head(kind, size_bytes, None if time_ns == NO_TIME else time_ns, name_bytes)


def decode_name(raw: bytes | bytearray | memoryview) -> str:
    try:
        return bytes(raw).decode()
    except UnicodeDecodeError:
        raise bad("a name that is not UTF-8") from None


def record_bytes(name: str, size_bytes: int) -> int:
    """The length of a file's whole record."""
    return HEAD_BYTES + len(name.encode()) + size_bytes + 32


def bad(what: str) -> InvalidInput:
    return InvalidInput(f"the stream of records has {what}", field="body")
