"""Algorithms: experiments that jobs belong to."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import algorithms


def list_algorithms(request: Request) -> Answer:
    return json_answer({"items": algorithms.listed(request.caller)})


def create(request: Request) -> Answer:
    return json_answer(algorithms.create(request.caller, request.json()), 201)


def get_algorithm(request: Request) -> Answer:
    ref, limit = request.segments["ref"], request.params["limit"]
    return json_answer(algorithms.with_jobs(request.caller, ref, limit))


def delete(request: Request) -> Answer:
    algorithms.delete(request.caller, request.segments["ref"])
    return Answer(204)
