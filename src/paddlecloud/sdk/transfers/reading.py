"""The bytes of one remote file as an iterator, for `cat` and scripts.

It promises: over cuts it goes on at the byte where it was; all bytes are of one version of the
file. A whole file is not checked against its digest before the first byte is given: use `copy`
where that matters.
"""

from __future__ import annotations

from collections.abc import Iterator

from paddlecloud.core.errors import Conflict
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane, Patience, Plane
from paddlecloud.wire import routes

_BEYOND_THE_END = 416


def read(plane: Plane, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
    lane = Lane(plane)
    patience = Patience(plane.give_up_s)
    at, end = offset, None if length is None else offset + length
    version = ""
    while end is None or at < end:
        headers = {}
        if at or end is not None:
            headers["Range"] = f"bytes={at}-{'' if end is None else end - 1}"
        try:
            response = lane.open(
                "GET",
                routes.PFS_CONTENT + query({"path": path}),
                headers=headers,
                accept=(_BEYOND_THE_END,),
            )
            if response.status == _BEYOND_THE_END:
                response.close()
                return
            # Not the tag: a file that was just written may get another one each time.
            now = response.headers.get(routes.PFS_MTIME.lower(), "")
            if version and now != version:
                response.close()
                raise Conflict(f"{path} was replaced while it was read", field=path)
            version = now
            try:
                while n_bytes := response.read_into(lane.view):
                    yield bytes(lane.view[:n_bytes])
                    at += n_bytes
                    patience.progressed()
            finally:
                response.close()
            return
        except OSError as cut:
            try:
                patience.wait(cut)
            except OSError:
                raise plane.unreachable(cut) from cut
