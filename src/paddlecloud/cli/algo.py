"""`paddlecloud algo list|create|info|delete`: experiments that jobs belong to by `--algo-id`.

Without an action it lists them, as it always did. It is connected like `paddlecloud job`, takes its
connection flags and answers in its shapes; exit codes are those of `job`.
"""

from __future__ import annotations

import sys

from paddlecloud.cli import times
from paddlecloud.cli.job import answers, connection
from paddlecloud.cli.job.connection import JobSession
from paddlecloud.core.errors import InvalidInput, PaddleCloudError
from paddlecloud.forms.faults import FaultList, nearest
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.forms.go_flags import Parsed
    from paddlecloud.wire.algorithm_shapes import AlgorithmShape, AlgorithmWithJobsShape

USAGE = "paddlecloud algo [connection flags] [list | create | info | delete] [options]"
HELP = """
  list               the algorithms you may use
  create             make one: --algo-name NAME [--group-name GROUP] [--algo-remark TEXT]
  info ALGO_ID       one of them and its jobs; the name of one of your own does as well
  delete ALGO_ID ... forget them; their jobs stay

Examples:
  paddlecloud algo create --algo-name ctr_v2 --algo-remark "wider embedding"
  paddlecloud job train --algo-id algo-0123456789abcdef --job-name x --start-cmd "sh run.sh"
  paddlecloud algo info algo-0123456789abcdef
"""
JSON = Flag(("--json",), Kind.BOOL, meaning="list: print JSON")
NAME = Flag(("--algo-name", "--name"), value="NAME", meaning="create: its name, one of a kind")
GROUP = Flag(("--group-name",), value="GROUP", meaning="create: whose members may use it too")
REMARK = Flag(("--algo-remark", "--remark"), value="TEXT", meaning="create: a note")
SIZE = Flag(("--size",), Kind.INT, value="N", low=1, high=1000, meaning="info: so many jobs (100)")
FLAGS = (NAME, GROUP, REMARK, SIZE, JSON)
_FLAGS_OF = {
    "list": (JSON,),
    "create": (NAME, GROUP, REMARK, JSON),
    "info": (SIZE, JSON),
    "delete": (JSON,),
}
_WORDS = {"name": "--algo-name", "group": "--group-name", "remark": "--algo-remark"}
_HEADERS = ("algo_id", "algo_name", "group_name", "user_id", "jobs", "create_time")


def open_session(words: list[str]) -> JobSession:
    session = connection.split(words, _FLAGS_OF)
    if not session.action:
        session.action = "list"
    if session.action not in _FLAGS_OF:
        near = nearest(session.action, _FLAGS_OF)
        session.refuse_action(
            f"Oops, '{session.action}' is not a valid command or arg."
            " See 'paddlecloud algo --help'",
            hint=f"did you mean {near}?" if near else f"usage: {USAGE}",
        )
    return session


def run(session: JobSession) -> int:
    faults = session.faults
    asked = session.take(_FLAGS_OF[session.action])
    refs = [part for word in asked.positionals for part in word.replace(",", " ").split()]
    _check(session.action, asked, refs, faults)
    session.raise_if_any(hint="paddlecloud algo --help")
    try:
        if session.action == "list":
            return _list(session, asked)
        if session.action == "create":
            return _create(session, asked)
        if session.action == "info":
            return _info(session, refs[0], asked)
        return _delete(session, list(dict.fromkeys(refs)))
    except PaddleCloudError as error:
        session.debug(error)
        sys.stdout.flush()
        session.note(f"Error occurred: {_in_flags(error)}")
        if error.hint:
            session.note(f"hint:  {error.hint}")
        return 1


def _check(action: str, asked: Parsed, refs: list[str], faults: FaultList) -> None:
    if action in ("list", "create"):
        for word in refs:
            faults.add(word, "is not asked for here")
    elif not refs:
        faults.add("ALGO_ID", f"is missing: {action} which algorithm?")
    elif action == "info" and len(refs) > 1:
        faults.add("ALGO_ID", f"info takes one, not {len(refs)}", " ".join(refs))
    if action == "create" and not faults and not asked.text("algo-name").strip():
        faults.add("--algo-name", "is missing or empty")


def _in_flags(error: PaddleCloudError) -> str:
    """What the server says, in the words of the command line."""
    faults = error.faults if isinstance(error, InvalidInput) else ()
    each = [f"{_WORDS.get(f.field, f.field)} {f.problem}" for f in faults]
    return "; ".join(each) or error.message


# --- what is printed -------------------------------------------------------------------------


def _row(algorithm: AlgorithmShape) -> dict[str, Any]:
    return {
        "algoId": algorithm["id"],
        "algoName": algorithm["name"],
        "algoRemark": algorithm["remark"],
        "groupName": algorithm["group"],
        "userId": algorithm["account"],
        "createTime": times.for_reading(algorithm["created_at"]),
        "jobs": algorithm["jobs"],
    }


def _list(session: JobSession, asked: Parsed) -> int:
    rows = [_row(each) for each in session.client.algorithms()]
    if asked.switch("json"):
        found = {"algos": rows}
        session.say(answers.as_json(answers.envelope(found) if session.generation == 1 else found))
    elif not rows:
        session.say(answers.NO_DATA)
    else:
        keys = ("algoId", "algoName", "groupName", "userId", "jobs", "createTime")
        cells = [tuple(str(row[key]) for key in keys) for row in rows]
        session.write(answers.table(_HEADERS, cells))
    return 0


def _create(session: JobSession, asked: Parsed) -> int:
    made = session.client.create_algorithm(
        asked.text("algo-name"), group=asked.text("group-name"), remark=asked.text("algo-remark")
    )
    _print_one(session, _row(made))
    return 0


def _info(session: JobSession, ref: str, asked: Parsed) -> int:
    algorithm = session.client.algorithm(ref, limit=asked.number("size") or None)
    _print_one(session, {**_row(algorithm), "jobList": _jobs(algorithm)})
    return 0


def _jobs(algorithm: AlgorithmWithJobsShape) -> list[dict[str, Any]]:
    return [
        {
            "jobId": job["id"],
            "jobName": job["title"],
            "jobStatus": answers.status_word(job["phase"]),
            "userId": job["account"],
            "createTime": times.for_reading(job["submitted_at"]),
            "endTime": times.for_reading(job["ended_at"]),
        }
        for job in algorithm["items"]
    ]


def _print_one(session: JobSession, found: dict[str, Any]) -> None:
    session.say(answers.as_json(answers.envelope(found) if session.generation == 1 else found))


def _delete(session: JobSession, refs: list[str]) -> int:
    done: list[str] = []
    failed: list[dict[str, str]] = []
    for ref in refs:
        try:
            session.client.delete_algorithm(ref)
            done.append(ref)
        except PaddleCloudError as error:
            if error.code in ("server_unreachable", "not_logged_in"):
                raise
            failed.append({"algoId": ref, "message": error.message})
    message = "; ".join(each["message"] for each in failed) or "success"
    data: dict[str, Any] = {"algoIds": done}
    if failed:
        data["failed"] = failed
    session.say(answers.as_json(answers.envelope(data, code=int(bool(failed)), message=message)))
    session.flush()
    for each in failed:
        session.note(f"Error occurred: {each['message']}")
    return int(bool(failed))
