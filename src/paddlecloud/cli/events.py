"""`paddlecloud events JOB`: what happened to a job, oldest first."""

from __future__ import annotations

from paddlecloud.cli import tables, times
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput

USAGE = "paddlecloud events <job>"
HELP = """
Examples:
  paddlecloud events wide-deep
  paddlecloud events wide-deep -o json
"""
FLAGS = (output_flag("table", "wide", "json", "yaml"),)


def run(session: Session) -> int:
    ref = one_job(session, "events")
    events = list(session.client.events(session.job(ref)))
    form = session.parsed.text("o", "table")
    if form in ("json", "yaml"):
        from paddlecloud.cli.output import print_object

        print_object(session, {"items": events}, form)
        return 0
    rows = []
    for event in events:
        at = times.for_reading(event["at"]) if form == "wide" else times.age(event["at"])
        run_number = str(event["run"])
        rows.append(
            (at, run_number, event["severity"], event["reason"], event["replica"], event["message"])
        )
    headers = ("TIME" if form == "wide" else "AGE", "RUN", "TYPE", "REASON", "WHO", "MESSAGE")
    session.write(tables.render(headers, rows, session.terminal))
    return 0


def one_job(session: Session, verb: str) -> str:
    words = session.parsed.positionals
    if len(words) != 1:
        raise InvalidInput(f"{verb} takes one job", hint=f"paddlecloud {verb} JOB")
    return words[0]
