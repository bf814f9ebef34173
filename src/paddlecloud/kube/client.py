"""A thin client of the Kubernetes API: paths in, decoded JSON out, refusals as `Refused`.

Callers may share one client between threads; each thread has a connection of its own, kept open.
A call that got no answer on a connection that had been idle is made once more: everything this
project sends may be sent twice (names are fixed, so a second create is a 409). Nothing is cached
and nothing else is tried again: `controller` does that, by looking again later.

A server that accepts and says nothing is left after `FIRST_PATIENCE_S`; the same thread's next
call waits twice as long, up to a limit, since a server may also just be slow. `fence` is asked
right before every write is sent: who does not lead any more sends none.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from paddlecloud.kube.kubeconfig import Access
from paddlecloud.kube.refusals import NOT_LEADING, UNREACHABLE, Refused, refusal

Json = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
FIRST_PATIENCE_S, LONGEST_PATIENCE_S = 5.0, 40.0
_PIECE_BYTES = 2**16
_decode = msgspec.json.Decoder().decode


def collection(group_version: str, plural: str, namespace: str = "") -> str:
    """The path of a collection: `collection("v1", "pods", "default")`."""
    root = f"/api/{group_version}" if "/" not in group_version else f"/apis/{group_version}"
    return f"{root}/namespaces/{quote(namespace)}/{plural}" if namespace else f"{root}/{plural}"


def member(group_version: str, plural: str, namespace: str, name: str, part: str = "") -> str:
    path = f"{collection(group_version, plural, namespace)}/{quote(name)}"
    return f"{path}/{part}" if part else path


class Client:
    def __init__(
        self,
        access: Access,
        user_agent: str = "paddlecloud",
        *,
        patience_s: tuple[float, float] = (FIRST_PATIENCE_S, LONGEST_PATIENCE_S),
        fence: Callable[[], bool] | None = None,
    ) -> None:
        self.access = access
        self._agent = user_agent
        self._patience_s = patience_s
        self._fence = fence
        self._tls = access.tls()
        self._mine = threading.local()
        self.calls = 0  # not exact under threads: a figure for people

    # --- calls -------------------------------------------------------------------------------

    def get(self, path: str, **query: str) -> Json:
        return self.call("GET", path, query=query)

    def create(self, path: str, body: Mapping[str, Any]) -> Json:
        return self.call("POST", path, body)

    def replace(self, path: str, body: Mapping[str, Any]) -> Json:
        return self.call("PUT", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Json:
        return self.call("PATCH", path, body, content_type=MERGE_PATCH)

    def delete(self, path: str, *, uid: str = "", grace_s: int | None = None) -> None:
        """Delete what is there, if it still is the object of that uid."""
        options: Json = {"propagationPolicy": "Background"}
        if uid:
            options["preconditions"] = {"uid": uid}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        self.call("DELETE", path, options)

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> Json:
        target = self._target(path, query)
        payload = None if body is None else msgspec.json.encode(body)
        headers = self._headers(content_type if payload is not None else "")
        status, answer, retry_after = self._exchange(method, target, payload, headers)
        try:
            decoded = _decode(answer) if answer else {}
        except msgspec.DecodeError:  # a proxy in between speaks for itself
            decoded = {"message": answer[:200].decode("utf-8", "replace")}
        if status >= 300:
            raise refusal(status, decoded if isinstance(decoded, dict) else None, retry_after)
        return decoded

    def _exchange(
        self, method: str, target: str, payload: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, str | None]:
        while True:
            connection, is_fresh = self._connection()
            if method != "GET" and self._fence is not None and not self._fence():
                raise Refused(UNREACHABLE, NOT_LEADING, "another operator may lead by now")
            self.calls += 1
            try:
                connection.request(method, target, payload, headers)  # type: ignore[arg-type]
                response = connection.getresponse()
                answer = response.status, response.read(), response.getheader("Retry-After")
            except (OSError, http.client.HTTPException) as error:
                self.forget_connection()
                if isinstance(error, TimeoutError):
                    self._mine.patience_s = min(2 * self._patience(), self._patience_s[1])
                elif not is_fresh:
                    continue
                raise Refused(UNREACHABLE, "Unreachable", _words(error)) from None
            if self._patience() != self._patience_s[0]:
                self._mine.patience_s = self._patience_s[0]
                if connection.sock is not None:
                    connection.sock.settimeout(self._mine.patience_s)
            return answer

    # --- watching ----------------------------------------------------------------------------

    @contextmanager
    def stream(self, path: str, query: Mapping[str, str], silence_s: float) -> Iterator[Any]:
        """The lines of a watch as they come, on a connection of its own.

        Ends with a refusal when nothing at all comes for `silence_s`. The value yielded has
        `lines()` to read (`pieces()` for what is no JSON: a log) and `interrupt()`, by which
        another thread ends it.
        """
        stream = _Stream(self._open(silence_s))
        try:
            accepted = {"Accept": "application/json, */*"}
            stream.start(self._target(path, query), self._headers("") | accepted)
            yield stream
        except (OSError, http.client.HTTPException, ValueError, msgspec.MsgspecError) as error:
            raise Refused(UNREACHABLE, "Unreachable", _words(error)) from None
        finally:
            stream.close()

    # --- connections -------------------------------------------------------------------------

    def _target(self, path: str, query: Mapping[str, str] | None) -> str:
        return f"{self.access.path}{path}" + (f"?{urlencode(query)}" if query else "")

    def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": self._agent}
        if content_type:
            headers["Content-Type"] = content_type
        try:
            return headers | self.access.headers()
        except (OSError, subprocess.SubprocessError, ValueError, LookupError) as error:
            raise Refused(UNREACHABLE, "NoCredentials", f"no credentials: {error}") from None

    def _open(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = self.access.host, self.access.port
        if self._tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)

    def _connection(self) -> tuple[http.client.HTTPConnection, bool]:
        kept: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if kept is not None:
            return kept, False
        made = self._mine.connection = self._open(self._patience())
        return made, True

    def _patience(self) -> float:
        found: float = getattr(self._mine, "patience_s", self._patience_s[0])
        return found

    def forget_connection(self) -> None:
        """Close this thread's connection; the next call opens another."""
        kept = getattr(self._mine, "connection", None)
        if kept is not None:
            kept.close()
            self._mine.connection = None


