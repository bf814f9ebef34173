"""`paddle-auth-v1`: against a second implementation, written step by step from the reference."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.wire.signing import (
    BODY_DIGEST,
    CLOCK_SKEW_S,
    MAX_EXPIRES_S,
    NONCE,
    STREAMED,
    AccessKey,
    BadSignature,
    Proven,
    Signed,
    check_body,
    complete_headers,
    read_claim,
    sign,
    verify,
)

KEY = AccessKey("a1b2c3", "s3cr3t")
NOW_S = 1_600_000_000
HEADERS = {
    "Content-Type": "application/json",
    "Host": "paddlecloud.example.org:80",
    "Content-Length": "2",
    "request-id": "5f6e",
    "expires": "1800",
    "User-Agent": "paddle-cli/1.0",
}
REQUEST = Signed("post", "/v1/job", [("type", "normal"), ("page", "1")], HEADERS)

# printf 'GET\n/v1/job\n\n' | openssl dgst -sha256 -hmac $(
#     printf paddle-auth-v1/ak/1/2 | openssl dgst -sha256 -hmac sk | sed 's/.* //')
KNOWN = "d5739bcb9fe283158d28762177ee0bce22a50c1199595a692cb182169057071e"


# --- the second implementation: nothing of ours, not even hmac or quote ------------------------


def xor(data: bytes, byte: int) -> bytes:
    return bytes(each ^ byte for each in data)


def hmac_sha256_hex(key: bytes, data: bytes) -> str:
    block = key if len(key) <= 64 else hashlib.sha256(key).digest()
    block = block.ljust(64, b"\0")
    inner = hashlib.sha256(xor(block, 0x36) + data).digest()
    return hashlib.sha256(xor(block, 0x5C) + inner).hexdigest()


def percent(text: str, slash_stays: bool) -> str:
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.~-_"
    out = ""
    for byte in text.encode("utf-8"):
        is_plain = byte in plain or (slash_stays and byte == 0x2F)
        out += chr(byte) if is_plain else "%" + format(byte, "02X")
    return out


def step_by_step(
    ak: str,
    sk: str,
    method: str,
    path: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    seconds: int,
    expires: int,
) -> str:
    prefix = f"paddle-auth-v1/{ak}/{seconds}/{expires}"
    signing_key = hmac_sha256_hex(sk.encode(), prefix.encode())
    uri = percent(path, slash_stays=True)
    pairs = [percent(k, False) + "=" + percent(v, False) for k, v in query]
    pairs.sort()
    lines = []
    for name, value in headers.items():
        name = name.lower().strip()
        signed = name in ("host", "content-md5", "content-length", "content-type")
        if signed or name.startswith("x-paddle-"):
            lines.append(percent(name, False) + ":" + percent(value.strip(), False))
    lines.sort()
    to_sign = "\n".join([method, uri, "&".join(pairs), "\n".join(lines)])
    signature = hmac_sha256_hex(signing_key.encode(), to_sign.encode())
    return f"{prefix}//{signature}"


def test_the_second_implementation_knows_a_published_vector() -> None:
    # RFC 4231, test case 2.
    assert hmac_sha256_hex(b"Jefe", b"what do ya want for nothing?") == (
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    )


def test_signs_as_the_steps_say() -> None:
    bare_host = {**HEADERS, "Host": "paddlecloud.example.org"}
    assert sign(REQUEST, KEY, now_s=NOW_S) == step_by_step(
        "a1b2c3", "s3cr3t", "POST", "/v1/job", list(REQUEST.query), bare_host, NOW_S, 1800
    )


def test_a_known_request_has_a_known_signature() -> None:
    header = sign(Signed("GET", "/v1/job"), AccessKey("ak", "sk"), now_s=1, expires_s=2)
    assert header == f"paddle-auth-v1/ak/1/2//{KNOWN}"


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_header_text = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


@given(
    st.text("GETPOSDL", min_size=1, max_size=6),
    _text,
    st.lists(st.tuples(_text, _text), max_size=4),
    st.dictionaries(
        st.sampled_from(["host", "Content-MD5", "content-type", "X-Paddle-A", "x-other"]),
        _header_text.filter(lambda text: ":" not in text),
    ),
    st.integers(0, 10**10),
    st.text("abc019", min_size=1, max_size=90),
)
def test_signs_any_request_as_the_steps_say(
    method: str,
    path: str,
    query: list[tuple[str, str]],
    headers: dict[str, str],
    seconds: int,
    sk: str,
) -> None:
    expected = step_by_step("ak", sk, method, path, query, headers, seconds, 60)
    request = Signed(method, path, query, headers)
    assert sign(request, AccessKey("ak", sk), now_s=seconds, expires_s=60) == expected


@pytest.mark.parametrize(
    ("host", "bare"),
    [("h", "h"), ("h:80", "h"), ("[::1]:80", "[::1]"), ("[::1]", "[::1]"), (" h:80 ", "h")],
)
def test_signs_the_host_without_its_port(host: str, bare: str) -> None:
    one, another = (replace(REQUEST, headers={"host": text}) for text in (host, bare))
    assert sign(one, KEY, now_s=NOW_S) == sign(another, KEY, now_s=NOW_S)


# --- checking --------------------------------------------------------------------------------


def proven(
    request: Signed = REQUEST, *, later_s: int = 0, header: str = "", sk: str = KEY.sk
) -> Proven:
    claim = read_claim(header or sign(request, KEY, now_s=NOW_S))
    return verify(claim, request, sk, now_s=NOW_S + later_s)


def refused(*args: Any, **options: Any) -> str:
    with pytest.raises(BadSignature) as caught:
        proven(*args, **options)
    return caught.value.reason


def test_believes_what_it_signed() -> None:
    found = proven()
    assert (found.ak, found.is_complete, found.good_until_s) == ("a1b2c3", False, NOW_S + 1800)


def naming(names: str, request: Signed = REQUEST) -> str:
    """A header that lists what it signs; the middle part is empty in practice."""
    listed = [name for name in names.split(";") if name]
    kept = {name: value for name, value in (request.headers or {}).items() if name in listed}
    prefix = f"paddle-auth-v1/{KEY.ak}/{NOW_S}/1800"
    lines = sorted(f"{percent(k, False)}:{percent(v, False)}" for k, v in kept.items())
    query = "&".join(sorted(f"{k}={v}" for k, v in request.query))
    text = "\n".join([request.method.upper(), request.path, query, "\n".join(lines)])
    signing_key = hmac_sha256_hex(KEY.sk.encode(), prefix.encode())
    return f"{prefix}/{names}/{hmac_sha256_hex(signing_key.encode(), text.encode())}"


NAMED = replace(
    REQUEST, headers={"host": "h", "content-type": "a/b", "request-id": "5f6e", NONCE: "n"}
)


@pytest.mark.parametrize("names", ["host", "host;content-type", "host;request-id;x-paddle-nonce"])
def test_believes_a_header_that_names_what_is_signed(names: str) -> None:
    found = proven(NAMED, header=naming(names, NAMED))
    assert found.ak == KEY.ak
    # A header of ours that is not named is as if it were not there.
    assert found.nonce == ("n" if "nonce" in names else "")


@pytest.mark.parametrize("names", ["content-type", "host;x-paddle-a"])
def test_refuses_names_without_the_host_or_the_header(names: str) -> None:
    assert refused(NAMED, header=naming(names, NAMED)) == "unsigned_header"


def test_a_named_header_cannot_be_changed() -> None:
    header = naming("host;request-id", NAMED)
    changed = replace(NAMED, headers={**(NAMED.headers or {}), "request-id": "other"})
    assert refused(changed, header=header) == "signature"


@pytest.mark.parametrize(
    "change",
    [
        {"method": "PUT"},
        {"path": "/v1/jobs"},
        {"query": [("type", "group"), ("page", "1")]},
        {"query": []},
        {"headers": {**HEADERS, "Host": "other"}},
        {"headers": {**HEADERS, "Content-Length": "3"}},
        {"headers": {**HEADERS, "Content-Type": "text/plain"}},
        {"headers": {**HEADERS, "content-md5": "x"}},
        {"headers": {**HEADERS, "X-Paddle-Extra": "1"}},  # added on the way: not ignored
    ],
)
def test_refuses_a_request_changed_on_the_way(change: dict[str, Any]) -> None:
    header = sign(REQUEST, KEY, now_s=NOW_S)
    assert refused(replace(REQUEST, **change), header=header) == "signature"


def test_headers_that_are_not_signed_may_change() -> None:
    header = sign(REQUEST, KEY, now_s=NOW_S)
    changed = replace(REQUEST, headers={**HEADERS, "User-Agent": "x", "Via": "proxy"})
    assert proven(changed, header=header).ak == KEY.ak


def test_refuses_another_key() -> None:
    assert refused(sk="other") == "signature"


@pytest.mark.parametrize(
    ("later_s", "reason"),
    [(0, ""), (1800, ""), (1801, "expired"), (-CLOCK_SKEW_S, ""), (-CLOCK_SKEW_S - 1, "clock")],
)
def test_is_good_for_its_time_only(later_s: int, reason: str) -> None:
    if reason:
        assert refused(later_s=later_s) == reason
    else:
        assert proven(later_s=later_s).ak == KEY.ak


@pytest.mark.parametrize("expires_s", [0, MAX_EXPIRES_S + 1, 10**11])
def test_does_not_believe_in_eternity(expires_s: int) -> None:
    assert refused(header=sign(REQUEST, KEY, now_s=NOW_S, expires_s=expires_s)) == "expires"


@pytest.mark.parametrize(
    "header",
    [
        "",
        "Token abc",
        "paddle-auth-v1",
        f"paddle-auth-v2/ak/1/2//{'0' * 64}",
        f"paddle-auth-v1/ak/1/2/{'0' * 64}",
        f"paddle-auth-v1/ak/1/2///{'0' * 64}",
        f"paddle-auth-v1//1/2//{'0' * 64}",
        f"paddle-auth-v1/a-k/1/2//{'0' * 64}",
        f"paddle-auth-v1/ak/-1/2//{'0' * 64}",
        f"paddle-auth-v1/ak/01/2//{'0' * 64}",
        f"paddle-auth-v1/ak/1/x//{'0' * 64}",
        f"paddle-auth-v1/ak/1/2//{'G' * 64}",
        f"paddle-auth-v1/ak/1/2//{'0' * 63}",
        f"paddle-auth-v1/ak/1/2/{'h' * 5000}/{'0' * 64}",
        f"paddle-auth-v1/ak/{'9' * 5000}/2//{'0' * 64}",
    ],
)
def test_refuses_a_header_of_another_shape(header: str) -> None:
    with pytest.raises(BadSignature) as caught:
        read_claim(header)
    assert caught.value.reason == "malformed"


@given(st.text())
def test_any_header_is_read_or_refused(header: str) -> None:
    try:
        read_claim(header)
    except BadSignature:
        pass


# --- our extension ---------------------------------------------------------------------------


def complete(body: bytes = b"{}", nonce: str = "n1") -> Signed:
    return replace(REQUEST, headers={**HEADERS, **complete_headers(body, nonce)})


def test_a_complete_signature_covers_body_and_nonce() -> None:
    found = proven(complete())
    assert found.is_complete
    assert found.nonce == "n1"
    check_body(found, b"{}")
    with pytest.raises(BadSignature) as caught:
        check_body(found, b"[]")
    assert caught.value.reason == "body"


def test_a_streamed_body_is_for_those_who_compare_it_otherwise() -> None:
    found = proven(replace(REQUEST, headers={**HEADERS, NONCE: "n1", BODY_DIGEST: STREAMED}))
    assert (found.is_complete, found.body_sha256) == (True, STREAMED)
    with pytest.raises(BadSignature) as caught:
        check_body(found, b"")
    assert caught.value.reason == "body"


@pytest.mark.parametrize("name", [NONCE, BODY_DIGEST])
def test_neither_can_be_changed_or_taken_away(name: str) -> None:
    request = complete()
    header = sign(request, KEY, now_s=NOW_S)
    assert request.headers is not None
    without = {key: value for key, value in request.headers.items() if key != name}
    assert refused(replace(request, headers=without), header=header) == "signature"
    other = {**without, name: "0" * 64}
    assert refused(replace(request, headers=other), header=header) == "signature"


def test_an_old_signature_says_nothing_about_the_body() -> None:
    check_body(proven(), b"anything")


@pytest.mark.parametrize(
    "headers", [{NONCE: "n" * 129, BODY_DIGEST: "0" * 64}, {NONCE: "n", BODY_DIGEST: "x"}]
)
def test_refuses_an_odd_extension(headers: dict[str, str]) -> None:
    assert refused(replace(REQUEST, headers={**HEADERS, **headers})) == "malformed"


def test_refuses_a_header_that_is_there_twice() -> None:
    with pytest.raises(BadSignature) as caught:
        sign(replace(REQUEST, headers={"Host": "a", "host": "b"}), KEY, now_s=NOW_S)
    assert caught.value.reason == "header_twice"


def test_does_not_sign_with_a_key_that_breaks_the_header() -> None:
    with pytest.raises(ValueError):
        sign(REQUEST, AccessKey("a/b", "s"), now_s=NOW_S)


def test_never_shows_a_secret() -> None:
    assert "s3cr3t" not in repr(KEY)
