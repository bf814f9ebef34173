"""`paddlecloud logs`: the end of what each replica printed, or all of it as it is written.

Without a job it shows the latest one, under the line of the design document
(`running pod list:  [...]`); with a job, each replica under a rule with its name; with `-w`, one
replica's bare log.
"""

from __future__ import annotations

from paddlecloud.cli.get import latest_attempts, pod_status
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import JobShape, ReplicaShape

USAGE = "paddlecloud logs [-n lines] [-w worker] [-f] [job]"
HELP = """
Without a job: the latest one. The logs of ended jobs and of earlier runs are kept.

Examples:
  paddlecloud logs wide-deep
  paddlecloud logs -n 200 -w wide-deep-trainer-1 wide-deep
  paddlecloud logs -f wide-deep
  paddlecloud logs -n -1 wide-deep > all.log
"""
FLAGS = (
    Flag(("-n",), Kind.INT, value="LINES", low=-1, meaning="last lines (default 10; -1 for all)"),
    Flag(("-w",), value="WORKER", meaning="only this one: JOB-trainer-0 or trainer-0"),
    Flag(("-f", "--follow"), Kind.BOOL, meaning="stay and print what is written, to the end"),
    Flag(("--run",), Kind.INT, value="N", low=1, meaning="an earlier run (default the latest)"),
)

DEFAULT_LINES = 10
RULE = "=" * 26


def run(session: Session) -> int:
    words = session.parsed.positionals
    if len(words) > 1:
        raise InvalidInput(f"logs takes one job, not {len(words)}", hint=f"usage: {USAGE}")
    is_latest = not words
    job = latest_job(session) if is_latest else session.client.get(session.job(words[0]))
    run_number = session.parsed.number("run") or job["run"]
    replicas = latest_attempts(session.client.replicas(job["id"], run=run_number))
    worker = _short_name(session.parsed.text("w"), job["name"])
    if worker and worker not in [_short(r) for r in replicas]:
        raise _no_such_worker(worker, job["name"], replicas)
    if not replicas:
        _say_why_empty(session, job)
    if session.parsed.switch("f"):
        return _follow(session, job, run_number, worker)
    if worker:
        _write(session, job, run_number, worker)
        return 0
    if is_latest:
        pods = [(pod_status(r), r["address"]) for r in replicas]
        session.say(f"running pod list:  {pods}")
    for replica in replicas:
        if not (is_latest and len(replicas) == 1):
            session.say(f"{RULE}{replica['name']}{RULE}")
        if not _write(session, job, run_number, _short(replica)):
            session.say()
    return 0


def _say_why_empty(session: Session, job: JobShape) -> None:
    reason = f": {job['reason']}" if job["reason"] else ""
    advice = "" if job["ended_at"] else f"   paddlecloud explain {job['name']}"
    session.note(f"nothing of {job['name']} has run; it is {job['phase']}{reason}{advice}")


def latest_job(session: Session) -> JobShape:
    page = session.client.jobs_page("all", limit=1)
    if not page["items"]:
        raise NotFound("there is no job yet", hint="start one with: paddlecloud submit")
    job: JobShape = page["items"][0]
    return job


def _lines(session: Session) -> int | None:
    count = session.parsed.number("n", DEFAULT_LINES)
    return None if count < 0 else count


def _write(session: Session, job: JobShape, run_number: int, worker: str) -> bool:
    """Print one log as it comes; whether it ended with a whole line."""
    from codecs import getincrementaldecoder

    decoder = getincrementaldecoder("utf-8")("replace")
    is_whole = True
    for part in session.client.log_parts(job["id"], worker, tail=_lines(session), run=run_number):
        session.write(decoder.decode(part))
        is_whole = part.endswith(b"\n") if part else is_whole
    session.write(decoder.decode(b"", final=True))
    return is_whole


def _follow(session: Session, job: JobShape, run_number: int, worker: str) -> int:
    from paddlecloud.cli.log_lines import LogPrinter

    printer = LogPrinter(session, is_prefixed=not worker)
    records = session.client.follow_logs(
        job["id"],
        replica=worker,
        run=run_number,
        tail=_lines(session),
        on_cut=lambda: session.note("the connection was cut; connecting again ..."),
    )
    try:
        for record in records:
            printer.take(record)
    finally:
        printer.finish()
    return 0


def _short(replica: ReplicaShape) -> str:
    return f"{replica['role']}-{replica['index']}"


def _short_name(worker: str, job_name: str) -> str:
    """`wide-deep-trainer-0` → `trainer-0`."""
    return worker.removeprefix(job_name + "-")


def _no_such_worker(worker: str, job_name: str, replicas: list[ReplicaShape]) -> NotFound:
    known = [_short(r) for r in replicas]
    shown = ", ".join(known[:6]) + (", ..." if len(known) > 6 else "")
    hint = f"it has {shown}" if known else "it has none yet: paddlecloud explain " + job_name
    return NotFound(f"{job_name} has no worker {worker}", hint=hint, field="-w")
