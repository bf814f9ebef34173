"""`paddlecloud jobs`: running jobs as the design document shows them.

NAMESPACE   NAME   DESIRED   SUCCESSFUL   AGE
"""

from __future__ import annotations

from paddlecloud.cli import tables, times
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.get import say_where_jobs_are
from paddlecloud.cli.session import Session
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud jobs [-a]"
HELP = """
The namespace is your user name as a DNS label. `paddlecloud get jobs -o wide` says more.

Examples:
  paddlecloud jobs
  paddlecloud jobs -a -o json
"""
FLAGS = (
    Flag(("-a", "-all"), Kind.BOOL, meaning="ended jobs too"),
    output_flag("table", "json", "yaml", "name"),
)


def run(session: Session) -> int:
    from paddlecloud.core.names import dns_label

    phase = "all" if session.parsed.switch("a") else "live"
    jobs = list(session.client.list_jobs(phase))
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_items

        print_items(session, jobs, form)  # type: ignore[arg-type]
        return 0
    rows = []
    for job in jobs:
        trainers = job["roles"].get("trainer")
        rows.append(
            (
                dns_label(job["account"]),
                job["name"],
                str(trainers["wanted"] if trainers else 0),
                str(trainers["succeeded"] if trainers else 0),
                times.age(job["submitted_at"]),
            )
        )
    headers = ("NAMESPACE", "NAME", "DESIRED", "SUCCESSFUL", "AGE")
    session.write(tables.render(headers, rows, session.terminal))
    if not rows:
        say_where_jobs_are(session)
    return 0
