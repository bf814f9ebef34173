"""`paddlecloud outputs JOB [FOLDER]`: lists what a job left in its output path, or fetches it.

Where that is the server says; it is what the job itself saw as `$OUTPUT_PATH`. The same command
goes on where a fetch was stopped, and what is here already does not travel again.
"""

from __future__ import annotations

from paddlecloud.cli import sizes, tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import cp
from paddlecloud.cli.pfs.ls import changed
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput, NotAllowed, NotFound
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.shapes import JobShape

USAGE = "paddlecloud outputs [-v] [-o json|name] <job> [FOLDER]"
HELP = """
What a job writes below $OUTPUT_PATH is kept when it has ended. Without FOLDER it is listed, with
FOLDER it is fetched into that folder, which is made if need be. Only what is not there already is
fetched; stopped or cut off, run it again. Of a job that still runs it is what is there so far.

Examples:
  paddlecloud outputs wide-deep
  paddlecloud outputs wide-deep ./wide-deep
  paddlecloud outputs -o json wide-deep
"""
FLAGS = (
    Flag(("-v", "--verbose"), Kind.BOOL, meaning="one line per file that is fetched"),
    output_flag("json", "yaml", "name"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not 1 <= len(words) <= 2:
        raise InvalidInput("outputs takes a job, and perhaps a folder", hint=f"usage: {USAGE}")
    job = session.client.get(session.job(words[0]))
    session.job_ref = ""  # the job is there: what is missing from now on is a file
    try:
        found = list(session.client.outputs(job))
    except NotAllowed as error:
        raise NotAllowed(
            f"what {job['name']} left is in the home of {job['account']}, for nobody else to read",
            hint=f"{job['account']} can share a file by a link: paddlecloud publish PATH",
        ) from error
    if len(words) == 1:
        return _list(session, job, found)
    if not found:
        raise NotFound(_none(job), hint=_why_none(job))
    if job["ended_at"] is None:
        session.note(_so_far(job))
    return cp.copy(session, [job["output"] + "/"], words[1])


def _list(session: Session, job: JobShape, found: list[dict[str, Any]]) -> int:
    form = session.parsed.text("o")
    if form:
        from paddlecloud.cli.output import print_items

        print_items(session, found, form)
        return 0
    if not found:
        session.note(f"{_none(job)}. {_why_none(job)}")
        return 0
    rows = [(sizes.binary(entry["size"]), changed(entry), entry["name"]) for entry in found]
    session.write(tables.render(("SIZE", "CHANGED", "NAME"), rows, session.terminal))
    session.flush()
    if job["ended_at"] is None:
        session.note(_so_far(job))
    total = sizes.binary(sum(entry["size"] for entry in found))
    fetch = f"paddlecloud outputs {job['name']} FOLDER"
    session.note(f"{sizes.counted(len(found), 'file')}, {total}; to fetch: {fetch}")
    return 0


def _so_far(job: JobShape) -> str:
    return f"note: {job['name']} is {job['phase']}; this is what is there so far"


def _none(job: JobShape) -> str:
    if job["ended_at"] is None:
        return f"{job['name']} is {job['phase']} and has written nothing to $OUTPUT_PATH so far"
    if job["started_at"] is None:
        return f"{job['name']} never started, so it left nothing"
    return f"{job['name']} left nothing: it wrote nothing to $OUTPUT_PATH"


def _why_none(job: JobShape) -> str:
    if job["started_at"] is None:
        return f"paddlecloud explain {job['name']} says why"
    return f"paddlecloud logs {job['name']} shows what it printed"
