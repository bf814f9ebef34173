"""Errors of the disk get our names here, and those that carry more than a sentence live here."""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paddlecloud.core.errors import (
    Conflict,
    InternalError,
    InvalidInput,
    NotAllowed,
    NotFound,
    OutOfSpace,
    PaddleCloudError,
    Unavailable,
)
from paddlecloud.wire.pfspath import PfsPath

MISSING = "no such file or directory"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_A_FILE = (errno.ELOOP, errno.ENXIO, errno.ENODEV)
_STORAGE_FAILS = (errno.EIO, errno.ESTALE, errno.ENOTCONN, errno.ETIMEDOUT, errno.EROFS)


class MissingLeaves(Conflict):
    """A commit before every leaf arrived."""

    def __init__(self, missing: Sequence[int]) -> None:
        super().__init__(f"{len(missing)} parts of the file have not arrived", hint="send them")
        self.missing = list(missing)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "missing": self.missing}


class DifferentLeaves(Conflict):
    """What arrived is not what the client says it sent; the leaves show where."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        super().__init__(
            "the bytes that arrived differ from the digest given",
            field="digest",
            hint="send the parts whose digest differs again",
        )
        self.leaves = [leaf.hex() for leaf in leaves]

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "leaves": self.leaves}


def missing(path: PfsPath | str, hint: str = "") -> NotFound:
    return NotFound(f"{MISSING}: {shown(path)}", field="path", hint=hint)


def shown(path: PfsPath | str) -> str:
    return str(path).rstrip("/")


@contextmanager
def named(path: PfsPath | str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise name_error(error, path) from error


def name_error(error: OSError, path: PfsPath | str) -> PaddleCloudError:
    """The error a user sees for one of the disk's."""
    number, where = error.errno, shown(path)
    if number in _FULL:
        return OutOfSpace("the disk of the file store is full", field="path")
    if number == errno.ENOENT:
        return missing(path)
    if number == errno.ENOTDIR:
        return missing(path, "a part of the path is a file")
    if number in _NOT_A_FILE:
        return missing(path, "links and devices are not served")
    if number == errno.EISDIR:
        return InvalidInput(f"{where} is a directory", field="path")
    if number in (errno.EEXIST, errno.ENOTEMPTY):
        return Conflict(f"already exist: {where}", field="path")
    if number in (errno.EACCES, errno.EPERM):
        return NotAllowed(f"the file store may not touch {where}", field="path")
    if number == errno.EXDEV:
        return Conflict(
            f"{where} lies on another filesystem than the file store's own folder",
            field="path",
            hint="the administrator has to mount the storage as a whole",
        )
    if number == errno.ENAMETOOLONG:
        return InvalidInput(f"a name in {where[:100]} is too long for this disk", field="path")
    if number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN):
        return Unavailable("the file store has too much to do", hint="try again")
    if number in _STORAGE_FAILS:
        return Unavailable(f"the disk of the file store fails: {error.strerror}")
    return InternalError(f"{where}: {error.strerror or error}")
