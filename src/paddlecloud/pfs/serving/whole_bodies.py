"""Bodies that must be there whole before they mean anything: JSON, and what becomes of it.

A long one waits on the disk, not in memory, and of what does not belong into a call nothing is
built: an account may send many large bodies slowly, or one of 32 MiB that would become gigabytes.
"""

from __future__ import annotations

import mmap
import os
from typing import Any

import msgspec

from paddlecloud.core.errors import InvalidInput, TooLarge
from paddlecloud.pfs.faults import name_error

KEPT_BYTES = 256 << 10  # in memory, for one that is slow to send or to take it


class Whole:
    """A body that must be there whole before it can be read. A long one waits on the disk: many
    clients that are slow to send theirs must not hold as many of them in memory."""

    def __init__(self, limit_bytes: int, folder: str) -> None:
        self._limit_bytes = limit_bytes
        self._folder = folder
        self._data = bytearray()
        self._fd = -1
        self._size_bytes = 0

    def __enter__(self) -> Whole:
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    def keep(self, view: memoryview) -> None:
        self._size_bytes += len(view)
        if self._size_bytes > self._limit_bytes:
            raise TooLarge(f"the body of this call may have {self._limit_bytes} bytes")
        try:
            if self._fd < 0 and self._size_bytes > KEPT_BYTES and self._folder:
                self._fd = nameless_file(self._folder)
                write_all(self._fd, memoryview(self._data))
                self._data = bytearray()
            if self._fd >= 0:
                write_all(self._fd, view)
            else:
                self._data.extend(view)
        except OSError as error:
            raise name_error(error, "the request") from error

    def take(self) -> bytes | bytearray | mmap.mmap:
        if self._fd < 0:
            return self._data
        return mmap.mmap(self._fd, self._size_bytes, prot=mmap.PROT_READ)


def nameless_file(folder: str) -> int:
    if not folder:
        raise FileNotFoundError("there is no folder for it")
    return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)


def write_all(fd: int, view: memoryview) -> None:
    while view:
        view = view[os.write(fd, view) :]


def decode_json(data: bytes | bytearray | mmap.mmap, shape: Any) -> Any:
    """The body as `shape`, a TypedDict. Unknown keys are faults, as everywhere.

    Nothing is built of what does not belong: a body of 32 MiB could become a hundred times that.
    """
    whole = data if len(data) else b"{}"
    try:
        keys = msgspec.json.decode(whole, type=dict[str, msgspec.Raw])
        unknown = sorted(set(keys) - set(shape.__annotations__))
        if unknown:
            known = ", ".join(shape.__annotations__)
            raise InvalidInput(
                f"{unknown[0][:100]} is no key of this call", field=unknown[0][:100], hint=known
            )
        return msgspec.json.decode(whole, type=shape)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        field = place.strip("`.") or "body"
        raise InvalidInput(message[:1].lower() + message[1:], field=field) from None
    except _NOT_JSON as error:
        raise _not_json(error) from None


def decode_any_json(data: bytes | bytearray | mmap.mmap) -> Any:
    """Whatever it is; for callers that look at it themselves."""
    try:
        return msgspec.json.decode(data)
    except _NOT_JSON as error:
        raise _not_json(error) from None


# Cut off or malformed, not UTF-8, too deep.
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _not_json(error: Exception) -> InvalidInput:
    return InvalidInput(f"the body is not JSON: {error}", field="body")
