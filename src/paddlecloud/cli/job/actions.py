"""`paddlecloud job state|info|list|kill|rerun|delete|replace|favorite`: asking and ordering.

Ids may be repeated and separated by commas or blanks; a name does as well as an id. An order for
several jobs is carried out for all that can be; the answer names the others and the exit code is 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from paddlecloud.cli.job import answers
from paddlecloud.cli.job.connection import JobSession
from paddlecloud.core.errors import InvalidInput, PaddleCloudError
from paddlecloud.core.names import plain_job_name
from paddlecloud.forms.go_flags import Flag, Kind, Parsed
from paddlecloud.forms.pods import parse_pods

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.shapes import JobWithSpecShape

MAX_SIZE = 1000
JSON = Flag(("--json",), Kind.BOOL, meaning="print JSON")
PODS = Flag(
    ("--pods",),
    value='"pod=P,host=H;..."',
    meaning="the pods to move, each with the host it has to leave",
)
REPLACE_USAGE = 'paddlecloud job replace JOB_ID --pods "pod=P,host=H;pod=P,host=H"'
LIST_FLAGS = (
    Flag(
        ("--type",),
        value="TYPE",
        choices=("normal", "favorite", "group"),
        meaning="normal, favorite or group (default normal)",
    ),
    Flag(("--page",), Kind.INT, value="N", low=1, high=10**6, meaning="which page (default 1)"),
    Flag(
        ("--size",), Kind.INT, value="N", low=1, high=MAX_SIZE, meaning="jobs per page (default 10)"
    ),
    Flag(("--job-name",), value="NAME", meaning="only jobs of this name"),
    JSON,
)
FAVORITE_FLAGS = (
    Flag(("--remove",), Kind.BOOL, meaning="take the mark away"),
    JSON,
)


def _parsed(session: JobSession, flags: Sequence[Flag]) -> Parsed:
    parsed = session.take(flags)
    session.raise_if_any(hint=f"paddlecloud job {session.action} --help")
    return parsed


def ids_of(words: Iterable[str]) -> list[str]:
    """`id1,id2`, `id1, id2`, `id1 id2`: each once, in order."""
    found = [part for word in words for part in word.replace(",", " ").split()]
    return list(dict.fromkeys(found))


def _ids(session: JobSession) -> list[str]:
    return _some(session, ids_of(_parsed(session, (JSON,)).positionals))


def _some(session: JobSession, ids: list[str]) -> list[str]:
    if not ids:
        raise InvalidInput(
            f"{session.action} which job?", hint=f"usage: paddlecloud job {session.action} JOB_ID"
        )
    return ids


def _one_id(session: JobSession) -> str:
    ids = _ids(session)
    if len(ids) > 1:
        raise InvalidInput(
            f"{session.action} takes one job, not {len(ids)}",
            hint=f"usage: paddlecloud job {session.action} JOB_ID",
        )
    return ids[0]


def state(session: JobSession) -> int:
    ref = _one_id(session)
    found = answers.state(session.client.get(ref))
    if session.generation == 1:
        found = answers.envelope({"jobStatus": found["jobStatus"]})
    session.say(answers.as_json(found))
    return 0


def info(session: JobSession) -> int:
    ref = _one_id(session)
    job = session.client.get(ref)
    replicas = session.client.replicas(job["id"])
    found = answers.details(job, replicas, session.client.endpoint)
    session.say(answers.as_json(answers.envelope(found) if session.generation == 1 else found))
    return 0


# --- listing ---------------------------------------------------------------------------------


def list_jobs(session: JobSession) -> int:
    asked = _parsed(session, LIST_FLAGS)
    if asked.positionals:
        raise InvalidInput(
            f"what is {asked.positionals[0]}?", hint="usage: paddlecloud job list [options]"
        )
    page, size = asked.number("page", 1), asked.number("size", 10)
    rows = [answers.row(job) for job in _page(session, asked, (page - 1) * size, size)]
    if not asked.switch("json"):
        session.write(answers.listed(rows, session.generation))
        return 0
    found: dict[str, Any] = {"jobs": rows}
    session.say(answers.as_json(answers.envelope(found) if session.generation == 1 else found))
    return 0


def _page(session: JobSession, asked: Parsed, skip: int, size: int) -> list[JobWithSpecShape]:
    jobs: list[JobWithSpecShape] = []
    for job in _matching(session, asked.text("job-name"), asked.text("type") or "normal"):
        if skip > 0:
            skip -= 1
            continue
        jobs.append(job)
        if len(jobs) == size:
            break
    return jobs


def _matching(session: JobSession, name: str, kind: str) -> Iterator[JobWithSpecShape]:
    """Newest first. The name a user gave is in the specification, which a list does not bring."""
    # What such a job is called here, but for its end.
    plain = plain_job_name(name, "000000")[:-6]
    for job in session.client.list_jobs("all", kind=kind):
        if name and job["name"] != name and not job["name"].startswith(plain):
            continue
        whole = session.client.get(job["id"])
        if not name or answers.name_of(whole) == name:
            yield whole


# --- orders ----------------------------------------------------------------------------------


def kill(session: JobSession) -> int:
    return _order(session, lambda ref: session.client.cancel(_id_of(session, ref)))


def rerun(session: JobSession) -> int:
    return _order(session, lambda ref: session.client.rerun(_id_of(session, ref)))


def delete(session: JobSession) -> int:
    return _order(session, lambda ref: session.client.delete(_id_of(session, ref)))


def replace(session: JobSession) -> int:
    """Move pods off hosts: each ends and starts again."""
    faults = session.faults
    parsed = session.take((PODS, JSON))
    is_mistyped = bool(faults)  # then it may well be --pods that is meant
    ids = ids_of(parsed.positionals)
    if len(ids) != 1:
        said = "replace which job?" if not ids else f"replace takes one job, not {len(ids)}"
        faults.add("JOB_ID", said, " ".join(ids))
    pods: dict[str, str] = {}
    if "pods" in parsed:
        pods = parse_pods(parsed.text("pods"), faults, parsed.given["pods"].written)
    elif not is_mistyped:
        faults.add("--pods", "is needed: which pods, and the host each has to leave")
    session.raise_if_any(hint=f"write {REPLACE_USAGE}")
    try:
        job = session.client.move(ids[0], pods)
    except InvalidInput as error:  # the server knows the pods: the command line itself was right
        each = [f"{fault.field} {fault.problem}" for fault in error.faults] or [error.message]
        raise _Refused("; ".join(each), hint=error.hint) from error
    session.say(answers.as_json(answers.envelope({"jobIds": [job["id"]], "pods": list(pods)})))
    return 0


class _Refused(PaddleCloudError):
    code = "refused"


def favorite(session: JobSession) -> int:
    """Mark jobs for `list --type favorite`, or take the marks away."""
    parsed = _parsed(session, FAVORITE_FLAGS)
    is_marked = not parsed.switch("remove")
    return _order(
        session,
        lambda ref: session.client.mark(_id_of(session, ref), is_marked),
        ids_of(parsed.positionals),
    )


def _id_of(session: JobSession, ref: str) -> str:
    return session.client.get(ref)["id"]


def _order(session: JobSession, give: Any, ids: list[str] | None = None) -> int:
    done: list[str] = []
    failed: list[dict[str, str]] = []
    for ref in _ids(session) if ids is None else _some(session, ids):
        try:
            give(ref)
            done.append(ref)
        except PaddleCloudError as error:
            if error.code in ("server_unreachable", "not_logged_in"):
                raise
            failed.append({"jobId": ref, "message": error.message})
    if not failed:
        session.say(answers.as_json(answers.envelope({"jobIds": done})))
        return 0
    message = "; ".join(each["message"] for each in failed)
    found = answers.envelope({"jobIds": done, "failed": failed}, code=1, message=message)
    session.say(answers.as_json(found))
    session.flush()
    for each in failed:
        session.note(f"Error occurred: {each['message']}")
    return 1
