"""`paddlecloud explain JOB`: why it waits, who is ahead, when it may start, what would help."""

from __future__ import annotations

from paddlecloud.cli import times
from paddlecloud.cli.events import one_job
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session

USAGE = "paddlecloud explain <job>"
HELP = """
The answer comes from the same planner that starts jobs.

Examples:
  paddlecloud explain big
  paddlecloud explain big -o json
"""
FLAGS = (output_flag("table", "json", "yaml"),)


def run(session: Session) -> int:
    answer = session.client.explain(session.job(one_job(session, "explain")))
    form = session.parsed.text("o", "table")
    if form != "table":
        from paddlecloud.cli.output import print_object

        print_object(session, answer, form)  # type: ignore[arg-type]
        return 0
    from paddlecloud.wire.explanation import explanation_lines

    for line in explanation_lines(answer, times.since_s(answer["since"])):
        session.say(line)
    return 0
