"""The protocol in a few lines, as a client would write it."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from paddlecloud.wire import records
from paddlecloud.wire.digests import LEAF_BYTES, combine, leaf_hash
from tests.pfs.running import Answer, Caller

PFS = "/api/v2/pfs"


def leaf_digests(data: bytes) -> list[str]:
    leaves = []
    for at in range(0, max(1, len(data)), LEAF_BYTES):
        whole = leaf_hash()
        whole.update(data[at : at + LEAF_BYTES])
        leaves.append(whole.hexdigest())
    return leaves


def digest_of(data: bytes) -> str:
    return combine([bytes.fromhex(leaf) for leaf in leaf_digests(data)]).hex()


def ask(caller: Caller, call: str, path: str, **params: Any) -> Answer:
    more = "".join(f"&{name}={value}" for name, value in params.items())
    return caller.get(f"{PFS}/{call}?path={quote(path)}{more}")


def content(caller: Caller, path: str, **headers: str) -> Answer:
    return caller.get(f"{PFS}/content?path={quote(path)}", **headers)


def begin(caller: Caller, path: str, data: bytes, **more: Any) -> dict[str, Any]:
    body = {"path": path, "size": len(data), "source": "test", **more}
    answer = caller.post(f"{PFS}/uploads", body)
    assert answer.status == 200, answer
    return answer.json


def put(caller: Caller, path: str, data: bytes, **more: Any) -> Answer:
    upload = begin(caller, path, data, **more)["id"]
    sent = caller.call("PUT", f"{PFS}/uploads/{upload}?offset=0", data)
    assert sent.status == 200, sent
    assert sent.json["leaves"] == leaf_digests(data)
    return caller.post(f"{PFS}/uploads/{upload}/commit", {"digest": digest_of(data)})


def record(name: str, data: bytes, kind: records.Kind = records.Kind.FILE) -> bytes:
    head = records.encode_head(kind, name, len(data), 1_700_000_000_000_000_000)
    return head + data + bytes.fromhex(digest_of(data))


def stream(files: dict[str, bytes]) -> bytes:
    body = b"".join(record(name, data) for name, data in files.items())
    return records.MAGIC + body + records.END


def batch(caller: Caller, base: str, body: bytes, files: int, size_bytes: int) -> Answer:
    path = f"{PFS}/batch?path={quote(base)}&files={files}&bytes={size_bytes}"
    return caller.call("POST", path, body)


def read_stream(data: bytes) -> dict[str, bytes | None]:
    """What a fetch answered; None for what failed."""
    assert data.startswith(records.MAGIC)
    at, found = len(records.MAGIC), {}
    while data[at : at + 1] != records.END:
        head = records.decode_head(data[at:])
        at += records.HEAD_BYTES
        name = data[at : at + head.name_bytes].decode()
        at += head.name_bytes
        content = data[at : at + head.size_bytes]
        at += head.size_bytes
        if head.has_digest:
            assert data[at : at + 32].hex() == digest_of(content)
            at += 32
        found[name] = content if head.has_digest else None
    assert at == len(data) - 1
    return found
