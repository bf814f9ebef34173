"""`paddlecloud down`: stops the server of this machine. Running jobs go on; `--kill-jobs` ends
them first."""

from __future__ import annotations

from paddlecloud.cli import local_platform, platform_life
from paddlecloud.cli.local_platform import Running
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.config import Profile

USAGE = "paddlecloud down [--kill-jobs] [--state FOLDER]"
HELP = """
Examples:
  paddlecloud down
  paddlecloud down --kill-jobs
"""
FLAGS = (
    Flag(("--kill-jobs",), Kind.BOOL, meaning="kill all your running jobs first"),
    Flag(("--state",), value="FOLDER", meaning="state folder (default ~/.paddlecloud)"),
)
STOP_TIMEOUT_S = 30.0
KILL_TIMEOUT_S = 120.0


def run(session: Session) -> int:
    from paddlecloud.cli.up import Progress

    local_platform.require_linux()
    state = local_platform.state_directory(session.parsed.text("state"))
    owner = local_platform.lock_holder(state, "supervisor") or local_platform.lock_holder(state)
    if not owner:
        session.say("platform   not running")
        return 0
    live = 0
    if session.parsed.switch("kill-jobs"):
        found = local_platform.settled(state)
        live = _end_jobs(session, found) if found else 0
    else:  # one that does not answer is stopped all the same
        found = local_platform.running(state)
        live = _live(found) if found else 0
    platform_life.stop(
        state, timeout_s=STOP_TIMEOUT_S, on_wait=Progress(session, "waiting for its end")
    )
    session.say(f"platform   stopped (pid {found.pid if found else owner})")
    if live:
        noun = "1 job goes" if live == 1 else f"{live} jobs go"
        session.say(f"jobs       {noun} on; paddlecloud up finds them again")
    return 0


def _live(found: Running) -> int:
    """How many jobs will go on; unknown counts as none, stopping must not fail for it."""
    from paddlecloud.sdk.client import Client

    try:
        with Client(profile=_profile(found)) as client:
            return int(client.status()["jobs"]["live"])
    except PaddleCloudError:
        return 0


def _end_jobs(session: Session, found: Running) -> int:
    """Kill what is live and wait for it; returns how many would not end in time."""
    from paddlecloud.sdk.client import Client

    left = 0
    with Client(profile=_profile(found)) as client:
        jobs = [job["id"] for job in client.list_jobs("live")]
        for job_id in jobs:
            client.cancel(job_id, "the platform is being stopped")
        for job_id in jobs:
            if client.wait(job_id, timeout_s=KILL_TIMEOUT_S) is None:
                left += 1
    if jobs:
        session.say(f"jobs       {len(jobs) - left} killed")
    return left


def _profile(found: Running) -> Profile:
    from paddlecloud.sdk.config import load_profile

    profile = load_profile(endpoint=found.endpoint)
    if profile.token or profile.password or profile.usercert:
        return profile
    return local_platform.profile_at(found, "", "")
