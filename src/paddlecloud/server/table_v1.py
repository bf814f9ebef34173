"""The first server's interface, row by row; each path once without a slash and once with it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from paddlecloud.server.routers import v1
from paddlecloud.server.routing import Change, Param, Route, Work
from paddlecloud.server.services.job_rows import PHASE_FILTERS
from paddlecloud.wire import routes, shapes_v1

_LIMIT = Param("limit", int, "at most this many jobs, newest first", 100, 1, 1000)
_CURSOR = Param("cursor", str, "`next` of a page of GET /api/v2/jobs")
_PHASE = Param("phase", str, f"one of {', '.join(PHASE_FILTERS)}", "all")
_JOBNAME = Param("jobname", str, "name or id of the job", "")

_KILL = Route(
    "DELETE",
    routes.V1_JOBS,
    v1.kill,
    "Kill a job; with rm also remove it from history",
    body=shapes_v1.KillBodyV1,
    answers={200: shapes_v1.DoneV1},
    change=Change.ATOMIC,
    dialect="v1",
)
_SUBMIT = Route(
    "POST",
    routes.V1_JOBS,
    v1.submit,
    "Submit a job. pservers left out means as many as trainers; the package is uploaded before",
    body=shapes_v1.SubmitBodyV1,
    answers={200: shapes_v1.DoneV1},
    change=Change.OWN,
    dialect="v1",
)
_SAME = [
    _SUBMIT,
    _KILL,
    Route(
        "GET",
        routes.V1_LOGS,
        v1.job_logs,
        "The last lines of every replica, or of one",
        params=(
            _JOBNAME,
            Param("n", int, "lines per replica", 10, 0, 1_000_000),
            Param("w", str, "only this replica, e.g. <job>-trainer-0", ""),
        ),
        answers={200: shapes_v1.DoneV1},
        work=Work.LOGS,
        dialect="v1",
    ),
    Route(
        "GET",
        routes.V1_TOKEN2USER,
        v1.token2user,
        "Whose token this is",
        answers={200: shapes_v1.UserV1},
        dialect="v1",
    ),
]
# The same jobs as objects of a cluster: a submit may also be a TrainingJob or PaddleJob itself.
_SAME += [
    replace(
        _SUBMIT,
        path=routes.V1_TRAINING_JOBS,
        summary="Submit a job; the body is that of /api/v1/jobs, or a TrainingJob or PaddleJob"
        " object whose pod templates hold only what docs/guides/kubernetes.md allows",
        body=dict[str, Any],
    ),
    replace(_KILL, path=routes.V1_TRAINING_JOBS),
]
_PLAIN = [
    Route(
        "GET",
        routes.V1_JOBS,
        v1.list_jobs,
        "The caller's jobs as they were asked for, newest first",
        params=(_PHASE, _LIMIT, _CURSOR),
        answers={200: shapes_v1.JobListV1},
        dialect="v1",
    ),
    Route(
        "GET",
        routes.V1_TRAINING_JOBS,
        v1.list_jobs,
        "As GET /api/v1/jobs",
        params=(_PHASE, _LIMIT, _CURSOR),
        answers={200: shapes_v1.JobListV1},
        dialect="v1",
    ),
    Route(
        "GET",
        routes.V1_PSERVERS,
        v1.pservers,
        "Parameter servers of the caller's jobs",
        params=(_LIMIT,),
        answers={200: shapes_v1.ItemsInMsgV1},
        dialect="v1",
    ),
    Route(
        "GET",
        routes.V1_WORKERS,
        v1.workers,
        "The replicas of a job, or of all",
        params=(_JOBNAME, _LIMIT),
        answers={200: shapes_v1.ItemsInMsgV1},
        dialect="v1",
    ),
    Route(
        "GET",
        routes.V1_QUOTA,
        v1.quota,
        "Limits and what is in use",
        answers={200: shapes_v1.QuotaV1},
        dialect="v1",
    ),
]
_SHIPPED: dict[str, tuple[Any, str]] = {
    routes.V1_JOBS: (v1.list_batch_jobs, "Batch jobs in snake_case, and names being killed"),
    routes.V1_TRAINING_JOBS: (v1.list_training_jobs, "TrainingJob objects in snake_case"),
    routes.V1_PSERVERS: (v1.pservers, "Replica sets <job>-pserver in snake_case"),
    routes.V1_WORKERS: (v1.workers, "Pods in snake_case"),
    routes.V1_QUOTA: (v1.quota, "Resource quotas in snake_case"),
}


def _with_slash() -> Iterator[Route]:
    for route in _SAME:
        yield replace(route, path=route.path + "/")
    for route in _PLAIN:
        handler, summary = _SHIPPED[route.path]
        params = tuple(param for param in route.params if param is not _PHASE)
        yield replace(
            route,
            path=route.path + "/",
            handler=handler,
            summary=summary,
            params=params,
            answers={200: shapes_v1.ObjectListV1},
        )


ROUTES = [*_SAME, *_PLAIN, *_with_slash()]
