"""Our own interface, row by row: what is routed and what OpenAPI says are both this table."""

from __future__ import annotations

from typing import Any

from paddlecloud.server import table_algorithms, table_clusters
from paddlecloud.server.routers import accounts_v2, jobs_v2, logs_v2, platform_v2, waiting
from paddlecloud.server.routing import Access, Change, Param, Route, Work
from paddlecloud.server.services.job_rows import PHASE_FILTERS
from paddlecloud.wire import routes, shapes

_TEXT = "text/plain"
_LIMIT = Param("limit", int, "at most this many items", 100, 1, 1000)
_RUN = Param("run", int, "which run; the current one if left out", None, 1)
_TIMEOUT = Param("timeout_s", float, "answer at the latest after this long", 30.0, 0, 60)

PLATFORM = [
    Route(
        "GET",
        routes.HEALTH,
        platform_v2.health,
        "Whether the server runs",
        answers={200: _TEXT},
        access=Access.OPEN,
        work=Work.INLINE,
    ),
    Route(
        "GET",
        routes.HEALTH + "/",
        platform_v2.health,
        "Whether the server runs",
        answers={200: _TEXT},
        access=Access.OPEN,
        work=Work.INLINE,
    ),
    Route(
        "POST",
        routes.LOGIN,
        accounts_v2.login,
        "A token for a user name and password",
        body=shapes.LoginBody,
        answers={200: shapes.TokenShape},
        access=Access.OPEN,
    ),
    Route(
        "GET",
        routes.STATUS,
        platform_v2.status,
        "The platform at a glance",
        answers={200: shapes.StatusShape},
    ),
    Route(
        "GET",
        routes.WHOAMI,
        platform_v2.whoami,
        "The account that calls",
        answers={200: shapes.WhoamiShape},
    ),
    Route(
        "HEAD",
        routes.PACKAGE,
        platform_v2.has_package,
        "Whether a package is already there",
        answers={200: None},
    ),
    Route(
        "GET",
        routes.PACKAGE,
        platform_v2.has_package,
        "What is known of a package",
        answers={200: shapes.PackageShape},
    ),
    Route(
        "GET",
        routes.RUNTIMES,
        platform_v2.list_runtimes,
        "The environments jobs can run in",
        answers={200: shapes.RuntimeListShape},
    ),
    Route(
        "POST",
        routes.RUNTIMES,
        platform_v2.add_runtime,
        "Add a runtime (administrators)",
        body=shapes.RuntimeBody,
        answers={201: shapes.RuntimeShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "DELETE",
        routes.RUNTIME,
        platform_v2.remove_runtime,
        "Forget a runtime; its files stay (administrators)",
        answers={204: None},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "GET",
        routes.OPENAPI,
        platform_v2.openapi,
        "This description",
        answers={200: dict[str, Any]},
    ),
]

JOBS = [
    Route(
        "POST",
        routes.JOBS,
        jobs_v2.submit,
        "Submit a job; the body is that of POST /api/v1/jobs and its extensions",
        params=(Param("dry_run", bool, "only say what would happen (answers 200)", False),),
        body=dict[str, Any],
        answers={201: shapes.JobShape, 200: (shapes.JobShape, shapes.DryRunShape)},
        change=Change.OWN,
    ),
    Route(
        "GET",
        routes.JOBS,
        jobs_v2.list_jobs,
        "The caller's jobs, newest first; or those marked, or shared with its groups",
        params=(
            Param("phase", str, f"one of {', '.join(PHASE_FILTERS)}", "live"),
            Param("name", str, "only jobs of this name"),
            Param("type", str, "normal (one's own), favorite (marked) or group (shared)", "normal"),
            _LIMIT,
            Param("cursor", str, "`next` of the page before"),
        ),
        answers={200: shapes.JobListShape},
        access=Access.JOB,
    ),
    Route(
        "GET",
        routes.JOB,
        jobs_v2.get_job,
        "One job with its spec; {ref} is an id or a name (the live job of that name, else the"
        " latest)",
        answers={200: shapes.JobWithSpecShape},
        access=Access.JOB,
    ),
    Route(
        "DELETE",
        routes.JOB,
        jobs_v2.delete,
        "Remove a job from history; a live one is killed first",
        answers={204: None},
        change=Change.ATOMIC,
    ),
    Route(
        "GET",
        routes.JOB_RUNS,
        jobs_v2.get_runs,
        "Every run of a job",
        answers={200: shapes.RunListShape},
        access=Access.JOB,
    ),
    Route(
        "GET",
        routes.JOB_REPLICAS,
        jobs_v2.get_replicas,
        "Every attempt of every replica of a run",
        params=(_RUN,),
        answers={200: shapes.ReplicaListShape},
        access=Access.JOB,
    ),
    Route(
        "GET",
        routes.JOB_EVENTS,
        jobs_v2.get_events,
        "What happened, oldest first",
        params=(Param("after", int, "`seq` of the last event seen", 0, 0), _LIMIT),
        answers={200: shapes.EventListShape},
        access=Access.JOB,
    ),
    Route(
        "GET",
        routes.JOB_LOGS,
        logs_v2.read_logs,
        "A log by byte cursor (raw bytes; headers X-Log-Next, -Size, -Dropped, -Ended), or with"
        " follow=1 all logs of a run as lines of JSON until it ends",
        params=(
            Param("follow", bool, "stream until the run ends", False),
            Param("replica", str, "trainer-0 or <job>-trainer-0; follow: all if left out"),
            _RUN,
            Param("attempt", int, "which attempt; the latest if left out", None, 1),
            Param("cursor", int, "first byte to read", None, 0),
            Param("tail", int, "begin with the last so many lines", None, 0, 1_000_000),
            Param("limit_bytes", int, "read at most this much", 1 << 20, 1, 4 << 20),
            Param("cursors", str, "follow: go on at these, like trainer-0.1:123,trainer-1.1:99"),
        ),
        answers={200: _TEXT},
        access=Access.JOB,
        work=Work.LOOP,
    ),
    Route(
        "GET",
        routes.JOB_WAIT,
        waiting.wait_for_job,
        "The job when it has ended, runs, or has changed; as it is when the time is up",
        params=(
            Param("for", str, f"one of {', '.join(waiting.WAIT_FOR)}", "end"),
            Param("after", int, "for=changed: the revision already seen", 0, 0),
            _TIMEOUT,
        ),
        answers={200: shapes.JobShape},
        access=Access.JOB,
        work=Work.LOOP,
    ),
    Route(
        "GET",
        routes.JOB_EXPLAIN,
        jobs_v2.explain,
        "Why a job waits and what would help",
        answers={200: shapes.ExplainShape},
        access=Access.JOB,
    ),
    Route(
        "POST",
        routes.JOB_CANCEL,
        jobs_v2.cancel,
        "Kill a job; one that has ended is left alone",
        body=shapes.CancelBody,
        answers={202: shapes.JobShape},
        change=Change.ATOMIC,
    ),
    Route(
        "POST",
        routes.JOB_RERUN,
        jobs_v2.rerun,
        "Run an ended job again from its pinned package",
        answers={201: shapes.JobShape, 200: shapes.JobShape},
        change=Change.OWN,
    ),
    Route(
        "POST",
        routes.JOB_MOVE,
        jobs_v2.move,
        "Move replicas of a live job off their hosts: they end and start again elsewhere, or on the"
        " only host there is",
        body=shapes.MoveBody,
        answers={202: shapes.JobShape},
        change=Change.ATOMIC,
    ),
    Route(
        "POST",
        routes.JOB_SCALE,
        jobs_v2.scale,
        "Another number of trainers for a live job, where the engine can do that",
        body=shapes.ScaleBody,
        answers={202: shapes.JobShape},
        change=Change.ATOMIC,
    ),
    Route(
        "GET",
        routes.CHANGES,
        waiting.wait_for_changes,
        "Answers when any job the caller has, or sees in a group, has changed",
        params=(Param("after", int, "the revision already seen", 0, 0), _TIMEOUT),
        answers={200: shapes.ChangesShape},
        work=Work.LOOP,
    ),
]

ACCOUNTS = [
    Route(
        "GET",
        routes.QUOTA,
        accounts_v2.own_quota,
        "Limits of the caller and what is in use",
        answers={200: shapes.QuotaShape},
    ),
    Route(
        "GET",
        routes.ACCOUNTS,
        accounts_v2.list_accounts,
        "Every account (administrators)",
        answers={200: shapes.AccountListShape},
        access=Access.ADMIN,
    ),
    Route(
        "POST",
        routes.ACCOUNTS,
        accounts_v2.add_account,
        "Add an account (administrators)",
        body=shapes.AccountBody,
        answers={201: shapes.AccountShape},
        access=Access.ADMIN,
        change=Change.EACH,
    ),
    Route(
        "PUT",
        routes.ACCOUNT_QUOTA,
        accounts_v2.set_quota,
        "Set the limits of an account (administrators)",
        body=shapes.LimitsBody,
        answers={200: shapes.QuotaShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "POST",
        routes.ACCOUNT_TOKEN,
        accounts_v2.make_token,
        "A new token for an account, shown once (administrators)",
        body=shapes.TokenBody,
        answers={201: shapes.TokenShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
        secret_answer=True,
    ),
]

ROUTES = [*PLATFORM, *JOBS, *ACCOUNTS, *table_clusters.ROUTES, *table_algorithms.ROUTES]
