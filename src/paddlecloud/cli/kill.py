"""`paddlecloud kill [-rm] JOB...`: stops jobs; with `-rm` also removes them from history.

Stopping is asked for and goes on in the background, as it always has; `--wait` stays until the
last process is gone.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud kill [-rm] <job> ..."
HELP = """
A job is a name or an id. Its processes get TERM, after the job's grace KILL; the logs stay unless
-rm is given.

Examples:
  paddlecloud kill wide-deep
  paddlecloud kill -rm wide-deep
  paddlecloud kill --wait a b c
"""
FLAGS = (
    Flag(("-rm",), Kind.BOOL, meaning="remove the job from history, logs included"),
    Flag(("--wait",), Kind.BOOL, meaning="return when nothing of it runs any more"),
    Flag(("--reason",), value="TEXT", meaning="why; kept with the job"),
)
ENDED = ("Succeeded", "Failed", "Killed", "TimedOut")


def run(session: Session) -> int:
    jobs = session.parsed.positionals
    if not jobs:
        raise InvalidInput("kill which job?", hint=f"usage: {USAGE}")
    missing: list[tuple[str, NotFound]] = []
    for ref in jobs:
        try:
            _kill(session, ref)
        except NotFound as error:  # the others are killed all the same
            missing.append((ref, error))
    for _, other in missing[1:]:
        session.note(f"error: {other.message}")
    if missing:
        session.job(missing[0][0])
        raise missing[0][1]
    return 0


def _kill(session: Session, ref: str) -> None:
    client = session.client
    session.job(ref)
    if session.parsed.switch("rm"):
        job = client.get(ref)
        client.delete(job["id"])
        session.say(f"{job['name']}  removed  {job['id']}")
        return
    job = client.get(ref)
    if job["phase"] in ENDED:
        session.say(f"{job['name']}  {job['phase']} already  {job['id']}")
        return
    client.cancel(job["id"], session.parsed.text("reason"))
    if session.parsed.switch("wait"):
        ended = client.wait(job["id"])
        session.say(f"{job['name']}  {ended['phase'] if ended else 'Killed'}  {job['id']}")
        return
    session.say(f"{job['name']}  stopping  {job['id']}")
