"""Requests signed with an access key (`wire.signing`): who sent them, and each one only once.

A complete signature covers the body's digest and a nonce; the nonce is remembered as a row until
the signature expires, so a copy is refused, also after a restart. A legacy one covers neither: it
is taken on the paths of the job service alone, and a change made with it needs a `request-id`,
under which the same signature is given the first answer again. An unknown key and a wrong
signature are refused with the same words after the same work, and slowed down like passwords.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from urllib.parse import parse_qsl

from django.db import IntegrityError

from paddlecloud import clock
from paddlecloud.core.errors import InvalidInput, NotAllowed, NotLoggedIn
from paddlecloud.server import authentication
from paddlecloud.server.accounts.models import AccessKey, SeenNonce
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import writing
from paddlecloud.server.exchange import Request
from paddlecloud.server.process import here
from paddlecloud.server.services import access_keys, logins
from paddlecloud.server.services.access_keys import Known
from paddlecloud.wire import signing
from paddlecloud.wire.routes import IDEMPOTENCY_KEY, JOB_SERVICE, PFS_UPLOAD
from paddlecloud.wire.signing import BadSignature, Claim, Proven, Signed

log = logging.getLogger(__name__)

REQUEST_ID = "request-id"
# Bytes that become a file only when a later, signed request names their digest.
_STREAMS = (PFS_UPLOAD,)
_MAX_REQUEST_ID = 128
_MAX_PAIRS = 200
_SWEEP_EVERY = 200
_REFUSED = "the access key is not known, or the signature does not fit"
_HINT = "check --ak and --sk, or paddlecloud config --ak AK --sk SK"
_TOO_MANY = "wrong signatures"
_remembered = 0


def principal_of(request: Request) -> Principal:
    """The caller, or NotLoggedIn. Leaves in the request what is to be checked and kept by it."""
    if request.principal is not None:  # a held request is asked again; its nonce is spent
        known = access_keys.look_up(request.principal.ak)
        if known is None:
            raise NotLoggedIn(_REFUSED, hint=_HINT)
        return _principal(request.principal.ak, known)
    try:
        claim = signing.read_claim(request.headers["authorization"])
        signed = _signed(request, claim)
    except BadSignature as error:
        raise NotLoggedIn(str(error), hint=_HINT) from None
    known, proven = _prove(request, claim, signed)
    principal = _principal(claim.ak, known)
    # What is not signed is as if it were not there.
    seen = {
        name: value
        for name, value in request.headers.items()
        if signing.is_covered(name, claim.signed_headers)
    }
    if proven.is_complete:
        _take_complete(request, proven, seen)
    else:
        _take_legacy(request, proven, seen)
    _note_use(claim.ak, known)
    return principal


def _signed(request: Request, claim: Claim) -> Signed:
    for name in request.repeated:
        if signing.is_covered(name, claim.signed_headers):
            raise BadSignature("header_twice", f"the header {name} is there twice")
    try:
        pairs = parse_qsl(
            request.query.decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_PAIRS
        )
    except ValueError:
        raise BadSignature("malformed", f"more than {_MAX_PAIRS} query parameters") from None
    return Signed(request.method, request.path, pairs, request.headers)


def _prove(request: Request, claim: Claim, signed: Signed) -> tuple[Known, Proven]:
    of_key, of_address = _subjects(claim.ak, request.address)
    logins.refuse_if_too_soon(of_key, _TOO_MANY)
    known = access_keys.look_up(claim.ak)
    # A key without a readable secret is refused like one that is not there.
    for secret in (known.secrets if known else ()) or (access_keys.nobodys_secret(),):
        try:
            proven = signing.verify(claim, signed, secret, now_s=int(clock.now()))
        except BadSignature as error:
            if error.reason != "signature":  # said only to who has the secret
                raise NotLoggedIn(str(error), hint=_clock_hint(error)) from None
            continue
        if known is not None and known.secrets:
            logins.clear(next(iter(of_key)))
            return known, proven
    # Last: somebody's wrong signatures must not keep others out who call from the same address.
    logins.refuse_if_too_soon(of_address, _TOO_MANY)
    logins.count_failure(of_key | of_address)
    raise NotLoggedIn(_REFUSED, hint=_HINT)


def _clock_hint(error: BadSignature) -> str:
    return "compare the clocks" if error.reason in ("clock", "expired") else ""


def _subjects(ak: str, address: str) -> tuple[dict[str, int], dict[str, int]]:
    """What is counted, and how many failures each has free. A key is counted per address: nobody
    can lock its owner out from elsewhere."""
    rules = here().configuration.logins
    key = hashlib.sha256(f"{ak} {address}".encode()).hexdigest()
    return {f"key:{key}": rules.free_tries}, {f"address:{address[:64]}": rules.address_free_tries}


def _principal(ak: str, known: Known) -> Principal:
    """Said only to who has signed: what has become of the key."""
    if known.revoked_at is not None:
        raise NotLoggedIn(f"the access key {ak} was revoked", hint=_HINT)
    if not known.is_active:
        raise NotLoggedIn(f"the account {known.account} is disabled", hint="ask the administrator")
    is_admin = known.is_staff and known.scope == AccessKey.ALL
    return Principal(known.account_id, known.account, is_admin, ak=ak, scope=known.scope)


# --- once only -------------------------------------------------------------------------------


def _take_complete(request: Request, proven: Proven, seen: dict[str, str]) -> None:
    is_streamed = proven.body_sha256 == signing.STREAMED and request.route.path in _STREAMS
    if proven.body_sha256 == signing.STREAMED and not is_streamed:
        raise NotLoggedIn("the body of this request must be signed")
    request.body_sha256 = "" if is_streamed else proven.body_sha256
    _spend(proven)
    # Only what is signed may say that a request was made before.
    headers = dict(request.headers)
    headers[IDEMPOTENCY_KEY.lower()] = seen.get(signing.REPEATED_KEY, "")
    request.headers = headers


def _spend(proven: Proven) -> None:
    global _remembered
    digest = hashlib.sha256(f"{proven.ak} {proven.nonce}".encode()).hexdigest()
    # A copy of a signature dated ahead is good for longer than one dated now.
    row = SeenNonce(digest=digest, good_until=proven.good_until_s + 1)
    try:
        with writing(is_durable=True):
            row.save(force_insert=True)
            _remembered += 1
            if _remembered % _SWEEP_EVERY == 1:
                SeenNonce.objects.filter(good_until__lt=clock.now()).delete()
    except IntegrityError:
        raise NotLoggedIn(
            "this request was made before: its nonce is good once",
            hint="sign it again, with a new nonce",
        ) from None


def _take_legacy(request: Request, proven: Proven, seen: dict[str, str]) -> None:
    if not request.path.startswith(JOB_SERVICE):
        raise NotLoggedIn(
            f"outside {JOB_SERVICE} a signature must cover the body and a nonce",
            hint=f"sign the headers {signing.NONCE} and {signing.BODY_DIGEST} as well",
        )
    if not here().configuration.signatures.takes_legacy:
        raise NotAllowed(
            "this platform takes no legacy signatures, which cover neither the body nor a nonce;"
            " its administrator has switched them off",
            hint="use `paddlecloud job` of this release, or sign the headers"
            f" {signing.NONCE} and {signing.BODY_DIGEST} as well",
        )
    if request.method in ("GET", "HEAD"):
        return
    request.body_md5 = seen.get("content-md5", "").strip()
    request_id = request.headers.get(REQUEST_ID, "").strip()
    if not 0 < len(request_id) <= _MAX_REQUEST_ID or not request_id.isprintable():
        raise InvalidInput(
            f"is needed: 1 to {_MAX_REQUEST_ID} printable characters, new for each request",
            field=REQUEST_ID,
        )
    headers = dict(request.headers)
    headers[IDEMPOTENCY_KEY.lower()] = f"{proven.signature} {request_id}"
    request.headers = headers
    request.repeat_word = REQUEST_ID


def check_body(request: Request) -> None:
    """Refuse a body other than the signed one. Who signs the header `content-md5` of a legacy
    signature has signed the body after all."""
    if request.body_sha256:
        found = hashlib.sha256(request.body).hexdigest()
        if not hmac.compare_digest(found.encode(), request.body_sha256.encode()):
            raise NotLoggedIn("the body is not the one that was signed")
    if request.body_md5:
        md5 = hashlib.md5(request.body, usedforsecurity=False).digest()
        if request.body_md5 not in (base64.b64encode(md5).decode(), md5.hex()):
            raise NotLoggedIn("the body is not the one of the header content-md5")


def _note_use(ak: str, known: Known) -> None:
    now = clock.now()
    if (known.last_used_at or 0.0) >= now - authentication.USE_NOTED_EVERY_S:
        return
    try:
        with writing(is_durable=True):
            AccessKey.objects.filter(pk=ak).update(last_used_at=now)
    except Exception as error:  # a full disk must not keep anybody out
        log.warning("the use of an access key was not noted: %s", error)
