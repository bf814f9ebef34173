"""Fetching many small files in one answer.

It promises: a file appears only with the digest that came after its bytes; after a cut only what
has not arrived is asked for again; what the server cannot read is a failure of that file alone.
Called by `copying`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from paddlecloud.core.errors import PaddleCloudError, error_from_json
from paddlecloud.sdk.http import Cut, Response
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.downloading import damaged
from paddlecloud.sdk.transfers.local_files import LocalFault
from paddlecloud.sdk.transfers.local_targets import LocalTarget
from paddlecloud.sdk.transfers.planning import under
from paddlecloud.sdk.transfers.sessions import Session
from paddlecloud.wire import records, routes
from paddlecloud.wire.buffers import buffer
from paddlecloud.wire.digests import DIGEST_BYTES, LEAF_BYTES, leaf_hash

READ_BYTES = 1 << 20
_FILES = (records.Kind.FILE, records.Kind.EXECUTABLE)


class Fetcher:
    """Fetches files below `base` on the server into a local directory."""

    def __init__(
        self, session: Session, base: str, target: LocalTarget, *, preserve_times: bool
    ) -> None:
        self._session = session
        self._base = base
        self._target = target
        self._preserve_times = preserve_times

    def fetch_batch(self, lane: Lane, files: Sequence[tuple[str, str]]) -> None:
        """Files as (name on the server below the base, name below the target)."""
        pending = dict(files)
        wrong: set[str] = set()
        patience = self._session.patience()
        while pending:
            before = len(pending)
            try:
                self._fetch_once(lane, pending, wrong)
            except OSError as cut:
                if len(pending) < before:
                    patience.progressed()
                self._session.wait_after(cut, patience)

    def _fetch_once(self, lane: Lane, pending: dict[str, str], wrong: set[str]) -> None:
        body = json.dumps({"path": self._base, "files": list(pending)}).encode()
        response = lane.open(
            "POST", routes.PFS_FETCH, body, headers={"Content-Type": "application/json"}
        )
        asked = set(pending)
        try:
            reader = RecordReader(response)
            while (record := reader.next()) is not None:
                head, name, data, digest = record
                if name not in asked:
                    raise Cut("the server sent a file that was not asked for")
                asked.discard(name)
                if head.kind is records.Kind.FAILED:
                    self._session.fail(under(self._base, name), _error(data))
                elif head.kind not in _FILES or not _is_right(data, digest):
                    self._session.moved(len(data))
                    self._session.lost(len(data))
                    if name not in wrong:
                        wrong.add(name)  # once more, with what is left
                        continue
                    error = damaged(Lane(lane.plane), under(self._base, name))
                    self._session.fail(under(self._base, name), error)
                else:
                    self._keep(lane, head, name, pending[name], data)
                del pending[name]
        finally:
            response.close()
        if asked:
            raise Cut("the server left out files that were asked for")

    def _keep(
        self, lane: Lane, head: records.Head, name: str, local_name: str, data: bytes
    ) -> None:
        session, source = self._session, under(self._base, name)
        session.moved(len(data))
        try:
            self._target.put_small(
                local_name,
                data,
                executable=head.kind is records.Kind.EXECUTABLE,
                mtime_ns=head.mtime_ns if self._preserve_times else None,
                tag=str(id(lane)),
            )
        except LocalFault as fault:
            session.fail(source, fault.error)
            return
        session.done(source, self._target.path(local_name), len(data), len(data), "sent")


class RecordReader:
    """Records out of an answer as it arrives."""

    def __init__(self, response: Response) -> None:
        self._response = response
        self._buffer = buffer(2 * READ_BYTES)
        self._start = self._end = 0
        if self._take(len(records.MAGIC)) != records.MAGIC:
            raise Cut("the answer is no stream of records")

    def next(self) -> tuple[records.Head, str, bytes, bytes] | None:
        """Head, name, content and digest of the next record; None at the end."""
        first = self._take(1)
        if first == records.END:
            return None
        head = records.decode_head(first + self._take(records.HEAD_BYTES - 1))
        if head.size_bytes > LEAF_BYTES:
            raise Cut("the answer has a record that is too large")
        name = records.decode_name(self._take(head.name_bytes))
        data = self._take(head.size_bytes)
        return head, name, data, self._take(DIGEST_BYTES) if head.has_digest else b""

    def _take(self, n_bytes: int) -> bytes:
        if self._end - self._start >= n_bytes:
            self._start += n_bytes
            return bytes(self._buffer[self._start - n_bytes : self._start])
        parts = [bytes(self._buffer[self._start : self._end])]
        missing = n_bytes - len(parts[0])
        while missing > 0:
            self._start, self._end = 0, self._response.read_into(self._buffer)
            if not self._end:
                raise Cut("the answer ended too soon")
            self._start = min(missing, self._end)
            parts.append(bytes(self._buffer[: self._start]))
            missing -= self._start
        return b"".join(parts)


def _is_right(data: bytes, digest: bytes) -> bool:
    found = leaf_hash()
    found.update(data)
    return bytes(found.digest()) == digest


def _error(data: bytes) -> PaddleCloudError:
    try:
        body = json.loads(data)
    except ValueError:
        body = {}
    return error_from_json(body if isinstance(body, dict) else {})
