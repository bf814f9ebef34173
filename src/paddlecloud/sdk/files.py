"""Single files over the v1 endpoints: `/api/v1/file/` and `/api/v1/filelist/`.

It promises: bodies are streamed; a download arrives whole under its name or not at all, and never
replaces an existing file. Called by the client. It never walks directories: callers do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from paddlecloud.sdk.http import READ_BYTES, query
from paddlecloud.sdk.transport import Transport
from paddlecloud.wire import routes


def put(transport: Transport, source: str, path: str) -> None:
    from paddlecloud.core.errors import InvalidInput

    try:
        size_bytes = os.stat(source).st_size
    except OSError as error:
        raise InvalidInput(f"cannot read {source}: {error.strerror}", field=source) from error
    boundary = os.urandom(16).hex()
    name = os.path.basename(source).replace('"', "%22").replace("\r", "").replace("\n", "")
    head = (
        f"--{boundary}\r\n"
        f'Content-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    end = f"\r\n--{boundary}--\r\n".encode()

    def body() -> Iterator[bytes]:
        yield head
        yield from _pieces(source, size_bytes)
        yield end

    response = transport.open(
        "POST",
        routes.V1_FILE + "/" + query({"path": path}),
        body,
        length=len(head) + size_bytes + len(end),
        headers={
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            routes.IDEMPOTENCY_KEY: os.urandom(16).hex(),  # putting the same bytes twice is once
        },
        timeout_s=300.0,
    )
    transport.read(response)


def _pieces(source: str, size_bytes: int) -> Iterator[bytes]:
    """Exactly `size_bytes` of the file: the length was already promised."""
    from paddlecloud.core.errors import Conflict

    left = size_bytes
    with open(source, "rb") as file:
        while left:
            piece = file.read(min(READ_BYTES, left))
            if not piece:
                raise Conflict(f"{source} became shorter while it was sent", hint="run it again")
            left -= len(piece)
            yield piece


def get(transport: Transport, path: str, target: str) -> int:
    from paddlecloud.core.errors import Conflict, InvalidInput

    if os.path.lexists(target):
        raise Conflict(f"file already exist: {target}", hint="remove it or choose another name")
    asked = routes.V1_FILE + "/" + query({"path": path})
    response = transport.open("GET", asked, headers={"Accept": "*/*"})
    partial = f"{target}.{os.getpid()}.part"
    size_bytes = 0
    try:
        with open(partial, "xb") as file:
            for data in response:
                file.write(data)
                size_bytes += len(data)
        os.rename(partial, target)
    except OSError as error:
        response.close()
        if os.path.exists(partial):
            os.unlink(partial)
        if isinstance(error, ConnectionError | TimeoutError):
            raise transport.unreachable(error) from error
        raise InvalidInput(f"cannot write {target}: {error.strerror}", field=target) from error
    return size_bytes


def names(transport: Transport, path: str) -> list[str]:
    asked = routes.V1_FILELIST + "/" + query({"path": path, "dc": _datacenter(path)})
    answer = json.loads(transport.read(transport.open("GET", asked)))
    return [str(name) for name in answer["items"]]


def _datacenter(path: str) -> str:
    parts = path.split("/")
    return parts[2] if len(parts) > 2 and parts[1] == "pfs" else ""
