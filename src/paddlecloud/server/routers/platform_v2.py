"""The platform itself: health, status, who am I, packages, runtimes, the description."""

from __future__ import annotations

from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.server.exchange import Answer, Request, json_answer, text_answer
from paddlecloud.server.process import here
from paddlecloud.server.services import packages, platform_status, storing


def health(request: Request) -> Answer:
    return text_answer("OK")


def status(request: Request) -> Answer:
    return json_answer(platform_status.describe(request.caller))


def whoami(request: Request) -> Answer:
    return json_answer(storing.facts_of(request.caller))


def openapi(request: Request) -> Answer:
    from paddlecloud.server.openapi import document

    return json_answer(document())


# --- packages --------------------------------------------------------------------------------


def has_package(request: Request) -> Answer:
    found = packages.find(request.caller.account_id, request.segments["digest"])
    if found is None:
        raise NotFound("no such package", field="digest")
    return json_answer(found)


# --- runtimes --------------------------------------------------------------------------------


def list_runtimes(request: Request) -> Answer:
    return json_answer({"items": here().runtimes.listed()})


def add_runtime(request: Request) -> Answer:
    body = request.json()
    name, python = body.get("name"), body.get("python")
    if not isinstance(name, str) or not isinstance(python, str):
        raise InvalidInput("name and python are needed, both texts", field="name")
    is_default = body.get("default")
    return json_answer(
        here().runtimes.add(
            name, python, is_default=None if is_default is None else bool(is_default)
        ),
        201,
    )


def remove_runtime(request: Request) -> Answer:
    here().runtimes.remove(request.segments["name"])
    return Answer(204)
