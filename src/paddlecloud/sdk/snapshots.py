"""A folder as a snapshot: the list of its files by content, and what the server lacks of them.

It promises: the same folder gives the same digest on every machine; a file that has not changed
since the last time is not read; only the difference from the last snapshot of this folder that
this server took is sent, and only the contents it does not have. The ignore rules, notes and sizes
are those of `packages`. `submit` calls it. It never sends a file that changed meanwhile.
"""

from __future__ import annotations

import hashlib
import os

from paddlecloud.core.errors import Conflict, InvalidInput, NotFound
from paddlecloud.sdk.packages import PackageWalk, walk_package
from paddlecloud.sdk.transfers.digest_cache import DigestCache, cache_directory, digest_of
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault
from paddlecloud.sdk.transfers.sessions import Session
from paddlecloud.sdk.transfers.walking import Found
from paddlecloud.wire import routes
from paddlecloud.wire import snapshots as wire
from paddlecloud.wire.buffers import buffer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VIEW_BYTES = 1 << 20
MOST_BASE_BYTES = 64 << 20
ROUNDS = 3  # a server that keeps missing the same contents is not believed


class Snapshot:
    """A collected folder. `digest` is its name on the server."""

    def __init__(self, root: str, listed: wire.Snapshot, walk: PackageWalk) -> None:
        self.root = root
        self.listed = listed
        self.files = len(listed.files)
        self.bytes = listed.total_bytes
        self.skipped = walk.skipped  # what was left behind, as shown to the user
        self.skipped_bytes = walk.skipped_bytes
        self.notes = walk.notes
        self.text = wire.encode(listed)
        self.digest = wire.digest_of(self.text)
        by_name = {file.name: file for file in walk.found}
        self.sources = {file.digest: by_name[file.path] for file in listed.files}


def collect(path: str) -> Snapshot:
    """Walk a folder and digest what is not known yet; what cannot be sent is refused by name."""
    walk = walk_package(path)
    cache = DigestCache()
    try:
        known = cache.look_up(walk.found, [path])
        view: memoryview | None = None
        files = []
        for file, leaves in zip(walk.found, known, strict=True):
            if leaves is None:
                view = view or buffer(VIEW_BYTES)
                leaves = _hash(file, view, cache)
            digest = digest_of(leaves).hex()
            files.append(wire.File(file.name, file.size_bytes, file.executable, digest))
    finally:
        cache.close()
    return Snapshot(path, wire.make(files, walk.folders), walk)


def _hash(file: Found, view: memoryview, cache: DigestCache) -> bytes:
    try:
        return cache.hash(file, view)
    except Changed:
        raise _unsteady(file.name) from None
    except LocalFault as fault:
        raise InvalidInput(fault.error.message, field="package") from None


def _unsteady(name: str) -> Conflict:
    return Conflict(f"{name} changed while it was read", hint="submit again when it is still")


def put(session: Session, snapshot: Snapshot) -> str:
    """Make the server have it, sending as little as can be; returns its digest."""
    memory = LastSnapshot(session.plane.transport.endpoint.url, snapshot.root)
    wish = _wish(memory.recall(), snapshot)
    is_planned = False
    for _ in range(ROUNDS):
        try:
            answer = session.remote.call("POST", routes.PFS_SNAPSHOTS, wish.to_json())
        except NotFound:
            if wish.base is None:
                raise
            wish = wire.whole(snapshot.listed)  # it was forgotten there
            continue
        missing = _missing(answer, snapshot)
        if not is_planned:
            is_planned = True
            unsent = sum(file.size_bytes for file in missing.values())
            session.planned(
                snapshot.files,
                snapshot.bytes,
                snapshot.files - len(missing),
                snapshot.bytes - unsent,
            )
        if not missing:
            memory.remember(snapshot.text)
            return snapshot.digest
        from paddlecloud.sdk.transfers.blobs import BlobSender  # mostly nothing is missing

        BlobSender(session).send(missing)
    raise Conflict("the server keeps asking for the same contents", hint="submit again")


def _wish(base: wire.Snapshot | None, snapshot: Snapshot) -> wire.Wish:
    return wire.whole(snapshot.listed) if base is None else wire.difference(base, snapshot.listed)


def _missing(answer: dict[str, Any], snapshot: Snapshot) -> dict[str, Found]:
    try:
        return {str(digest): snapshot.sources[digest] for digest in answer["missing"]}
    except KeyError:
        raise Conflict("the server asks for contents the package does not have") from None


class LastSnapshot:
    """The list of the last snapshot of a folder that a server took. May be deleted any time."""

    def __init__(self, server: str, root: str) -> None:
        key = f"{server}\n{os.path.realpath(root)}".encode("utf-8", "surrogateescape")
        name = hashlib.sha256(key).hexdigest()[:32]
        self._path = os.path.join(cache_directory(), "snapshots", name)

    def recall(self) -> wire.Snapshot | None:
        try:
            with open(self._path, "rb") as file:
                text = file.read(MOST_BASE_BYTES)
            return wire.decode(text) if text else None
        except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None

    def remember(self, text: bytes) -> None:
        """A cache that cannot be written to only means that the whole list is sent next time."""
        part = f"{self._path}.{os.getpid()}"
        try:
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            with open(part, "wb") as file:
                file.write(text)
            os.replace(part, self._path)
        except OSError:
            pass
