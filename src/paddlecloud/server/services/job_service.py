"""Jobs in the words of the second generation: what `/v1` of the job service takes and gives.

Everything is done by the same services as in our own interface; here it is only translated. A job
is submitted with the files that wait for it (`pending_files`), laid out as the command line does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from paddlecloud import clock
from paddlecloud.core.errors import CannotFit, Fault, InvalidInput, NotFound, PaddleCloudError
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.forms import config_ini, rest_v1
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch
from paddlecloud.server.exchange import Request, rfc3339_seconds
from paddlecloud.server.process import here
from paddlecloud.server.services import (
    clusters,
    groups,
    idempotency,
    job_rows,
    orders,
    quotas,
    sharing,
    submitting,
)
from paddlecloud.wire.job_words import group_of, name_of, status_word

MOST_IDS = 1000
_COLUMNS = (
    "j.id, j.name, j.phase, j.cluster, j.submitted_at, j.started_at, j.ended_at, j.cancel_asked,"
    " j.spec, a.username, j.mode, j.reason, j.run, j.live"
)
_SOURCE = "FROM jobs_job j JOIN accounts_account a ON a.id = j.account_id"
# A field of a specification, in the words of the body.
_WORDS = {
    "cpu": "clusterConf.k8sCpuCores",
    "memory": "clusterConf.k8sMemory",
    "gpu": "clusterConf.k8sGpuCards",
    "parallelism": "clusterConf.k8sTrainersCount",
    "pservers": "clusterConf.k8sPserversCount",
    "pscpu": "clusterConf.k8sPscpuCores",
    "psmemory": "clusterConf.k8sPsmemory",
    "datacenter": "clusterName",
    "name": "jobName",
    "entry": "startCMD",
}


# --- submitting ------------------------------------------------------------------------------


def submit(request: Request) -> dict[str, Any]:
    # Not needed to start: all this is imported with the first job of its kind.
    from paddlecloud.forms import job_v1
    from paddlecloud.server.services import pending_files
    from paddlecloud.wire import job_workspace

    seen = idempotency.find(request)
    if seen is not None:
        return _submitted_before(request.caller, seen.job_id)
    spec = _settled(job_v1.parse(request.json()))
    if spec.cluster:
        here().engines.engine(spec.cluster, field="clusterName")
    sent = job_workspace.as_sent(spec, os.urandom(3).hex())
    form = dict(rest_v1.render(sent)) | {"package_digest": pending_files.package(request.caller)}
    try:
        job, _ = submitting.submit(request, form)
    except (InvalidInput, CannotFit) as error:
        raise _in_their_words(error) from None
    pending_files.forget(request.caller)
    return _submitted(job_rows.read(job["id"], with_spec=True))


def _submitted_before(caller: Principal, job_id: str) -> dict[str, Any]:
    try:
        return _submitted(job_rows.read(job_id, with_spec=True))
    except NotFound:  # it has been deleted since; it was accepted all the same
        return {"jobId": job_id, "groupName": caller.name, "userId": caller.name}


def _settled(spec: JobSpec) -> JobSpec:
    """A version this platform has no runtime for is run by the default one, and noted."""
    if not spec.runtime or spec.runtime in here().runtimes:
        return spec
    notes = {"job-version": spec.runtime, **spec.annotations}
    return replace(spec, runtime="", annotations=notes)


def _in_their_words(error: InvalidInput | CannotFit) -> PaddleCloudError:
    faults = [
        Fault(_WORDS.get(fault.field, fault.field), fault.problem, fault.value)
        for fault in error.faults
    ]
    if faults:
        return type(error)(faults=faults, hint=error.hint)
    return type(error)(error.message, hint=error.hint, field=_WORDS.get(error.field, error.field))


def _submitted(job: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "jobId": job["id"],
        "groupName": group_of(msgspec.json.decode(bytes(job["spec"])), job["account"]),
        "userId": job["account"],
    }


# --- looking ---------------------------------------------------------------------------------


def _time(at: float | None) -> str:
    return (rfc3339_seconds(at) or "").replace("T", " ").removesuffix("Z")


def _kills(rows: Sequence[tuple[Any, ...]]) -> dict[str, str]:
    return job_rows.kills([row[0] for row in rows if row[7] and row[13]])


def _row(row: tuple[Any, ...], kill: str | None) -> dict[str, Any]:
    spec = msgspec.json.decode(row[8])
    notes = spec.get("annotations", {})
    used_s = int((row[6] or clock.now()) - row[5]) if row[5] else 0
    return {
        "jobId": row[0],
        "jobName": name_of(notes, row[1]),
        "jobStatus": status_word(row[2], kill),
        "groupName": group_of(spec, row[9]),
        "clusterName": row[3],
        "userId": row[9],
        "createTime": _time(row[4]),
        "startTime": _time(row[5]),
        "endTime": _time(row[6]),
        "usedTime": used_s,
        "demoFlag": 0,
    }


def page(caller: Principal, kind: str, number: int, size: int) -> dict[str, Any]:
    where, values = sharing.among(caller, kind)
    rows = fetch(
        f"SELECT {_COLUMNS} {_SOURCE} WHERE {where} AND NOT j.deleted"
        " ORDER BY j.submitted_at DESC, j.id DESC LIMIT %s OFFSET %s",
        [*values, size, (number - 1) * size],
    )
    kills = _kills(rows)
    return {"jobs": [_row(row, kills.get(row[0])) for row in rows]}


def _one(caller: Principal, ref: str) -> tuple[Any, ...]:
    job_id = job_rows.find_id(caller, ref, to_look=True)
    rows = fetch(f"SELECT {_COLUMNS} {_SOURCE} WHERE j.id = %s", (job_id,))
    if not rows:
        raise NotFound(f"no job {ref[:80]}", field="jobId")
    return rows[0]


def status(caller: Principal, ref: str) -> dict[str, Any]:
    row = _one(caller, ref)
    return {"jobStatus": status_word(row[2], _kills([row]).get(row[0]))}


def details(caller: Principal, ref: str) -> dict[str, Any]:
    from paddlecloud.wire.job_workspace import command_of

    row = _one(caller, ref)
    spec = msgspec.json.decode(row[8])
    notes = spec.get("annotations", {})
    found = {
        **_row(row, _kills([row]).get(row[0])),
        "jobType": "paddle",
        "jobVersion": notes.get("job-version") or spec.get("runtime", ""),
        "startCMD": command_of(spec.get("entry", "")),
        "jobAuth": notes.get("permission", "private"),
        "jobTags": notes.get("tags", ""),
        "jobRemark": notes.get("remark", ""),
        "algoId": notes.get("algo-id", ""),
        "jobConf": config_ini.render(config_ini.shown(spec.get("env", {}))),
        "mode": notes.get("launcher") or row[10],
        "reason": row[11],
        "run": row[12],
        "trainerList": [],
        "pserverList": [],
    }
    # An older attempt comes before the current one, which takes its place.
    current = {(each["role"], each["index"]): each for each in job_rows.replicas(row[0], None)}
    for (role, index), replica in current.items():
        if role not in ("trainer", "pserver"):
            continue
        found[f"{role}List"].append(
            {
                "resourceName": f"{row[0]}-{role}-{index}",
                "status": replica["state"],
                "host": replica["address"],
                "logUrl": f"{here().endpoint}/api/v2/jobs/{row[0]}/logs?replica={role}-{index}",
            }
        )
    return found


# --- orders ----------------------------------------------------------------------------------


def ids_in(body: Mapping[str, Any]) -> list[str]:
    ids = body.get("jobIds")
    is_list = isinstance(ids, list) and all(isinstance(each, str) and each for each in ids)
    if not is_list or not ids or len(ids) > MOST_IDS:
        raise InvalidInput(f"must be a list of 1 to {MOST_IDS} job ids", field="jobIds")
    return list(dict.fromkeys(ids))


def order(request: Request, refs: list[str], word: str) -> tuple[dict[str, Any], list[Any]]:
    """({jobIds, failed?}, the refusals): carried out for all that can be."""
    by = request.caller.name
    give: Callable[[str], object] = {
        "Kill": lambda job_id: orders.cancel(job_id, by),
        "Rerun": lambda job_id: orders.run_again(job_id, by),
        "Delete": lambda job_id: orders.delete(job_id, by),
    }[word]
    find = job_rows.id_to_end if word == "Kill" else job_rows.find_id
    done: list[str] = []
    failed: list[dict[str, str]] = []
    errors: list[PaddleCloudError] = []
    for ref in refs:
        try:
            give(find(request.caller, ref))
            done.append(ref)
        except PaddleCloudError as error:
            failed.append({"jobId": ref, "message": error.message})
            errors.append(error)
    if errors and not done:
        raise errors[0]
    return {"jobIds": done} | ({"failed": failed} if failed else {}), errors


# --- groups and clusters ---------------------------------------------------------------------


def groups_of(caller: Principal) -> list[dict[str, Any]]:
    """The caller's own groups, each with the clusters it is attached to."""
    host = here().endpoint.partition("://")[2]
    return [
        {
            "name": row["name"],
            "phy": [{"cluster": {"name": name, "host_name": host}} for name in row["clusters"]],
        }
        for row in groups.list_for(caller)
        if row["role"]
    ]


def quota(caller: Principal, cluster: str) -> dict[str, Any]:
    name = cluster or here().engines.default.cluster
    here().engines.engine(name, field="cluster_name")
    found = next(each for each in clusters.listed(caller) if each["name"] == name)
    kept = {key: found[key] for key in ("total", "free", "groups")}
    return {"cluster_name": name, **quotas.show(caller.account_id), **kept}
