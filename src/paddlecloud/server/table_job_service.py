"""The job service of the second generation, row by row, and the marks its lists need."""

from __future__ import annotations

from paddlecloud.server.routers import job_service, marking
from paddlecloud.server.routing import Change, Param, Route
from paddlecloud.server.services import sharing
from paddlecloud.wire import routes
from paddlecloud.wire import service_shapes as shapes

_JOB, _CLUSTER = "job_v1", "cluster_v1"
_BODY_BYTES = 7 << 20  # a file of 1 MiB: JSON may need six bytes for one
_ID = Param("jobId", str, "the id of a job")

ROUTES = [
    Route(
        "POST",
        routes.SERVICE_FILE,
        job_service.send_file,
        "Send one file of the next job",
        body=shapes.SentFileBody,
        answers={200: shapes.ServiceAnswer},
        change=Change.OWN,
        body_limit_bytes=_BODY_BYTES,
        dialect=_JOB,
    ),
    Route(
        "POST",
        routes.SERVICE_JOB,
        job_service.submit,
        "Submit a job with the files sent before",
        body=shapes.ServiceJobBody,
        answers={200: shapes.ServiceAnswer},
        change=Change.OWN,
        body_limit_bytes=_BODY_BYTES,
        dialect=_JOB,
    ),
    Route(
        "GET",
        routes.SERVICE_JOB,
        job_service.look,
        "A page of jobs, or with jobId one of them",
        params=(
            _ID,
            Param("type", str, f"one of {', '.join(sharing.KINDS)}", "normal"),
            Param("page", int, "which page", 1, 1, 10**6),
            Param("maxKeys", int, "jobs per page", 10, 1, 1000),
        ),
        answers={200: shapes.ServiceAnswer},
        dialect=_JOB,
    ),
    Route(
        "GET",
        routes.SERVICE_STATUS,
        job_service.status,
        "The status of a job, in one word",
        params=(_ID,),
        answers={200: shapes.ServiceAnswer},
        dialect=_JOB,
    ),
    Route(
        "PUT",
        routes.SERVICE_JOB,
        job_service.order,
        "Kill jobs, or run them again",
        body=shapes.OrderBody,
        answers={200: shapes.ServiceAnswer},
        change=Change.EACH,
        dialect=_JOB,
    ),
    Route(
        "DELETE",
        routes.SERVICE_JOB,
        job_service.delete,
        "Delete jobs; live ones are killed first",
        body=shapes.DeleteBody,
        answers={200: shapes.ServiceAnswer},
        change=Change.EACH,
        dialect=_JOB,
    ),
    Route(
        "GET",
        routes.SERVICE_GROUPS,
        job_service.groups,
        "The groups of the caller and their clusters",
        answers={200: shapes.ClusterAnswer},
        dialect=_CLUSTER,
    ),
    Route(
        "GET",
        routes.SERVICE_QUOTA,
        job_service.quota,
        "Limits on a cluster, and what is in use",
        params=(Param("cluster_name", str, "the cluster; the default one if left out", ""),),
        answers={200: shapes.ClusterAnswer},
        dialect=_CLUSTER,
    ),
    Route(
        "PUT",
        routes.JOB_FAVORITE,
        marking.mark,
        "Mark a job, for GET /api/v2/jobs?type=favorite",
        answers={204: None},
        change=Change.ATOMIC,
    ),
    Route(
        "DELETE",
        routes.JOB_FAVORITE,
        marking.mark,
        "Take the mark away",
        answers={204: None},
        change=Change.ATOMIC,
    ),
]
