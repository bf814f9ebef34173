"""Pinned packages: received as a stream, checked, kept per account under their digest.

A package appears in the store only when every byte has arrived, the digest is the one it was sent
under, and its manifest is safe. Accounts never share a file, so that nobody can learn what others
have by asking for a digest.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import time
from typing import IO, Any

from paddlecloud.core.errors import InvalidInput, OutOfSpace, TooLarge
from paddlecloud.pfs.unpack import read_manifest
from paddlecloud.server.database import writing
from paddlecloud.server.jobs.models import Package
from paddlecloud.server.process import here
from paddlecloud.server.services import packages
from paddlecloud.wire import package

_KEEP_FREE_BYTES = 64 << 20


class Receiver:
    """Takes one package, piece by piece, on a thread; `finish` or `abandon` ends it."""

    def __init__(self, account_id: int, digest: str, announced_bytes: int | None) -> None:
        self._account_id = account_id
        self._digest = digest
        self._target = packages._stream_path(account_id, digest)
        own = packages._stream_limits()
        self._limit_bytes = own.max_total_bytes + own.max_manifest_bytes + package.PREFIX_BYTES
        self._check_room(announced_bytes or 0)
        self._target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._part = self._target.with_name(f".{secrets.token_hex(8)}.part")
        fd = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file: IO[bytes] = open(fd, "w+b", buffering=0)  # noqa: SIM115  # closed by the ends
        self._hash = hashlib.sha256()
        self._size_bytes = 0

    def _check_room(self, announced_bytes: int) -> None:
        if announced_bytes > self._limit_bytes:
            raise TooLarge(
                f"the package has {announced_bytes} bytes; at most {self._limit_bytes} are taken",
                field="package",
                hint="put data sets into your home with `paddlecloud file put`",
            )
        facts = os.statvfs(here().state_dir)
        free_bytes = facts.f_bavail * facts.f_frsize
        if announced_bytes + _KEEP_FREE_BYTES > free_bytes:
            raise OutOfSpace(
                f"the package has {announced_bytes} bytes and the platform's disk has"
                f" {free_bytes} free",
                field="package",
            )

    def write(self, data: bytes) -> None:
        self._size_bytes += len(data)
        if self._size_bytes > self._limit_bytes:
            self._check_room(self._size_bytes)
        self._hash.update(data)
        view = memoryview(data)
        while view:
            view = view[self._file.write(view) or 0 :]

    def finish(self) -> dict[str, Any]:
        """Check, sync, publish, remember."""
        try:
            if self._hash.hexdigest() != self._digest:
                raise InvalidInput(
                    "the bytes sent do not have this digest", field="digest", hint="send it again"
                )
            self._file.seek(0)
            manifest = read_manifest(self._file, packages._stream_limits())  # type: ignore[arg-type]
            if self._file.tell() + manifest.total_bytes != self._size_bytes:
                raise package.BadPackage("the package's length is not what its list of files says")
            os.fsync(self._file.fileno())
            os.replace(self._part, self._target)
        except BaseException:
            self.abandon()
            raise
        self._file.close()
        facts = {
            "files": len(manifest.files),
            "size_bytes": manifest.total_bytes,
            "created_at": time.time(),
        }
        with writing():
            Package.objects.update_or_create(
                account_id=self._account_id, digest=self._digest, defaults=facts
            )
        return {
            "digest": self._digest,
            "files": len(manifest.files),
            "bytes": manifest.total_bytes,
        }

    def abandon(self) -> None:
        self._file.close()
        self._part.unlink(missing_ok=True)
