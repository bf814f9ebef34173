"""The first server's interface, twice: as seed 004 draws it and as the shipped client reads it.

Paths without a slash at the end answer `{"code": 200, "msg": …}` with the payload in `msg`; with
it `msg` is empty on success and lists are the raw objects of `services.lists_v1`. Both have true
status codes. Everything is done by the same services as in our own interface.
"""

from __future__ import annotations

from typing import Any

from paddlecloud.core.errors import InvalidInput
from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.front import REPLAYED
from paddlecloud.server.process import here
from paddlecloud.server.services import (
    job_rows,
    lists_v1,
    logs,
    orders,
    quotas,
    submitting,
)


def _is_shipped(request: Request) -> bool:
    return request.route.path.endswith("/")


def _done(request: Request) -> Answer:
    return json_answer({"code": 200, "msg": "" if _is_shipped(request) else "OK"})


def _payload(value: Any) -> Answer:
    return json_answer({"code": 200, "msg": value})


# --- jobs ------------------------------------------------------------------------------------


def submit(request: Request) -> Answer:
    job, was_seen = submitting.submit(request)
    answer = _done(request)
    answer.headers.append((b"x-job-id", job["id"].encode()))
    if was_seen:
        answer.headers.append(REPLAYED)
    return answer


def list_jobs(request: Request) -> Answer:
    asked = request.params
    found = lists_v1.wishes(
        request.caller, phase=asked["phase"], limit=asked["limit"], cursor=asked["cursor"]
    )
    return _payload(found)


def list_batch_jobs(request: Request) -> Answer:
    asked = request.params
    return json_answer(lists_v1.batch_jobs(request.caller, asked["limit"], asked["cursor"]))


def list_training_jobs(request: Request) -> Answer:
    asked = request.params
    return json_answer(lists_v1.training_jobs(request.caller, asked["limit"], asked["cursor"]))


def kill(request: Request) -> Answer:
    body = request.json()
    name = body.get("jobname") or body.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidInput("jobname is needed", field="jobname")
    job_id = job_rows.find_id(request.caller, name)
    if body.get("rm") is True:
        orders.delete(job_id, request.caller.name)
    else:
        orders.cancel(job_id, request.caller.name)
    return _done(request)


def _listed(request: Request, found: dict[str, Any]) -> Answer:
    return json_answer(found) if _is_shipped(request) else _payload(found["items"])


def pservers(request: Request) -> Answer:
    return _listed(request, lists_v1.replica_sets(request.caller, request.params["limit"]))


def workers(request: Request) -> Answer:
    asked = request.params
    return _listed(request, lists_v1.pods(request.caller, asked["jobname"], asked["limit"]))


def job_logs(request: Request) -> Answer:
    asked = request.params
    if not asked["jobname"]:
        raise InvalidInput("jobname is needed", field="jobname")
    job_id = job_rows.find_id(request.caller, asked["jobname"])
    limit_bytes = here().configuration.limits.log_read_bytes
    return _payload(logs.tails_text(job_id, asked["n"], asked["w"], limit_bytes))


# --- the account -----------------------------------------------------------------------------


def quota(request: Request) -> Answer:
    if _is_shipped(request):
        return json_answer(lists_v1.resource_quotas(request.caller))
    return _payload(quotas.show(request.caller.account_id))


def token2user(request: Request) -> Answer:
    return json_answer({"code": 200, "msg": "", "user": request.caller.name})
