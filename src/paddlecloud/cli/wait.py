"""`paddlecloud wait JOB`: returns when the job has ended (or runs); its result is the exit code."""

from __future__ import annotations

from paddlecloud.cli import outcomes
from paddlecloud.cli.events import one_job
from paddlecloud.cli.session import Session
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Flag

USAGE = "paddlecloud wait [--for end|running] [--timeout TIME] <job>"
HELP = """
The exit code is 0 if the job succeeded (or runs, with --for running), 10 if it did not, 1 if the
time was up first.

Examples:
  paddlecloud wait wide-deep
  paddlecloud wait --for running --timeout 2m wide-deep
"""
FLAGS = (
    Flag(
        ("--for",),
        value="end|running",
        choices=("end", "running"),
        meaning="what to wait for (default end)",
    ),
    Flag(("--timeout",), value="TIME", meaning="give up after 90s, 10m, 2h (default never)"),
)
EXIT_TIME_UP = 1


def run(session: Session) -> int:
    ref = session.job(one_job(session, "wait"))
    timeout_s = _timeout_s(session)
    until = session.parsed.text("for", "end")
    job = session.client.get(ref)
    if until == "running":
        reached = session.client.wait(job["id"], "running", timeout_s=timeout_s)
    else:
        reached = outcomes.wait_for_end(session, job["id"], timeout_s=timeout_s)
    if reached is None:
        now = session.client.get(job["id"])
        session.note(f"error: time is up; {now['name']} is {now['phase']}")
        return EXIT_TIME_UP
    if reached["ended_at"] is None:
        session.say(f"{reached['name']}  {reached['phase']}")
        return 0
    session.say(outcomes.result_line(reached))
    return outcomes.exit_code(reached)


def _timeout_s(session: Session) -> float | None:
    if "timeout" not in session.parsed:
        return None
    from paddlecloud.forms.durations import parse_duration_s

    faults = FaultList()
    timeout_s = faults.read("--timeout", session.parsed.text("timeout"), parse_duration_s)
    faults.raise_if_any()
    return timeout_s