class _Stream:
    """One watch: an open answer whose lines are events."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self._connection = connection
        self._response: http.client.HTTPResponse | None = None

    def start(self, target: str, headers: Mapping[str, str]) -> None:
        self._connection.request("GET", target, headers=headers)  # type: ignore[arg-type]
        self._response = self._connection.getresponse()
        if self._response.status >= 300:
            text = self._response.read()
            try:
                body = json.loads(text)
            except ValueError:
                body = {"message": text[:200].decode("utf-8", "replace")}
            retry_after = self._response.getheader("Retry-After")
            raise refusal(
                self._response.status, body if isinstance(body, dict) else None, retry_after
            )

    def lines(self) -> Iterator[Json]:
        # Not readline(): of a chunked answer that one looks at every byte several times.
        rest = b""
        for piece in self.pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                event = _decode(line) if line else None
                if isinstance(event, dict):
                    yield event
        if rest:
            event = _decode(rest)
            if isinstance(event, dict):
                yield event

    def pieces(self) -> Iterator[bytes]:
        """The bytes as they come. An answer that was cut short is a refusal, not an end."""
        assert self._response is not None
        while piece := self._response.read1(_PIECE_BYTES):
            yield piece

    def interrupt(self) -> None:
        """End it from another thread: the reader sees the end of the stream."""
        sock = self._connection.sock
        if sock is not None:
            try:
                # The plain one: that of TLS would take the reader's state away under its hands.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        self._connection.close()


def _words(error: Exception) -> str:
    return f"the API server did not answer: {str(error) or type(error).__name__}"
