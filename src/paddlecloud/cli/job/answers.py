"""What `paddlecloud job` prints, in the shapes that scripts of 1.x and of 2.x read.

Pure functions from the server's answers to text: status words, the JSON blocks, the list. JSON has
an indent of 4, sorted keys, and keeps non-ASCII text. Called by the actions; prints nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from paddlecloud.cli import times
from paddlecloud.wire import job_words
from paddlecloud.wire.job_words import status_word
from paddlecloud.wire.job_workspace import command_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.shapes import JobWithSpecShape, ReplicaShape

READY = "Congratulations! The new job is ready for training"
ABORTED = "Oops...The job submission aborted due to error, "
NO_DATA = "No data."
_STARS = "*" * 27


def as_json(value: object) -> str:
    return json.dumps(value, indent=4, sort_keys=True, ensure_ascii=False)


def envelope(data: object, *, code: int = 0, message: str = "success") -> dict[str, Any]:
    return {"code": code, "data": data, "message": message}


def name_of(job: Mapping[str, Any]) -> str:
    """The name the user gave."""
    return job_words.name_of(_notes(job), str(job["name"]))


def group_of(job: Mapping[str, Any]) -> str:
    """As the server says; if that group is gone, as the job was sent."""
    return str(job["group"] or job_words.group_of(job.get("spec", {}), str(job["account"])))


def _notes(job: Mapping[str, Any]) -> Mapping[str, str]:
    notes: Mapping[str, str] = job.get("spec", {}).get("annotations", {})
    return notes


def used_s(job: Mapping[str, Any]) -> int:
    if not job["started_at"]:
        return 0
    if job["ended_at"]:
        return int(times.between_s(job["started_at"], job["ended_at"]))
    return int(times.since_s(job["started_at"]))


def row(job: JobWithSpecShape) -> dict[str, Any]:
    """A job of a list."""
    return {
        "jobId": job["id"],
        "jobName": name_of(job),
        "jobStatus": status_word(job["phase"], job.get("kill")),
        "groupName": group_of(job),
        "clusterName": job["cluster"],
        "userId": job["account"],
        "createTime": times.for_reading(job["submitted_at"]),
        "startTime": times.for_reading(job["started_at"]),
        "endTime": times.for_reading(job["ended_at"]),
        "usedTime": used_s(job),
    }


def state(job: JobWithSpecShape) -> dict[str, Any]:
    return {
        "jobId": job["id"],
        "jobStatus": status_word(job["phase"], job.get("kill")),
        "usedTime": used_s(job),
    }


def details(
    job: JobWithSpecShape, replicas: Sequence[ReplicaShape], endpoint: str
) -> dict[str, Any]:
    """All of one job but its configuration file, which the old client hid as well."""
    spec = job["spec"]
    notes = spec.get("annotations", {})
    found = {
        **row(job),
        "jobType": "paddle",
        "jobVersion": notes.get("job-version") or spec["runtime"],
        "startCMD": command_of(spec["entry"]),
        "jobAuth": notes.get("permission", "private"),
        "jobTags": notes.get("tags", ""),
        "jobRemark": notes.get("remark", ""),
        "algoId": notes.get("algo-id", ""),
        "mode": notes.get("launcher") or job["mode"],
        "priority": job["priority"],
        "reason": job["reason"],
        "run": job["run"],
        "trainerList": [],
        "pserverList": [],
    }
    # An older attempt of a replica is history: it comes before the current one.
    current = {(each["role"], each["index"]): each for each in replicas}
    for replica in current.values():
        short = f"{replica['role']}-{replica['index']}"
        entry = {
            "resourceName": f"{job['id']}-{short}",
            "status": replica["state"],
            "host": replica["address"],
            "logUrl": f"{endpoint}/api/v2/jobs/{job['id']}/logs?replica={short}",
        }
        if replica["role"] in ("trainer", "pserver"):
            found[f"{replica['role']}List"].append(entry)
    return found


def listed(rows: Sequence[Mapping[str, Any]], generation: int) -> str:
    """Per job a line of stars with its number, and its facts below."""
    if not rows:
        return f"{NO_DATA}\n"
    # Scripts of 2.x look for `jobStatus:`, so no blank stands before that colon.
    colon = " : " if generation == 1 else ": "
    lines = []
    for number, each in enumerate(rows, start=1):
        width = max(len(key) for key in each)
        lines.append(f"{_STARS} {number}. row {_STARS}")
        lines += [f"{key:>{width}}{colon}{value}" for key, value in each.items()]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A rule of `=`, the headers, a rule of `-`, and cells joined by ` | `."""
    cells = [list(headers), *(list(each) for each in rows)]
    widths = [max(len(line[at]) for line in cells) for at in range(len(headers))]
    texts = [" | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) for line in cells]
    wide = max(len(text) for text in texts)
    lines = ["=" * wide, texts[0], "-" * wide, *texts[1:]]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def trained(job: Mapping[str, Any], generation: int, *, only_json: bool) -> str:
    """The end of a successful `train`."""
    if generation == 1:
        if only_json:
            return as_json(envelope({"jobId": job["id"]})) + "\n"
        return f"{READY} and the returned jobId = {job['id']}\n"
    answer = {"groupName": group_of(job), "jobId": job["id"], "userId": job["account"]}
    head = "" if only_json else f"{READY}.\n"
    return f"{head}{as_json(answer)}\n"
