"""`paddlecloud scale JOB N`: another number of trainers for a job that runs.

The last ones leave first and new ones come at the end. It is asked for and goes on in the
background; `get jobs` and `events` show it.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud scale <job> N"
HELP = """
N lies between the -min_instance and -max_instance the job was submitted with. Only jobs on a
cluster change their size while they run.

Examples:
  paddlecloud submit -jobname wide -p 2 -min_instance 1 -max_instance 4 -entry "sh run.sh" ./pkg
  paddlecloud scale wide 4
"""
FLAGS = (
    Flag(
        ("--replicas",),
        Kind.INT,
        value="N",
        low=1,
        high=1_000_000,
        meaning="as N, for those who know it from kubectl",
    ),
)


def run(session: Session) -> int:
    ref, *rest = session.parsed.positionals or ("",)
    if "replicas" in session.parsed:
        rest.append(str(session.parsed.number("replicas")))
    if not ref or len(rest) != 1:
        raise InvalidInput("scale which job, to how many trainers?", hint=f"usage: {USAGE}")
    if not rest[0].isdecimal() or len(rest[0]) > 7 or not int(rest[0]):
        raise InvalidInput(f"{rest[0][:40]} is no number of trainers", hint=f"usage: {USAGE}")
    job = session.client.scale(session.job(ref), int(rest[0]))
    session.say(f"{job['name']}  asked for {int(rest[0])} trainers  {job['id']}")
    return 0
