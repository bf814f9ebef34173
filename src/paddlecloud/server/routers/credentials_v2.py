"""Ending and changing what accounts log in with. Everybody their own, administrators anyone's."""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import credentials


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
    password = _body(request, "password").get("password")
    if not isinstance(password, str) or not password:
        raise InvalidInput(faults=[Fault("password", "is needed, as a text")])
    credentials.set_password(account, password)
    return Answer(204)


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


def revoke(request: Request) -> Answer:
    """Exactly one of `token`, `cert` and `all`."""
    account = credentials.managed_by(request.caller, request.segments["name"])
    body = _body(request, "token", "cert", "all", "reason")
    reason = body.pop("reason", "")
    if not isinstance(reason, str):
        raise InvalidInput("must be a text", field="reason")
    if len(body) != 1:
        raise InvalidInput(
            "say which: exactly one of token (an id), cert (a serial) and all (true)", field="body"
        )
    by, revoked = request.caller.name, {"tokens": 0, "certs": 0}
    ((what, which),) = body.items()
    if what == "token" and isinstance(which, int) and 0 < which < 1 << 63:
        credentials.revoke_token(account, which)
        revoked["tokens"] = 1
    elif what == "cert" and isinstance(which, str):
        credentials.revoke_certificate(account, which, by, reason)
        revoked["certs"] = 1
    elif what == "all" and which is True:
        revoked["tokens"], revoked["certs"] = credentials.revoke_all(account, by, reason)
    else:
        wanted = {"token": "the id of a token", "cert": "a serial number", "all": "true"}
        raise InvalidInput(f"must be {wanted[what]}", field=what)
    return json_answer(revoked)
