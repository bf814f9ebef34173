"""Ending and changing what accounts log in with. Everybody their own, administrators anyone's."""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput, NotAllowed, NotLoggedIn
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import access_keys, credentials, idempotency, logins


def _body(request: Request, *names: str) -> dict[str, Any]:
    body = request.json(optional=True)
    unknown = sorted(set(body) - set(names))
    if unknown:
        raise InvalidInput(faults=[Fault(key, "unknown key") for key in unknown])
    return body


def _presented(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() in ("token", "bearer") else ""


def disable(request: Request) -> Answer:
    is_killing = _body(request, "kill_jobs").get("kill_jobs", False)
    if not isinstance(is_killing, bool):
        raise InvalidInput("must be true or false", field="kill_jobs")
    name = request.segments["name"]
    return json_answer(credentials.disable(name, by=request.caller.name, is_killing=is_killing))


def enable(request: Request) -> Answer:
    _body(request)
    return json_answer(credentials.enable(request.segments["name"]))


def set_password(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    body = _body(request, "password", "old_password")
    password = body.get("password")
    if not isinstance(password, str) or not password:
        raise InvalidInput(faults=[Fault("password", "is needed, as a text")])
    if not request.caller.is_admin:
        _check_present_password(request, account.username, body.get("old_password"))
    credentials.set_password(account, password)
    return Answer(204)


def _check_present_password(request: Request, name: str, password: object) -> None:
    """A token that was lost must not be good for a password of somebody else's choosing."""
    if not isinstance(password, str) or not password:
        raise InvalidInput(
            "is needed: the present password",
            field="old_password",
            hint="an administrator can set one without it",
        )
    try:
        logins.check_password(name, password, request.address)
    except NotLoggedIn:
        raise NotAllowed("this is not the present password", field="old_password") from None


def list_tokens(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    return json_answer({"items": credentials.list_tokens(account, _presented(request))})


def list_certs(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    return json_answer({"items": credentials.list_certificates(account)})


def make_cert(request: Request) -> Answer:
    """Every call makes a new pair: a key is given once and not kept."""
    account = credentials.managed_by(request.caller, request.segments["name"])
    return json_answer(credentials.make_certificate(account), 201)


def list_keys(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    return json_answer({"items": access_keys.listed(account)})


def make_key(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    body = _body(request, "name", "scope", "ak", "sk")
    faults = [Fault(name, "must be a text") for name in body if not isinstance(body[name], str)]
    if ("ak" in body) != ("sk" in body):
        faults.append(Fault("ak", "ak and sk come together, or not at all"))
    if faults:
        raise InvalidInput(faults=faults)
    made = access_keys.make(
        account,
        name=body.get("name", ""),
        scope=body.get("scope", "all"),
        key=idempotency.key_of(request),
        brought=(body.get("ak", ""), body.get("sk", "")) if "ak" in body else None,
    )
    return json_answer(made, 201)


def rotate_key(request: Request) -> Answer:
    account = credentials.managed_by(request.caller, request.segments["name"])
    body = _body(request, "ak", "overlap_s")
    ak, overlap_s = body.get("ak"), body.get("overlap_s", 0)
    faults = []
    if not isinstance(ak, str) or not ak:
        faults.append(Fault("ak", "is needed: the access key whose secret is replaced"))
    is_number = isinstance(overlap_s, int | float) and not isinstance(overlap_s, bool)
    if not is_number or not 0 <= overlap_s <= access_keys.MAX_OVERLAP_S:
        most = access_keys.MAX_OVERLAP_S
        faults.append(Fault("overlap_s", f"must be a number of seconds from 0 to {most}"))
    if faults:
        raise InvalidInput(faults=faults)
    made = access_keys.rotate(
        account, str(ak), overlap_s=float(overlap_s), key=idempotency.key_of(request)
    )
    return json_answer(made)


def revoke(request: Request) -> Answer:
    """Exactly one of `token`, `cert`, `key` and `all`."""
    account = credentials.managed_by(request.caller, request.segments["name"])
    body = _body(request, "token", "cert", "key", "all", "reason")
    reason = body.pop("reason", "")
    if not isinstance(reason, str):
        raise InvalidInput("must be a text", field="reason")
    if len(body) != 1:
        raise InvalidInput(
            "say which: exactly one of token (an id), cert (a serial), key (an ak) and all (true)",
            field="body",
        )
    by, revoked = request.caller.name, {"tokens": 0, "certs": 0, "keys": 0}
    ((what, which),) = body.items()
    if what == "token" and isinstance(which, int) and 0 < which < 1 << 63:
        credentials.revoke_token(account, which)
        revoked["tokens"] = 1
    elif what == "cert" and isinstance(which, str):
        credentials.revoke_certificate(account, which, by, reason)
        revoked["certs"] = 1
    elif what == "key" and isinstance(which, str):
        access_keys.revoke(account, which, by, reason)
        revoked["keys"] = 1
    elif what == "all" and which is True:
        revoked["keys"] = access_keys.revoke_all(account, by, reason)
        revoked["tokens"], revoked["certs"] = credentials.revoke_all(account, by, reason)
    else:
        wanted = {"token": "the id of a token", "cert": "a serial number", "all": "true"}
        wanted["key"] = "an access key"
        raise InvalidInput(f"must be {wanted[what]}", field=what)
    return json_answer(revoked)
