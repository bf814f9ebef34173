"""The relay between a client and the file server: streams, cuts, refusals."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from paddlecloud.core.errors import Unavailable
from paddlecloud.server.relaying import Errand, Relay, Target

Upstream = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PIECE = b"x" * 65536


class Client:
    """An ASGI client that sends `body` piece by piece and keeps what it is answered."""

    def __init__(self, *body: bytes, method: str = "POST", stays: bool = True, **headers: str):
        self._body = list(body)
        self._stays = stays
        self.gone = asyncio.Event()
        self.asked = 0
        self.errand = Errand(b"{}")
        self.messages: list[Any] = []
        named = [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        if body and "transfer_encoding" not in headers and "content_length" not in headers:
            named.append((b"content-length", b"%d" % sum(map(len, body))))
        self.scope = {
            "method": method,
            "path": "/api/v2/pfs/entry",
            "raw_path": b"/api/v2/pfs/entry",
            "query_string": b"path=%2Fpfs",
            "headers": named,
        }

    async def receive(self) -> Any:
        self.asked += 1
        if self._body:
            piece = self._body.pop(0)
            return {
                "type": "http.request",
                "body": piece,
                "more_body": bool(self._body) or not self._stays,
            }
        if not self._stays:
            return {"type": "http.disconnect"}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def is_whole(self) -> bool:
        last = self.messages[-1]
        return last["type"] == "http.response.body" and not last.get("more_body", False)


def relay(
    client: Client, upstream: Upstream, facts: list[tuple[bytes, bytes]] | None = None
) -> None:
    async def both() -> None:
        server = await asyncio.start_server(upstream, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            target = Target(host="127.0.0.1", port=port)
            await Relay(client.scope, client.receive, client.send, client.errand).run(
                target, facts or []
            )

    asyncio.run(asyncio.wait_for(both(), 20))


async def head_of(reader: asyncio.StreamReader) -> str:
    return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")


def test_passes_a_request_and_its_answer_on() -> None:
    seen: list[Any] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await head_of(reader))
        seen.append(await reader.readexactly(2 * len(PIECE)))
        writer.write(b"HTTP/1.1 201 Created\r\nContent-Length: 3\r\nETag: x\r\n\r\nyes")
        writer.close()

    client = Client(
        PIECE, PIECE, authorization="Token secret", cookie="sessionid=1", pfs_relay="forged"
    )
    relay(client, upstream, [(b"pfs-relay", b"true")])
    head = seen[0].lower()
    assert head.startswith("post /api/v2/pfs/entry?path=%2fpfs http/1.1\r\n")
    assert not [word for word in ("secret", "cookie", "forged") if word in head]
    assert "pfs-relay: true\r\n" in head
    assert f"content-length: {2 * len(PIECE)}" in head
    assert seen[1] == PIECE * 2
    assert (client.status, client.body, client.is_whole) == (201, b"yes", True)
    assert (b"etag", b"x") in client.messages[0]["headers"]


def test_passes_chunks_both_ways() -> None:
    seen: list[bytes] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        seen.append(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\n\r\n".replace(b";ext=1", b""))
        writer.close()

    client = Client(b"ab", b"c", transfer_encoding="chunked")
    relay(client, upstream)
    assert seen == [b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"]
    assert (client.body, client.is_whole) == (b"abcde", True)


def test_tells_the_file_server_when_the_client_goes_away_in_the_middle() -> None:
    ends: list[bytes] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        ends.append(await reader.read())  # to the end: the relay has closed it
        writer.close()

    client = Client(b"half", stays=False, content_length="1000")
    with pytest.raises(Unavailable):
        relay(client, upstream)
    assert ends == [b"half"]
    assert client.messages == []


def test_leaves_when_the_client_no_longer_waits_for_the_answer() -> None:
    client = Client()
    ended: list[bytes] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        client.gone.set()
        ended.append(await reader.read())
        writer.close()

    with pytest.raises(Unavailable):
        relay(client, upstream)
    assert ended == [b""]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_cuts_the_client_when_the_answer_is_cut(answer: bytes) -> None:
    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)
        writer.close()

    client = Client(method="GET")
    relay(client, upstream)
    assert client.status == 200
    assert not client.is_whole


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 ", b"nonsense\r\n\r\n"])
def test_says_unavailable_when_no_answer_comes(answer: bytes) -> None:
    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(answer)
        writer.close()

    with pytest.raises(Unavailable) as refused:
        relay(Client(method="GET"), upstream)
    assert "again" in refused.value.hint


def test_says_unavailable_when_nobody_listens() -> None:
    async def nobody() -> None:
        client = Client(method="GET")
        target = Target(host="127.0.0.1", port=1)
        await Relay(client.scope, client.receive, client.send, client.errand).run(target, [])

    with pytest.raises(Unavailable):
        asyncio.run(nobody())


@pytest.mark.parametrize("agreed", [True, False])
def test_asks_for_the_body_only_when_the_file_server_wants_it(agreed: bool) -> None:
    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert "expect: 100-continue" in await head_of(reader)
        if agreed:
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            assert await reader.readexactly(4) == b"body"
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        else:
            writer.write(b"HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    client = Client(b"body", expect="100-continue")
    relay(client, upstream)
    assert client.status == (200 if agreed else 507)
    assert bool(client.asked) is agreed
    closes = (b"connection", b"close") in client.messages[0]["headers"]
    assert closes is not agreed


def test_gives_an_early_refusal_of_a_body_that_is_not_read() -> None:
    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 413 Large\r\nContent-Length: 2\r\n\r\nno")
        await writer.drain()
        writer.close()

    client = Client(*[PIECE] * 200)
    relay(client, upstream)
    assert (client.status, client.body) == (413, b"no")


def test_a_slow_file_server_holds_the_client_back() -> None:
    total, taken = 400, asyncio.Event()
    asked: list[int] = []

    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        while client.asked > len(asked):  # until the relay asks no further
            asked.extend(range(len(asked), client.asked))
            await asyncio.sleep(0.05)
        taken.set()
        await reader.readexactly(total * len(PIECE))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    client = Client(*[PIECE] * total)
    relay(client, upstream)
    assert client.status == 200
    assert taken.is_set()
    assert len(asked) < total  # the rest was not even asked for


def test_sends_no_body_to_a_head_request() -> None:
    async def upstream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        writer.close()

    client = Client(method="HEAD")
    relay(client, upstream)
    assert (client.status, client.body, client.is_whole) == (200, b"", True)
