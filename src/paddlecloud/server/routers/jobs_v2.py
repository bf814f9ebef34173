"""Jobs in our own interface: submit, list, look at, order about."""

from __future__ import annotations

from typing import cast

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.front import REPLAYED
from paddlecloud.server.services import (
    explaining,
    job_rows,
    moving,
    orders,
    scaling,
    sharing,
    submitting,
)
from paddlecloud.wire.shapes import MoveBody


def _job_id(request: Request) -> str:
    is_looking = request.method in ("GET", "HEAD")
    return job_rows.find_id(request.caller, request.segments["ref"], to_look=is_looking)


def _given(job: dict[str, object], was_seen: bool) -> Answer:
    answer = json_answer(job, 200 if was_seen else 201)
    if was_seen:
        answer.headers.append(REPLAYED)
    return answer


def submit(request: Request) -> Answer:
    if request.params["dry_run"]:
        return json_answer(explaining.dry_run(request.caller, request.json()))
    return _given(*submitting.submit(request))


def list_jobs(request: Request) -> Answer:
    asked = request.params
    return json_answer(
        job_rows.page(
            request.caller,
            phase=asked["phase"],
            name=asked["name"],
            limit=asked["limit"],
            cursor=asked["cursor"],
            kind=asked["type"],
        )
    )


def get_job(request: Request) -> Answer:
    job = job_rows.read(_job_id(request), with_spec=True)
    # Nobody is shown secrets, not even who sent them: answers end up in files and in chats.
    job["spec"] = sharing.shown(job["spec"])
    return json_answer(job)


def get_runs(request: Request) -> Answer:
    return json_answer({"items": job_rows.runs(_job_id(request))})


def get_replicas(request: Request) -> Answer:
    return json_answer({"items": job_rows.replicas(_job_id(request), request.params["run"])})


def get_events(request: Request) -> Answer:
    asked = request.params
    return json_answer(job_rows.events(_job_id(request), asked["after"], asked["limit"]))


def explain(request: Request) -> Answer:
    return json_answer(explaining.explain(_job_id(request)))


def cancel(request: Request) -> Answer:
    job_id = job_rows.id_to_end(request.caller, request.segments["ref"])
    reason = request.json(optional=True).get("reason", "")
    orders.cancel(job_id, request.caller.name, str(reason))
    return json_answer(job_rows.read(job_id), 202)


def move(request: Request) -> Answer:
    job_id = _job_id(request)
    moving.move(job_id, request.caller.name, cast(MoveBody, request.json()))
    return json_answer(job_rows.read(job_id), 202)


def scale(request: Request) -> Answer:
    job_id = _job_id(request)
    scaling.scale(job_id, request.caller.name, request.json())
    return json_answer(job_rows.read(job_id), 202)


def rerun(request: Request) -> Answer:
    return _given(*orders.rerun(request, _job_id(request)))


def delete(request: Request) -> Answer:
    orders.delete(_job_id(request), request.caller.name)
    return Answer(204)
