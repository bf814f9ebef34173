"""Sending contents to the server's store of blobs, each called by its digest.

It promises: what is sent under a digest has that digest, or it is refused by name; small ones
travel together, large ones resume like every upload. `sdk.snapshots` calls it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from paddlecloud.core.errors import Conflict, PaddleCloudError, error_from_json
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.large_uploads import LargeUpload, each_on
from paddlecloud.sdk.transfers.local_files import Changed, LocalFault, fingerprint, read_small
from paddlecloud.sdk.transfers.planning import batches, is_small
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.sdk.transfers.uploading import post_records
from paddlecloud.sdk.transfers.walking import Found
from paddlecloud.wire import records, routes
from paddlecloud.wire.digests import leaf_hash


class BlobSender:
    def __init__(self, session: Session) -> None:
        self._session = session

    def send(self, missing: Mapping[str, Found]) -> None:
        """All of them, by digest, or the first error."""
        self._session.run(self._tasks(sorted(missing.items())))

    def _tasks(self, rows: Sequence[tuple[str, Found]]) -> Iterator[Task]:
        sizes = [file.size_bytes for _, file in rows]
        small = [i for i, size_bytes in enumerate(sizes) if is_small(size_bytes)]
        for group in batches(sizes, small):
            yield self._batch_task([rows[i] for i in group])
        for digest, file in rows:
            if not is_small(file.size_bytes):
                yield self._large_task(digest, file)

    def _batch_task(self, rows: Sequence[tuple[str, Found]]) -> Task:
        return lambda lane: self._send_batch(lane, rows)

    def _large_task(self, digest: str, file: Found) -> Task:
        return lambda lane: self._send_large(lane, digest, file)

    def _send_batch(self, lane: Lane, rows: Sequence[tuple[str, Found]]) -> None:
        body = bytearray(records.MAGIC)
        size_bytes = 0
        for digest, file in rows:
            data = _read(file, digest)
            size_bytes += len(data)
            body += records.encode_head(records.Kind.FILE, digest, len(data))
            body += data
            body += bytes.fromhex(digest)
        body += records.END
        path = routes.PFS_BLOBS + query({"files": len(rows), "bytes": str(size_bytes)})
        for attempt in range(2):
            refused = post_records(self._session, lane, path, body, size_bytes)["refused"]
            if not refused:
                return
            error = error_from_json(refused[0][1])
            if attempt or not isinstance(error, Conflict):
                raise error
            self._session.lost(size_bytes)  # damaged on the way: once more

    def _send_large(self, lane: Lane, digest: str, file: Found) -> None:
        wish = {
            "blob": digest,
            "size": file.size_bytes,
            "mtime_ns": None,
            "executable": False,
            "source": fingerprint(file),
        }
        try:
            LargeUpload(self._session, wish, file, None, reuse=False).send(
                lane, each_on(lane), None
            )
        except Changed:
            raise _changed(file) from None
        except LocalFault as fault:
            raise fault.error from None


def _read(file: Found, digest: str) -> bytes:
    try:
        _, data = read_small(file)
    except Changed:
        raise _changed(file) from None
    except LocalFault as fault:
        raise fault.error from None
    found = leaf_hash()
    found.update(data)
    if found.hexdigest() != digest:
        raise _changed(file)
    return data


def _changed(file: Found) -> PaddleCloudError:
    return Conflict(f"{file.name} changed while it was sent", hint="submit again when it is still")
