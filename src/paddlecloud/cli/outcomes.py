"""How a job ended, for people and for the exit code: 0 when it succeeded, 10 when it did not.

Called by the verbs that wait for a job. It never asks the server anything but to wait.
"""

from __future__ import annotations

from paddlecloud.cli import times
from paddlecloud.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import FailureShape, JobShape

EXIT_JOB_FAILED = 10
# After this long without an end it is said what is being waited for.
QUIET_S = 10.0


def exit_code(job: JobShape) -> int:
    return 0 if job["phase"] == "Succeeded" else EXIT_JOB_FAILED


def result_line(job: JobShape) -> str:
    """`wide-deep  Failed  exit 1 in trainer-1, 3m12s after start`"""
    words = [f"{job['name']}  {job['phase']}"]
    failure = job["failure"]
    took = ""
    if job["started_at"] and job["ended_at"]:
        took = times.fine(times.between_s(job["started_at"], job["ended_at"]))
    if failure is not None and job["phase"] == "Failed":
        words.append(f"{how_it_ended(failure)} in {failure['replica']}, {took} after start")
        words.append(f"paddlecloud describe {job['name']}")
    else:
        if job["phase"] != "Succeeded" and job["reason"]:
            words.append(job["reason"])
        if took:
            words.append(f"after {took}")
    return "  ".join(words)


def how_it_ended(failure: FailureShape) -> str:
    """`exit 1`, `signal 9 (KILL)`, `out of memory`, `could not start`."""
    if failure["cause"] == "signaled":
        return f"signal {failure['signal']}{_signal_name(failure['signal'])}"
    if failure["cause"] == "out_of_memory":
        return "out of memory"
    if failure["cause"] == "start_failed":
        return "could not start"
    return f"exit {failure['code']}"


def _signal_name(number: int) -> str:
    # The numbers are those of the machine the job ran on: Linux, wherever we are.
    names = {1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL"}
    names.update({11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM", 24: "XCPU", 25: "XFSZ"})
    return f" ({names[number]})" if number in names else ""


def wait_for_end(session: Session, ref: str, *, timeout_s: float | None = None) -> JobShape | None:
    """Wait, saying on the standard error what for when it takes long."""
    import time

    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    said = ""
    while True:
        turn_s = QUIET_S
        if deadline is not None:
            turn_s = min(turn_s, deadline - time.monotonic())
            if turn_s <= 0:
                return None
        job = session.client.wait(ref, timeout_s=turn_s)
        if job is not None:
            return job
        now = session.client.get(ref)
        text = f"{now['name']} is {now['phase']}" + (f": {now['reason']}" if now["reason"] else "")
        if text != said:
            session.note(text)
            said = text
