"""Registries of images: our own interface and the first server's."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import registries


def save(request: Request) -> Answer:
    return json_answer(registries.save(request.caller, request.json()), 201)


def listed(request: Request) -> Answer:
    return json_answer({"items": registries.listed(request.caller)})


def remove(request: Request) -> Answer:
    registries.remove(request.caller, request.segments["name"])
    return Answer(204)


# --- as the first server has it --------------------------------------------------------------


def save_v1(request: Request) -> Answer:
    registries.save(request.caller, request.json())
    return json_answer({"code": 200, "msg": ""})


def listed_v1(request: Request) -> Answer:
    items = registries.as_secrets(request.caller)
    return json_answer(
        {"code": 200, "msg": {"api_version": "v1", "kind": "SecretList", "items": items}}
    )


def remove_v1(request: Request) -> Answer:
    registries.remove(request.caller, request.json().get("name"))
    return json_answer({"code": 200, "msg": ""})
