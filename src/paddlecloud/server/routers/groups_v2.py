"""Groups in our own interface: looked at by who is in them, changed by who may."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import group_orders, groups


def list_groups(request: Request) -> Answer:
    return json_answer({"items": groups.list_for(request.caller)})


def shown(request: Request) -> object:
    """What a change of a group is answered with; the engines are asked what is free."""
    name = request.segments.get("name") or str(request.json()["name"])
    return groups.info(request.caller, name)


def get_group(request: Request) -> Answer:
    return json_answer(shown(request))


def create(request: Request) -> Answer:
    group_orders.create(request.json())
    return Answer(201)


def delete(request: Request) -> Answer:
    group_orders.delete(request.segments["name"])
    return Answer(204)


def set_quota(request: Request) -> Answer:
    group_orders.set_quota(request.segments["name"], request.json())
    return Answer(200)


def put_member(request: Request) -> Answer:
    group_orders.put_member(request.caller, request.segments["name"], request.json())
    return Answer(200)


def remove_member(request: Request) -> Answer:
    """Answers 204: who removed themselves sees the group no more."""
    group_orders.remove_member(request.caller, request.segments["name"], request.json())
    return Answer(204)
