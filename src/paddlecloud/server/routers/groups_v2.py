"""Groups in our own interface: looked at by who is in them, changed by who may."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import group_orders, groups


def list_groups(request: Request) -> Answer:
    return json_answer({"items": groups.list_for(request.caller)})


def _shown(request: Request, name: str, status: int = 200) -> Answer:
    return json_answer(groups.info(request.caller, name), status)


def get_group(request: Request) -> Answer:
    return _shown(request, request.segments["name"])


def create(request: Request) -> Answer:
    return _shown(request, group_orders.create(request.json()), 201)


def delete(request: Request) -> Answer:
    group_orders.delete(request.segments["name"])
    return Answer(204)


def set_quota(request: Request) -> Answer:
    name = request.segments["name"]
    group_orders.set_quota(name, request.json())
    return _shown(request, name)


def put_member(request: Request) -> Answer:
    name = request.segments["name"]
    group_orders.put_member(request.caller, name, request.json())
    return _shown(request, name)


def remove_member(request: Request) -> Answer:
    """Answers 204: who removed themselves sees the group no more."""
    group_orders.remove_member(request.caller, request.segments["name"], request.json())
    return Answer(204)
