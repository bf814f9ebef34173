"""Publishing files: our own interface, the first server's, and the links themselves."""

from __future__ import annotations

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.relaying import Errand
from paddlecloud.server.services import idempotency, publishing


def publish(request: Request) -> Answer:
    body = request.json()
    unknown = sorted(set(body) - {"path", "expires_in_s"})
    if unknown:
        raise InvalidInput(faults=[Fault(key, "unknown key") for key in unknown])
    made = publishing.publish(
        request, body.get("path"), body.get("expires_in_s"), idempotency.key_of(request)
    )
    return json_answer(made, 201)


def listed(request: Request) -> Answer:
    return json_answer({"items": publishing.listed(request)})


def revoke(request: Request) -> Answer:
    publishing.revoke(request.caller, request.segments["id"])
    return Answer(204)


def fetch(request: Request) -> Errand:
    return publishing.fetch(request.params["uuid"])


# --- as the first server has it --------------------------------------------------------------


def publish_v1(request: Request) -> Answer:
    key = idempotency.key_of(request)
    made = publishing.publish(request, request.json().get("path"), None, key)
    return json_answer({"url": made["url"]})


def listed_v1(request: Request) -> Answer:
    found = publishing.listed(request)
    return json_answer(
        {"files": [row["path"] for row in found], "urls": [row["url"] for row in found]}
    )


def revoke_v1(request: Request) -> Answer:
    publishing.revoke_path(request.caller, request.json().get("path"))
    return json_answer({"code": 200, "msg": ""})
