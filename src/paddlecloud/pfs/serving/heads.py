"""The head of a request: from bytes to a value, or a refusal.

llhttp (through httptools) parses; this module adds what a server in front of files must insist on:
one Host, at most one Authorization, one length, and never a length together with a transfer
encoding, so that no two parties can disagree where a request ends. Pure; called by the workers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from paddlecloud.core.errors import InvalidInput, PaddleCloudError

MAX_HEAD_BYTES = 64 << 10
_MAX_HEADERS = 100
_MAX_PARAMETERS = 1000
_ONLY_ONCE = frozenset(
    ("host", "authorization", "content-length", "transfer-encoding", "pfs-relay", "pfs-caller")
)


class HeadTooLarge(PaddleCloudError):
    code = "too_large"
    http_status = 431


class LengthRequired(PaddleCloudError):
    code = "invalid_input"
    http_status = 411
    exit_code = 2


class NotImplementedHere(PaddleCloudError):
    code = "invalid_input"
    http_status = 501
    exit_code = 2


@dataclass(slots=True)
class Head:
    method: str
    raw_path: str  # as sent; segments are decoded by the router, each once
    query: dict[str, list[str]]
    headers: dict[str, str]
    length: int | None  # of the body; None when it is chunked
    keeps_alive: bool
    expects_continue: bool
    is_modern: bool = True  # HTTP/1.1: may be answered in chunks
    segments: dict[str, str] = field(default_factory=dict)


class _Collector:
    def __init__(self) -> None:
        self.url = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False

    def on_url(self, url: bytes) -> None:
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        self.is_complete = True


def parse_head(raw: bytes) -> Head:
    """`raw` ends with the empty line. Raises InvalidInput."""
    collector = _Collector()
    parser = HttpRequestParser(collector)
    try:
        # Up to the last byte it must not be complete: our idea of the end must be the parser's.
        parser.feed_data(raw[:-1])
        if collector.is_complete:
            raise bad("the head of the request ends early")
        _feed_last(parser, raw[-1:])
        method = parser.get_method().decode("ascii")
        version = parser.get_http_version()
    except HttpParserError as error:
        raise bad(f"this is not HTTP: {error}") from None
    if not collector.is_complete:
        raise bad("this is not HTTP: the head is not complete")
    headers = _headers(collector.headers)
    if version == "1.1" and "host" not in headers:
        raise bad("the Host header is missing")
    if version not in ("1.0", "1.1"):
        raise bad("the versions of HTTP understood are 1.0 and 1.1")
    path, _, query = collector.url.decode("latin-1").partition("?")
    if not path.startswith("/"):
        raise bad("the target of a request must start with /")
    return Head(
        method=method,
        raw_path=path,
        query=_query(query),
        headers=headers,
        length=_length(headers),
        keeps_alive=version == "1.1" and not _is_last(headers),
        expects_continue=headers.get("expect", "").lower() == "100-continue",
        is_modern=version == "1.1",
    )


def _feed_last(parser: HttpRequestParser, byte: bytes) -> None:
    try:
        parser.feed_data(byte)
    except HttpParserUpgrade:
        pass  # an offer (`curl --http2` makes one), which one need not take


def _is_last(headers: dict[str, str]) -> bool:
    """Whether the client closes after this request."""
    words = headers.get("connection", "").lower().split(",")
    return "close" in (word.strip() for word in words)


def _headers(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    if len(pairs) > _MAX_HEADERS:
        raise HeadTooLarge(f"a request may have {_MAX_HEADERS} headers")
    headers: dict[str, str] = {}
    for raw_name, raw_value in pairs:
        name = raw_name.decode("latin-1").lower()
        value = raw_value.decode("latin-1").strip(" \t")
        if name in headers:
            if name in _ONLY_ONCE:
                raise bad(f"the header {name} is there twice")
            value = f"{headers[name]}, {value}"
        headers[name] = value
    return headers


def _length(headers: dict[str, str]) -> int | None:
    encoding = headers.get("transfer-encoding")
    length = headers.get("content-length")
    if encoding is not None:
        if length is not None:
            raise bad("a body cannot have both a length and a transfer encoding")
        if encoding.lower() != "chunked":
            raise NotImplementedHere("the only transfer encoding understood is chunked")
        return None
    if length is None:
        return 0
    if not (length.isascii() and length.isdigit() and len(length) <= 18):
        raise bad("Content-Length must be a number")
    return int(length)


def _query(text: str) -> dict[str, list[str]]:
    if not text:
        return {}
    try:
        pairs = parse_qsl(
            text, keep_blank_values=True, errors="strict", max_num_fields=_MAX_PARAMETERS
        )
    except UnicodeDecodeError:
        raise InvalidInput("the parameters must be UTF-8") from None
    except ValueError:
        raise InvalidInput(f"a call may have {_MAX_PARAMETERS} parameters") from None
    query: dict[str, list[str]] = {}
    for name, value in pairs:
        query.setdefault(name, []).append(value)
    return query


def decode_segment(raw: str) -> str:
    """One part of the path, percent-decoded once."""
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput("the path must be UTF-8") from None


def bad(message: str) -> InvalidInput:
    return InvalidInput(message)
