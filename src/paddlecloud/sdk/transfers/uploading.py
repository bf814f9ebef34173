"""Sending local files into a directory: small ones in batches, large ones each for itself.

It promises: small files are hashed where they were read, in the body that is sent, and what the
server refuses because it arrived damaged is sent once more; a file that changes meanwhile is begun
again once, then reported by name. Called by `sending`. It never decides what to send.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from paddlecloud.core.errors import Conflict, PaddleCloudError, error_from_json
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.digest_cache import DigestCache
from paddlecloud.sdk.transfers.large_uploads import LargeUpload, Runner
from paddlecloud.sdk.transfers.local_files import (
    Changed,
    LocalFault,
    changed_twice,
    fingerprint,
    read_into,
)
from paddlecloud.sdk.transfers.planning import leaves_at_once, under
from paddlecloud.sdk.transfers.sessions import Session
from paddlecloud.sdk.transfers.walking import Found, found
from paddlecloud.wire import records, routes
from paddlecloud.wire.digests import leaf_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SLICE_BYTES = 1 << 20


class Uploader:
    """Sends files into one directory of the server, or into its blob store."""

    def __init__(
        self,
        session: Session,
        base: str,
        cache: DigestCache,
        *,
        preserve_times: bool = False,
        chunk_bytes: int | None = None,
        reuse: bool = True,
    ) -> None:
        """`reuse`: leaves that the old file at the place has too are copied there, not sent."""
        self._session = session
        self._base = base
        self._cache = cache
        self._reuse = reuse
        self._preserve_times = preserve_times
        self._most_leaves = leaves_at_once(chunk_bytes)

    # --- many small files ------------------------------------------------------------------

    def send_batch(self, lane: Lane, files: Sequence[Found]) -> None:
        """Files that changed since they were found, or arrived damaged, get a second chance."""
        refused = self._send_records(lane, files)
        again = []
        for file, error in refused:
            if isinstance(error, PaddleCloudError) and not _may_pass(error):
                self._session.fail(file.path, error)
            else:
                again.append(file)
        if not again:
            return
        for file, error in self._send_records(lane, [_found_again(file) for file in again]):
            error = error if isinstance(error, PaddleCloudError) else changed_twice(file.path)
            self._session.fail(file.path, error)

    def _send_records(
        self, lane: Lane, files: Sequence[Found]
    ) -> list[tuple[Found, PaddleCloudError | Changed]]:
        """One batch; what changed before it was read, and what the server refused of it."""
        session = self._session
        sent, refused, body = self._fill_records(lane, files)
        if not sent:
            return refused
        size_bytes = sum(file.size_bytes for file, _, _ in sent)
        asked = query({"path": self._base, "files": len(sent), "bytes": str(size_bytes)})
        answer = post_records(session, lane, routes.PFS_BATCH + asked, body, size_bytes)
        errors = {int(i): error_from_json(error) for i, error in answer["refused"]}
        learn, done, base = self._cache.learn, session.done, self._base
        for index, (file, digest, is_settled) in enumerate(sent):
            if index not in errors:
                if is_settled:
                    learn(file, digest)
                size_bytes = file.size_bytes
                done(file.path, under(base, file.name), size_bytes, size_bytes, "sent")
        session.lost(sum(sent[index][0].size_bytes for index in errors))
        return refused + [(sent[index][0], error) for index, error in sorted(errors.items())]

    def _fill_records(
        self, lane: Lane, files: Sequence[Found]
    ) -> tuple[
        list[tuple[Found, bytes, bool]], list[tuple[Found, PaddleCloudError | Changed]], memoryview
    ]:
        """The stream of records, each file read straight into its place and hashed there."""
        longest = sum(records.record_bytes(file.name, file.size_bytes) for file in files)
        body = lane.scratch(len(records.MAGIC) + longest + len(records.END))
        body[: len(records.MAGIC)] = records.MAGIC
        at = len(records.MAGIC)
        sent: list[tuple[Found, bytes, bool]] = []  # with whether it is settled
        refused: list[tuple[Found, PaddleCloudError | Changed]] = []
        for file in files:
            kind = records.Kind.EXECUTABLE if file.executable else records.Kind.FILE
            mtime_ns = file.mtime_ns if self._preserve_times else None
            head = records.encode_head(kind, file.name, file.size_bytes, mtime_ns)
            start = at + len(head)
            content = body[start : start + file.size_bytes]
            try:
                is_settled = read_into(file, content)
            except Changed as changed:
                refused.append((file, changed))
                continue
            except LocalFault as fault:
                self._session.fail(file.path, fault.error)
                continue
            digest = leaf_hash()
            digest.update(content)
            found = digest.digest()
            body[at:start] = head
            end = start + file.size_bytes
            body[end : end + len(found)] = found
            at = end + len(found)
            sent.append((file, found, is_settled))
        body[at : at + len(records.END)] = records.END
        return sent, refused, body[: at + len(records.END)]

    # --- one large file --------------------------------------------------------------------

    def send_large(self, lane: Lane, file: Found, known: bytes | None, run: Runner) -> None:
        """`run` runs parts of the work: on this lane, or on several."""
        try:
            for _ in range(2):
                try:
                    upload = LargeUpload(
                        self._session, self._wish(file), file, known, reuse=self._reuse
                    )
                    entry_bytes = upload.send(lane, run, self._most_leaves)
                except Changed:
                    file, known = _found_again(file), None
                    continue
                if upload.is_settled and upload.leaves != known:
                    self._cache.learn(file, upload.leaves, told=upload.was_told)
                target = under(self._base, file.name)
                self._session.done(file.path, target, file.size_bytes, entry_bytes, "sent")
                return
            self._session.fail(file.path, changed_twice(file.path))
        except LocalFault as fault:
            self._session.fail(file.path, fault.error)
        except PaddleCloudError as error:
            self._session.fail(file.path, error)

    def _wish(self, file: Found) -> dict[str, Any]:
        return {
            "path": under(self._base, file.name),
            "size": file.size_bytes,
            "mtime_ns": file.mtime_ns if self._preserve_times else None,
            "executable": file.executable,
            "source": fingerprint(file),
        }


def post_records(
    session: Session, lane: Lane, path: str, body: bytearray | memoryview, size_bytes: int
) -> Any:
    """Send a stream of records until it is acknowledged; repeating one does no harm."""
    moved = 0

    def pieces() -> Iterator[memoryview]:
        nonlocal moved
        session.lost(moved)  # of the attempt before
        moved = 0
        view = memoryview(body)
        for at in range(0, len(body), SLICE_BYTES):
            piece = view[at : at + SLICE_BYTES]
            yield piece
            # The heads and digests around small files are traffic nobody counts.
            step = size_bytes * (at + len(piece)) // len(body) - moved
            moved += step
            session.moved(step)

    return session.persist(lambda: lane.send("POST", path, pieces, len(body), whole=body))


def _found_again(file: Found) -> Found:
    """As it is now; one that is gone is found missing when it is read."""
    try:
        return found(file.name, file.path, os.stat(file.path))
    except OSError:
        return file


def _may_pass(error: PaddleCloudError) -> bool:
    """Whether sending it again may help: its bytes were damaged, or somebody was in the way."""
    return isinstance(error, Conflict)
