"""`paddlecloud status`: which platform answers, what it has, and what it is doing."""

from __future__ import annotations

from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.cli.sizes import counted
from paddlecloud.core.errors import ServerUnreachable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import CapacityShape, FileServiceShape, RestartShape, StatusShape

USAGE = "paddlecloud status"
HELP = """
Examples:
  paddlecloud status
  paddlecloud status -o json
"""
BEGINS_WITHIN_S = 2.0
FLAGS = (output_flag("table", "json", "yaml"),)


def run(session: Session) -> int:
    try:
        status = session.client.status()
    except ServerUnreachable:
        if (known := _between_two_lives(session)) is not None:
            raise known from None
        raise
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_object

        print_object(session, status, form)  # type: ignore[arg-type]
        return 0
    status = _begun(session, status)
    jobs = status["jobs"]
    session.say(platform_line(status))
    session.say(f"server     {status['version']}, pid {status['pid']}, cluster {status['cluster']}")
    if status["last_restart"] is not None:
        session.say(f"restarted  {_restarts(status['restarts'], status['last_restart'])}")
    session.say(f"account    {status['account']}")
    capacity = status["capacity"]
    if capacity is not None:
        free = capacity["free"]
        session.say(
            f"free       {free['cpu']} of {capacity['cpu']} cpu{_per_core(capacity)}, "
            f"{gibibytes(free['memory'])} of {gibibytes(capacity['memory'])}, "
            f"{free['gpu']} of {capacity['gpu']} gpu"
        )
    session.say(
        f"jobs       {jobs['live']} live: {jobs['running']} running, {jobs['queued']} queued"
    )
    if files := status.get("pfs"):
        session.say(f"files      {_file_service(files, status['endpoint'])}")
    for note in status["notes"]:
        session.say(f"note       {note}")
    return 0


def _between_two_lives(session: Session) -> ServerUnreachable | None:
    """What this machine's supervisor knows, if the silent server is its own."""
    from paddlecloud.cli import local_platform

    state = local_platform.state_directory()
    facts = local_platform.supervision(state)
    port = facts["parts"]["server"]["port"] if facts else 0
    if local_platform.lock_holder(state):
        return None  # it is there; why it was not reached is no business of its supervisor's
    if port and session.profile().endpoint.endswith(f":{port}"):
        known = local_platform.not_there(state)
        return ServerUnreachable(known.message, hint=known.hint)
    return None


def _begun(session: Session, status: StatusShape) -> StatusShape:
    """Right after `up` the file server may need a moment; people want to see the whole."""
    import time

    until_s = time.monotonic() + BEGINS_WITHIN_S
    while status.get("pfs", {}).get("state") == "starting" and time.monotonic() < until_s:
        time.sleep(0.05)
        status = session.client.status()
    return status


def _file_service(files: FileServiceShape, endpoint: str) -> str:
    """`http://127.0.0.1:41233   (rename atomic, fsync works)`: the way files go."""
    from urllib.parse import urlsplit

    place = urlsplit(endpoint)
    host = f"[{place.hostname}]" if ":" in (place.hostname or "") else place.hostname
    url = files["url"] or (f"{place.scheme}://{host}:{files['port']}" if files["port"] else "")
    what = files.get("promises") or files["state"]
    return f"{url}   ({what})" if url else what


def _restarts(count: int, last: RestartShape) -> str:
    """`2 times, last 3m ago: killed by signal 9`"""
    from paddlecloud.cli.times import age

    times = "once" if count == 1 else f"{count} times"
    return f"{times}, last {age(last['at'])} ago: {last['reason']}"


def _per_core(capacity: CapacityShape) -> str:
    """` (4 per core)` where jobs share cores, so that nobody takes a cpu for a core."""
    from paddlecloud.core.resources import parse_cpu

    shares = parse_cpu(capacity["cpu"]) / 1000 / max(1, capacity["cores"])
    return "" if shares == 1 else f" ({shares:g} per core)"


def platform_line(status: StatusShape) -> str:
    """`platform   http://127.0.0.1:8000   (embedded engine, 2 cores, 23.4Gi, 0 gpu)`"""
    capacity = status["capacity"]
    what = f"{status['engine']} engine"
    if capacity is not None:
        what += f", {counted(capacity['cores'], 'core')}, {gibibytes(capacity['memory'])}"
        what += f", {capacity['gpu']} gpu"
    return f"platform   {status['endpoint']}   ({what})"


def gibibytes(text: str) -> str:
    """`24537123Ki` → `23.4Gi`."""
    from paddlecloud.core.resources import parse_memory

    return f"{parse_memory(text) / 2**30:.1f}Gi".replace(".0Gi", "Gi")
