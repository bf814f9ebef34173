"""`paddlecloud describe JOB`: all about one job; of a failed one, what failed first and why."""

from __future__ import annotations

from paddlecloud.cli import outcomes, times
from paddlecloud.cli.events import one_job
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.get import latest_attempts, pod_status
from paddlecloud.cli.session import Session
from paddlecloud.cli.sizes import roles
from paddlecloud.wire.job_workspace import command_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.shapes import FailureShape, JobWithSpecShape, ReplicaShape

USAGE = "paddlecloud describe <job>"
HELP = """
Examples:
  paddlecloud describe wide-deep
  paddlecloud describe wide-deep -o json
"""
FLAGS = (output_flag("table", "json", "yaml"),)

COLUMN = 15
TAIL_LINES = 60


def run(session: Session) -> int:
    ref = session.job(one_job(session, "describe"))
    client = session.client
    job = client.get(ref)
    runs = client.runs(job["id"])
    replicas = client.replicas(job["id"], run=job["run"])
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_object

        print_object(session, {**job, "runs": runs, "replicas": replicas}, form)
        return 0
    session.say(_head(job, len(runs)))
    rows = _facts(job)
    failure = job["failure"]
    if failure is not None and job["phase"] != "Succeeded":
        rows += _postmortem(session, job, failure, replicas)
    rows += _workers(replicas)
    rows += _commands(job)
    for label, text in rows:
        session.say(f"  {label:<{COLUMN}}{text}".rstrip())
    return 0


def _head(job: JobWithSpecShape, runs: int) -> str:
    detail = ""
    failure = job["failure"]
    if failure is not None and job["phase"] == "Failed":
        detail = f"{outcomes.how_it_ended(failure)} in {failure['replica']}"
        if job["started_at"] and failure["at"]:
            took = times.fine(times.between_s(job["started_at"], failure["at"]))
            detail += f", {took} after start"
    elif job["started_at"]:
        if job["ended_at"]:
            took_s = times.between_s(job["started_at"], job["ended_at"])
            detail = f"after {times.fine(took_s)}"
        else:
            detail = f"for {times.fine(times.since_s(job['started_at']))}"
    else:
        detail = f"since {times.age(job['submitted_at'])}"
    counts = f"(run {job['run']}" + (f" of {runs}" if runs > 1 else "")
    counts += f"; restarts used {job['restarts']} of {job['max_restarts']})"
    return f"{job['name']}  {job['phase']}  {detail} {counts}"


def _who(job: JobWithSpecShape) -> str:
    group = job.get("group") or job["account"]
    return job["account"] + (f" (group {group})" if group != job["account"] else "")


def _entry(spec: dict[str, Any]) -> object:
    return command_of(spec.get("entry", "")) or spec.get("topology") or "as its pod templates say"


def _facts(job: JobWithSpecShape) -> list[tuple[str, str]]:
    wanted = {role: counts["wanted"] for role, counts in job["roles"].items() if counts["wanted"]}
    size = f"{job['cpu']} cpu, {job['memory']}, {job['gpu']} gpu"
    rows = [
        ("id", job["id"]),
        ("account", f"{_who(job)} on {job['cluster']}, priority {job['priority']}"),
        ("shape", f"{job['mode']}: {roles(wanted)}; {size}"),
        ("entry", str(_entry(job["spec"]))),
        ("submitted", times.for_reading(job["submitted_at"])),
    ]
    if job["reason"] and job["failure"] is None:
        rows.append(("reason", job["reason"]))
    return rows


def _postmortem(
    session: Session, job: JobWithSpecShape, failure: FailureShape, replicas: list[ReplicaShape]
) -> list[tuple[str, str]]:
    from paddlecloud.cli.postmortem import examine
    from paddlecloud.core.errors import PaddleCloudError

    failed = next((r for r in replicas if _is(r, failure["replica"]) and _has_failed(r)), None)
    where = f" on {failed['address']}" if failed and failed["address"] else ""
    try:
        tail = session.client.logs(
            job["id"],
            failure["replica"],
            tail=TAIL_LINES,
            run=job["run"],
            attempt=failed["attempt"] if failed else None,
        )
    except PaddleCloudError as error:
        tail = ""
        session.note(f"note: the log of {failure['replica']} could not be read: {error.message}")
    found = examine(failure, tail, name=job["name"], memory=_memory_of(job, failure["replica"]))
    at = f", {times.for_reading(failure['at'])}" if failure["at"] else ""
    rows = [
        ("first to fail", f"{failure['replica']}{where}{at}"),
        ("cause", found.cause),
    ]
    if failure["message"] and failure["message"] not in found.cause:
        rows.append(("message", failure["message"]))
    for number, line in enumerate(found.lines):
        rows.append(("last lines" if number == 0 else "", line.strip()))
    advice = f"   {found.command}" if found.command else ""
    rows.append(("would a retry help?", f"  {found.retry}{advice}"))
    return rows


def _is(replica: ReplicaShape, short: str) -> bool:
    return f"{replica['role']}-{replica['index']}" == short


def _has_failed(replica: ReplicaShape) -> bool:
    return pod_status(replica) == "Failed"


def _memory_of(job: JobWithSpecShape, short: str) -> str:
    from paddlecloud.core.resources import format_memory

    for role in job["spec"].get("roles", ()):
        if short.startswith(f"{role['role']}-"):
            return format_memory(role["memory_bytes"])
    return ""


def _workers(replicas: list[ReplicaShape]) -> list[tuple[str, str]]:
    rows = []
    for number, replica in enumerate(latest_attempts(replicas)[:12]):
        end = replica["exit"]
        # The code of one we stopped says only how, and 143 reads like a failure.
        ended = f", exit {end['code']}" if end is not None and not replica["stop_asked"] else ""
        attempt = f", attempt {replica['attempt']}" if replica["attempt"] > 1 else ""
        short = f"{replica['role']}-{replica['index']}"
        text = f"{short:<12} {pod_status(replica):<10} {replica['address']}{ended}{attempt}"
        rows.append(("workers" if number == 0 else "", text))
    if len(latest_attempts(replicas)) > 12:
        rows.append(("", "..."))
    return rows


def _commands(job: JobWithSpecShape) -> list[tuple[str, str]]:
    name, failure = job["name"], job["failure"]
    rows = []
    if job["ended_at"] is None:
        if job["started_at"] is None:
            rows.append(("why it waits", f"paddlecloud explain {name}"))
        else:
            rows.append(("logs", f"paddlecloud logs -f {name}"))
        return rows
    if failure is not None and job["phase"] != "Succeeded":
        worker = f"{name}-{failure['replica']}"
        rows.append(("logs", f"kept: paddlecloud logs -w {worker} -n 200 {name}"))
    else:
        rows.append(("logs", f"kept: paddlecloud logs {name}"))
    if job["output"]:
        rows.append(("output", f"paddlecloud outputs {name}"))
    return rows
