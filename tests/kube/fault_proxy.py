"""A proxy between an operator and the API server that does what servers and networks do wrong.

`FaultProxy(cluster)` speaks TLS with the API server's own certificate, so `kubeconfig` is that of
the cluster but for the port, and passes everything on. `proxy.rules = [Rule(Answer(500), 0.3)]`
makes trouble from then on, `proxy.heal()` ends it. Both end the watches that are open, so that the
next ones are under the new rules; but what hangs already stays hanging, as it would. Rules are
asked in order and the first that hits counts. `calls` and `faults` count what came and what was
done to it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import select
import socket
import ssl
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from tests.kube.running import Cluster

UPSTREAM_S = 60.0
_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
# The API server writes resource names after these; a name or a part may follow.
_PLURAL_AT = {"api": 2, "apis": 3}


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    query: dict[str, str]

    @property
    def is_watch(self) -> bool:
        return self.query.get("watch") == "1"

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    @property
    def plural(self) -> str:
        """`pods`, `paddlejobs`, ... whatever stands before and behind it."""
        parts = self.path.strip("/").split("/")
        rest = parts[_PLURAL_AT.get(parts[0], 0) :]
        if rest[:1] == ["namespaces"] and len(rest) > 2:
            rest = rest[2:]
        return rest[0] if rest else ""

    @property
    def word(self) -> str:
        """What is counted: `POST pods`, `WATCH paddlejobs`, `PATCH paddlejobs/status`."""
        verb = "WATCH" if self.is_watch else self.method
        part = "/status" if self.path.endswith("/status") else ""
        return f"{verb} {self.plural}{part}"


# --- what can go wrong ---------------------------------------------------------------------------


class Fault:
    """Nothing goes wrong. What differs in a fault is one of the two."""

    def call(self, one: Exchange) -> None:
        one.pass_on(self)

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        yield from lines


@dataclass(frozen=True)
class Answer(Fault):
    """Says no; nothing was done."""

    status: int
    retry_after_s: int | None = None

    def call(self, one: Exchange) -> None:
        reasons = {429: "TooManyRequests", 410: "Expired", 503: "ServiceUnavailable"}
        body = {"kind": "Status", "code": self.status, "reason": reasons.get(self.status, "Error")}
        headers = {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}
        one.reply(self.status, headers, json.dumps(body).encode())


class Silence(Fault):
    """Takes the call and never answers; nothing was done."""

    def call(self, one: Exchange) -> None:
        one.hold()


class Reset(Fault):
    """Hangs up; nothing was done."""

    def call(self, one: Exchange) -> None:
        one.reset()


class LostAnswer(Fault):
    """Everything was done, and nobody hears of it."""

    def call(self, one: Exchange) -> None:
        one.fetch().read()
        one.reset()


@dataclass(frozen=True)
class Late(Fault):
    """Passes on what came after a while, whether the caller still waits or not."""

    delay_s: float

    def call(self, one: Exchange) -> None:
        one.proxy.closed.wait(self.delay_s)
        one.pass_on(self)


@dataclass(frozen=True)
class GoneInside(Fault):
    """After some events the history is forgotten, inside the stream."""

    after: int = 1

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        for _, line in zip(range(self.after), lines, strict=False):
            yield line
        status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
        yield json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"


class Empty(Fault):
    """A stream that ends before it began."""

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        yield from ()


@dataclass(frozen=True)
class Stall(Fault):
    """The connection stays open and nothing more comes."""

    after: int = 0

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        for _, line in zip(range(self.after), lines, strict=False):
            yield line
        one.hold()


@dataclass(frozen=True)
class CutLine(Fault):
    """Hangs up in the middle of a line."""

    after: int = 1

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        for number, line in enumerate(lines):
            if number >= self.after:
                yield line[: len(line) // 2]
                one.reset()
            yield line


class Shuffle(Fault):
    """Events of different objects change places; any event comes again, later."""

    def lines(self, lines: Iterator[bytes], one: Exchange) -> Iterator[bytes]:
        seen: list[bytes] = []
        for line in lines:
            seen.append(line)
            if one.proxy.throw() < 0.5 and len(seen) > 1:
                # What is told first is newer; what it overtook is told again after it.
                yield from (line, seen[-2])
            else:
                yield line
            if one.proxy.throw() < 0.3:
                yield seen[int(one.proxy.throw() * len(seen))]


@dataclass(frozen=True)
class Rule:
    fault: Fault
    share: float = 1.0  # of the calls it is for
    applies: Callable[[Call], bool] = lambda call: not call.is_watch
    numbers: frozenset[int] = frozenset()  # only the nth of these calls, from 1


def watches_of(plural: str = "") -> Callable[[Call], bool]:
    return lambda call: call.is_watch and plural in ("", call.plural)


# --- the proxy -----------------------------------------------------------------------------------


class _HungUp(Exception):
    """The connection to the caller is closed."""


class FaultProxy:
    def __init__(self, cluster: Cluster, seed: int = 7) -> None:
        config = json.loads(cluster.kubeconfig.read_text())
        address = urlsplit(config["clusters"][0]["cluster"]["server"])
        certificates = cluster.state / "certificates"
        self._authority = str(certificates / "apiserver.crt")
        self.upstream = (str(address.hostname), int(address.port or 443))
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._dice = random.Random(seed)
        self._rules: tuple[Rule, ...] = ()
        self._hits: Counter[int] = Counter()
        self.watches: set[http.client.HTTPSConnection] = set()  # to the API server, open
        self.calls: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self._authority, str(certificates / "apiserver.key"))
        self.tls_upstream = ssl.create_default_context(cafile=self._authority)
        self._server = _Server(("127.0.0.1", 0), type("Exchange", (Exchange,), {"proxy": self}))
        self._server.socket = tls.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        port = int(self._server.server_address[1])
        config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        self._config = config
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def write_kubeconfig(self, path: Path) -> Path:
        path.write_text(json.dumps(self._config))
        return path

    @property
    def rules(self) -> Sequence[Rule]:
        return self._rules

    @rules.setter
    def rules(self, rules: Sequence[Rule]) -> None:
        with self._lock:
            self._rules = tuple(rules)
            self._hits.clear()
            watches = list(self.watches)
        for one in watches:
            if one.sock is not None:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(one.sock, socket.SHUT_RDWR)

    def heal(self) -> None:
        self.rules = ()

    def close(self) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def throw(self) -> float:
        with self._lock:
            return self._dice.random()

    def fault_for(self, call: Call) -> Fault:
        with self._lock:
            self.calls[call.word] += 1
            for place, rule in enumerate(self._rules):
                if not rule.applies(call):
                    continue
                self._hits[place] += 1
                if rule.numbers and self._hits[place] not in rule.numbers:
                    continue
                if self._dice.random() < rule.share:
                    self.faults[type(rule.fault).__name__] += 1
                    return rule.fault
        return Fault()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """An operator that is killed hangs up in the middle; that is no news."""


class Exchange(BaseHTTPRequestHandler):
    """One connection of the operator, and one to the API server for it."""

    protocol_version = "HTTP/1.1"
    proxy: ClassVar[FaultProxy]
    _upstream: http.client.HTTPSConnection | None = None

    def _any(self) -> None:
        target = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(target.query).items()}
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with contextlib.suppress(_HungUp):
            self.proxy.fault_for(Call(self.command, target.path, query)).call(self)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _any  # noqa: N815

    # --- what faults are made of -----------------------------------------------------------------

    def fetch(self) -> http.client.HTTPResponse:
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
        for last in (False, True):
            is_kept = self._upstream is not None
            if self._upstream is None:
                self._upstream = http.client.HTTPSConnection(
                    *self.proxy.upstream, timeout=UPSTREAM_S, context=self.proxy.tls_upstream
                )
            try:
                self._upstream.request(self.command, self.path, self.body, headers)
                return self._upstream.getresponse()
            except (OSError, http.client.HTTPException):
                self._upstream.close()
                self._upstream = None
                if last or not is_kept:
                    break
        self.reset()
        raise AssertionError("not reached")

    def pass_on(self, fault: Fault) -> None:
        answer = self.fetch()
        headers = {n: v for n, v in answer.getheaders() if n.lower() not in _HOP}
        if not answer.chunked or "watch=1" not in self.path:
            return self.reply(answer.status, headers, answer.read())
        self.send_response(answer.status)
        self.send_header("Transfer-Encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        upstream = self._upstream
        assert upstream is not None
        self.proxy.watches.add(upstream)
        try:
            for line in fault.lines(_lines(answer), self):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            raise _HungUp from None
        finally:
            self.close_connection = True
            self.proxy.watches.discard(upstream)
            upstream.close()

    def reply(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def hold(self) -> None:
        """Until the caller leaves."""
        while not self.proxy.closed.is_set():
            if select.select([self.connection], [], [], 0.2)[0]:
                break
        self.reset()

    def reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        os.close(self.connection.detach())
        raise _HungUp

    def finish(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().finish()
        if self._upstream is not None:
            self._upstream.close()

    def log_message(self, format: str, *args: object) -> None:
        """The operator says what went wrong."""


def _lines(answer: http.client.HTTPResponse) -> Iterator[bytes]:
    with contextlib.suppress(OSError, http.client.HTTPException):
        while line := answer.readline():
            yield line
