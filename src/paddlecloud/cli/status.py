"""`paddlecloud status`: which platform answers, what it has, and what it is doing."""

from __future__ import annotations

from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import StatusShape

USAGE = "paddlecloud status"
HELP = """
Examples:
  paddlecloud status
  paddlecloud status -o json
"""
FLAGS = (output_flag("table", "json", "yaml"),)


def run(session: Session) -> int:
    status = session.client.status()
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_object

        print_object(session, status, form)  # type: ignore[arg-type]
        return 0
    jobs = status["jobs"]
    session.say(platform_line(status))
    session.say(f"server     {status['version']}, pid {status['pid']}, cluster {status['cluster']}")
    session.say(f"account    {status['account']}")
    capacity = status["capacity"]
    if capacity is not None:
        free = capacity["free"]
        session.say(
            f"free       {free['cpu']} of {capacity['cpu']} cpu, "
            f"{gibibytes(free['memory'])} of {gibibytes(capacity['memory'])}, "
            f"{free['gpu']} of {capacity['gpu']} gpu"
        )
    session.say(
        f"jobs       {jobs['live']} live: {jobs['running']} running, {jobs['queued']} queued"
    )
    for note in status["notes"]:
        session.say(f"note       {note}")
    return 0


def platform_line(status: StatusShape) -> str:
    """`platform   http://127.0.0.1:8000   (embedded engine, 2 cpu, 23.4Gi, 0 gpu)`"""
    capacity = status["capacity"]
    what = f"{status['engine']} engine"
    if capacity is not None:
        what += f", {capacity['cores']} cpu, {gibibytes(capacity['memory'])}"
        what += f", {capacity['gpu']} gpu"
    return f"platform   {status['endpoint']}   ({what})"


def gibibytes(text: str) -> str:
    """`24537123Ki` → `23.4Gi`."""
    from paddlecloud.core.resources import parse_memory

    return f"{parse_memory(text) / 2**30:.1f}Gi".replace(".0Gi", "Gi")
