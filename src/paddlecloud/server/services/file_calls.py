"""Questions of our own to the file server, on a caller's behalf: small bodies, answers in JSON.

The relay passes on what clients send; this is for what the server itself has to store for them.
It waits, so it is for request threads. The file server's refusals come back as the same errors.
"""

from __future__ import annotations

import json
from typing import Any

from paddlecloud.core.errors import Unavailable, error_from_json
from paddlecloud.server.authentication import Principal
from paddlecloud.server.exchange import encode
from paddlecloud.server.process import here
from paddlecloud.server.relaying import not_there
from paddlecloud.server.services import storing
from paddlecloud.wire import records, routes, snapshots
from paddlecloud.wire.digests import leaf_hash

_ANSWER_WITHIN_S = 30.0
_MAX_ANSWER_BYTES = 16 << 20


def digest_of(data: bytes) -> str:
    whole = leaf_hash()
    whole.update(data)
    return whole.hexdigest()


def put_blob(caller: Principal, data: bytes) -> str:
    """Store bytes that a snapshot will name within the hour; their digest."""
    digest = digest_of(data)
    head = records.encode_head(records.Kind.FILE, digest, len(data))
    stream = records.MAGIC + head + data + bytes.fromhex(digest) + records.END
    path = f"{routes.PFS_BLOBS}?files=1&bytes={len(data)}"
    answer = _ask(caller, "POST", path, stream, records.CONTENT_TYPE)
    if answer["refused"]:
        raise error_from_json(answer["refused"][0][1])
    return digest


def put_snapshot(caller: Principal, snapshot: snapshots.Snapshot) -> tuple[str, list[str]]:
    """(its digest, the digests of blobs it lacks); it is stored when it lacks none."""
    wish = snapshots.whole(snapshot)
    body = json.dumps(wish.to_json()).encode()
    answer = _ask(caller, "POST", routes.PFS_SNAPSHOTS, body, "application/json")
    return wish.digest, list(answer["missing"])


def _ask(caller: Principal, method: str, path: str, body: bytes, content_type: str) -> Any:
    import http.client  # not needed to start

    files = here().files
    target = files.target()
    proof = files.proof("", encode(storing.facts_of(caller)))
    if not proof:
        raise Unavailable(
            "the file server runs elsewhere and does not know this server's word",
            hint="give it secrets/pfs-relay and set PADDLECLOUD_PFS_SECRET=1",
        )
    headers = {name.decode(): value.decode() for name, value in proof}
    headers["content-type"] = content_type
    connection = (
        http.client.HTTPSConnection(
            target.host, target.port, timeout=_ANSWER_WITHIN_S, context=target.tls
        )
        if target.tls
        else http.client.HTTPConnection(target.host, target.port, timeout=_ANSWER_WITHIN_S)
    )
    try:
        connection.request(method, target.prefix + path, body, headers)
        response = connection.getresponse()
        answer = json.loads(response.read(_MAX_ANSWER_BYTES) or b"null")
    except (OSError, http.client.HTTPException, ValueError):
        raise not_there() from None
    finally:
        connection.close()
    if response.status >= 300:
        raise error_from_json(answer if isinstance(answer, dict) else {})
    return answer
