"""`paddlecloud rerun JOB`: an ended job once more, with the very bytes of its package."""

from __future__ import annotations

from paddlecloud.cli.events import one_job
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud rerun [--follow | --wait] <job>"
HELP = """
The job keeps its id and gets the next run number; logs of earlier runs stay
(paddlecloud logs --run 1 JOB).

Examples:
  paddlecloud rerun wide-deep
  paddlecloud rerun --follow wide-deep
"""
FLAGS = (
    Flag(("--follow", "-f"), Kind.BOOL, meaning="print the logs as they are written, to the end"),
    Flag(("--wait",), Kind.BOOL, meaning="wait for the end of the job"),
)


def run(session: Session) -> int:
    ref = session.job(one_job(session, "rerun"))
    job = session.client.rerun(ref)
    session.say(f"{job['name']}  run {job['run']}  {job['id']}")
    session.flush()
    if session.parsed.switch("follow") or session.parsed.switch("wait"):
        from paddlecloud.cli import submit

        stay = submit.follow if session.parsed.switch("follow") else submit.wait
        return stay(session, job)
    return 0
