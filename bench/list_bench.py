"""`GET /api/v1/jobs`: a page of 100 out of 10,000 jobs, against FastAPI + SQLAlchemy.

Same machine, same run, same rows, same answer (compared as JSON before anything is measured), same
load generator with 16 keep-alive connections. The sides take turns in short rounds, so that noise
hits all; the median of the rounds counts. The peer runs in two styles and the faster one is it.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import _peer
from _children import cpu_s
from _load import Load, Target, drive, generator
from _platform import Platform
from _report import CannotMeasure, Report, median, run

JOBS = 10_000
PAGE = 100
CONNECTIONS = 16
ROUNDS = 4
ROUND_S = 2.0
PATH = "/api/v1/jobs"
PEERS = {"threads": "fastapi_jobs", "loop": "fastapi_jobs_on_the_loop"}
FORM = {
    "name": "word-emb",
    "entry": "true",
    "topology": "train.py",
    "parallelism": 1,
    "cpu": 1,
    "memory": "64Mi",
    "pservers": 1,
    "pscpu": 1,
    "psmemory": "64Mi",
}


def _seed_platform(platform: Platform) -> list[dict[str, object]]:
    """Run one real job to its end and copy its row; returns the rows as the peer needs them."""
    with platform.client() as client:
        job = client.submit(FORM, package=str(platform.package))
        ended = client.wait(job["id"], timeout_s=60)
        if ended is None:
            raise CannotMeasure("the first job did not end")
    copies: list[dict[str, object]] = []
    with closing(sqlite3.connect(platform.state / "server.db", timeout=30)) as database, database:
        database.row_factory = sqlite3.Row
        row = dict(database.execute("SELECT * FROM jobs_job").fetchone())
        listed = json.loads(row["wish_v1"])
        first_name, first_package = row["name"], row["package"]
        for number in range(1, JOBS):
            name = f"{first_name}-{number}"
            listed |= {"name": name, "job_package": f"{first_package}-{number}"}
            row |= {
                "id": f"job-{number:016x}",
                "name": name,
                "package": listed["job_package"],
                "wish_v1": json.dumps(listed, separators=(",", ":")),
                "submitted_at": row["submitted_at"] + 0.001,
            }
            copies.append({"row": dict(row), "listed": dict(listed)})
        marks = ", ".join(f":{column}" for column in row)
        columns = ", ".join(f'"{column}"' for column in row)
        database.executemany(
            f"INSERT INTO jobs_job ({columns}) VALUES ({marks})", [copy["row"] for copy in copies]
        )
        database.execute("ANALYZE")
    return [
        {"id": row["id"], "account_id": 1, "live": row["live"], "submitted_at": row["submitted_at"]}
        | listed
        for row, listed in ((copy["row"], copy["listed"]) for copy in copies)
    ]


def _answer(target: Target) -> object:
    with closing(http.client.HTTPConnection("127.0.0.1", target.port, timeout=30)) as connection:
        connection.request("GET", target.path, headers={"Authorization": f"Token {target.token}"})
        response = connection.getresponse()
        body = response.read()
        if response.status != 200:
            raise CannotMeasure(f"{target.path} answers {response.status}: {body[:200]!r}")
        return json.loads(body)


def _check_same(targets: dict[str, Target]) -> None:
    answers = {name: _answer(target) for name, target in targets.items()}
    ours = answers["paddlecloud"]
    if not isinstance(ours, dict) or len(ours["msg"]) != PAGE:
        raise CannotMeasure(f"a page is not {PAGE} jobs")
    for name, answer in answers.items():
        if answer != ours:
            raise CannotMeasure(f"{name} answers something else than paddlecloud")


def _summary(loads: Sequence[Load]) -> tuple[float, float, float]:
    return (
        median([load.requests_per_s for load in loads]),
        median([load.p50_ms for load in loads]),
        median([load.p99_ms for load in loads]),
    )


def _measure_all(
    targets: dict[str, Target], pids: dict[str, int]
) -> tuple[dict[str, list[Load]], dict[str, float]]:
    """The rounds of each side, and the CPU milliseconds of its server per request."""
    loads: dict[str, list[Load]] = {name: [] for name in targets}
    used_s = dict.fromkeys(targets, 0.0)
    for target in targets.values():
        drive(target, connections=CONNECTIONS, seconds=1.0)  # warm
    for _ in range(ROUNDS):
        for name, target in targets.items():
            used_s[name] -= cpu_s([pids[name]])
            loads[name].append(drive(target, connections=CONNECTIONS, seconds=ROUND_S))
            used_s[name] += cpu_s([pids[name]])
    answered = {name: sum(load.requests for load in loads[name]) for name in targets}
    return loads, {name: used_s[name] / answered[name] * 1e3 for name in targets}


def measure(report: Report) -> None:
    _peer.python()
    with ExitStack() as stack:
        platform = stack.enter_context(Platform())
        platform.up()
        jobs = _seed_platform(platform)
        with platform.client() as client:
            token = client.profile.token
        targets = {"paddlecloud": Target(platform.port, PATH, token)}
        pids = {"paddlecloud": platform.server_pid}
        database = _peer.seed(Path(platform.home), token, jobs)
        for style, module in PEERS.items():
            name = f"fastapi_{style}"
            port, pids[name] = stack.enter_context(_peer.running(module, database))
            targets[name] = Target(port, PATH, token)
        _check_same(targets)
        loads, cpu_ms = _measure_all(targets, pids)
    rates: dict[str, float] = {}
    for name, measured in loads.items():
        rates[name], p50_ms, p99_ms = _summary(measured)
        report.add(f"{name}_requests_per_s", rates[name])
        report.add(f"{name}_p50_ms", p50_ms)
        report.add(f"{name}_p99_ms", p99_ms)
        report.add(f"{name}_cpu_ms_per_request", cpu_ms[name])
        if name == "paddlecloud":
            report.add("p99_per_p50_ratio", p99_ms / p50_ms, at_most=10)
    ours = rates.pop("paddlecloud")
    report.add("requests_per_s_ratio", ours / max(rates.values()), at_least=3)
    ours_ms = cpu_ms.pop("paddlecloud")
    report.add("cpu_per_request_ratio", min(cpu_ms.values()) / ours_ms)
    report.note("generator", generator())
    report.note("jobs", JOBS)
    report.note("connections", CONNECTIONS)


if __name__ == "__main__":
    run("list", measure)
