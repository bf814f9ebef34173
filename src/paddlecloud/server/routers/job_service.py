"""The job service of the second generation: `{"code": 0, "message": ..., "data": ...}`."""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import job_service

_DONE = "success"


def _answer(data: Any, *, code: int = 0, message: str = _DONE) -> Answer:
    return json_answer({"code": code, "message": message, "data": data})


def _about_clusters(data: Any) -> Answer:
    return json_answer({"code": 0, "msg": _DONE, "data": data})


def _body(request: Request, *names: str) -> dict[str, Any]:
    body = request.json()
    allowed = ", ".join(names)
    unknown = [Fault(str(key)[:80], f"unknown key; allowed are {allowed}") for key in body
               if key not in names]  # fmt: skip
    if unknown:
        raise InvalidInput(faults=unknown)
    return body


def send_file(request: Request) -> Answer:
    from paddlecloud.server.services import pending_files  # not needed to start

    return _answer(pending_files.take(request))


def submit(request: Request) -> Answer:
    return _answer(job_service.submit(request))


def look(request: Request) -> Answer:
    """One job by its id, else a page of them."""
    asked = request.params
    if asked["jobId"] is not None:
        return _answer(job_service.details(request.caller, _job_id(request)))
    found = job_service.page(request.caller, asked["type"], asked["page"], asked["maxKeys"])
    return _answer(found)


def _job_id(request: Request) -> str:
    ref = request.params["jobId"]
    if not ref:
        raise InvalidInput("is needed: the id of a job", field="jobId")
    return str(ref)


def status(request: Request) -> Answer:
    return _answer(job_service.status(request.caller, _job_id(request)))


def order(request: Request) -> Answer:
    body = _body(request, "jobIds", "opType")
    word = body.get("opType")
    if word not in ("Kill", "Rerun"):
        raise InvalidInput("must be Kill or Rerun", field="opType")
    return _ordered(request, job_service.ids_in(body), word)


def delete(request: Request) -> Answer:
    return _ordered(request, job_service.ids_in(_body(request, "jobIds")), "Delete")


def _ordered(request: Request, ids: list[str], word: str) -> Answer:
    data, errors = job_service.order(request, ids, word)
    if not errors:
        return _answer(data)
    # Some were done, so it is an answer and no refusal; its code says that it was not all.
    message = "; ".join(error.message for error in errors)
    return _answer(data, code=errors[0].http_status, message=message)


def groups(request: Request) -> Answer:
    return _about_clusters(job_service.groups_of(request.caller))


def quota(request: Request) -> Answer:
    return _about_clusters(job_service.quota(request.caller, request.params["cluster_name"]))
