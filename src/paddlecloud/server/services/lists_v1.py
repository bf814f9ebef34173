"""The lists of the first server, as its client reads them: Kubernetes objects in snake_case.

There is no Kubernetes behind them; jobs, replicas and limits are dressed as the batch jobs,
replica sets, pods and resource quotas they would have been. Zero counts are null, as they were.
"""

from __future__ import annotations

from typing import Any

import msgspec

from paddlecloud.core.names import dns_label
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import fetch, fetch_joined
from paddlecloud.server.exchange import rfc3339_seconds
from paddlecloud.server.services import job_rows, quotas

_GPU = "alpha.kubernetes.io/nvidia-gpu"
_decode = msgspec.json.decode


def wishes(caller: Principal, *, phase: str, limit: int, cursor: str | None) -> msgspec.Raw:
    """The entries of seed 004's job list, newest first; stored ready to send."""
    where, values = job_rows.list_where(caller, phase, None, cursor)
    entries = fetch_joined(f"SELECT j.wish_v1 AS text FROM jobs_job j{where}", [*values, limit])
    return msgspec.Raw(f"[{entries}]".encode())


def _rows(caller: Principal, limit: int, cursor: str | None) -> list[tuple[Any, ...]]:
    where, values = job_rows.list_where(caller, "all", None, cursor)
    return fetch(
        "SELECT j.id, j.name, j.phase, j.counts, j.submitted_at, j.started_at, j.ended_at, j.run,"
        f" j.live, j.cancel_asked FROM jobs_job j{where}",
        [*values, limit],
    )


def _metadata(caller: Principal, name: str, job: str, uid: str, at: float) -> dict[str, Any]:
    return {
        "name": name,
        "namespace": dns_label(caller.name),
        "creation_timestamp": rfc3339_seconds(at),
        "labels": {"paddle-job": job},
        "uid": uid,
    }


def batch_jobs(caller: Principal, limit: int, cursor: str | None) -> dict[str, Any]:
    rows = _rows(caller, limit, cursor)
    items = []
    for job_id, name, phase, counts, submitted_at, started_at, ended_at, *_ in rows:
        trainer = _decode(counts).get("trainer") or {"wanted": 0}
        items.append(
            {
                "metadata": _metadata(caller, f"{name}-trainer", name, job_id, submitted_at),
                "spec": {"parallelism": trainer["wanted"], "completions": trainer["wanted"]},
                "status": {
                    "active": trainer.get("running") or None,
                    "succeeded": trainer.get("succeeded") or None,
                    "failed": trainer.get("failed") or None,
                    "start_time": rfc3339_seconds(started_at),
                    "completion_time": rfc3339_seconds(ended_at) if phase == "Succeeded" else None,
                },
            }
        )
    return {
        "api_version": "batch/v1",
        "kind": "JobList",
        "items": items,
        "terminating": [row[1] for row in rows if row[8] and row[9]],
    }


def training_jobs(caller: Principal, limit: int, cursor: str | None) -> dict[str, Any]:
    """The same jobs as TrainingJob objects: the wish in its keys, the status in its words."""
    where, values = job_rows.list_where(caller, "all", None, cursor)
    rows = fetch(
        "SELECT j.id, j.name, j.phase, j.reason, j.counts, j.submitted_at, j.spec"
        f" FROM jobs_job j{where}",
        [*values, limit],
    )
    items = [
        {
            "metadata": _metadata(caller, name, name, job_id, submitted_at),
            "spec": _training_spec(_decode(spec)),
            "status": {
                "phase": _TRAINING_PHASES.get(phase, "creating"),
                "reason": reason,
                "replica_statuses": _replica_statuses(_decode(counts)),
            },
        }
        for job_id, name, phase, reason, counts, submitted_at, spec in rows
    ]
    return {"api_version": "paddlepaddle.org/v1", "kind": "TrainingJobList", "items": items}


_TRAINING_PHASES = {
    "Running": "running",
    "Rescaling": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
    "Killed": "failed",
    "TimedOut": "failed",
}


def _training_spec(spec: dict[str, Any]) -> dict[str, Any]:
    roles = {role["role"]: role for role in spec["roles"]}
    body: dict[str, Any] = {
        "image": spec["runtime"],
        "fault_tolerant": spec["fault_tolerant"],
        "passes": spec["passes"],
    }
    for role in ("trainer", "pserver"):
        if role in roles:
            least, most = roles[role]["min_replicas"], roles[role]["max_replicas"]
            body[role] = {"min_instance": least, "max_instance": most}
    body["trainer"] |= {"entrypoint": spec["entry"], "workspace": spec["package"]}
    return body


def _replica_statuses(counts: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "training_resource_type": role.upper(),
            "state": _replica_state(count),
            "resource_states": {
                state: count[state] for state in ("running", "succeeded", "failed") if count[state]
            },
        }
        for role, count in counts.items()
    ]


def _replica_state(count: dict[str, int]) -> str:
    if count["failed"]:
        return "failed"
    if count["succeeded"] and count["succeeded"] >= count["wanted"]:
        return "succeeded"
    return "running" if count["running"] else "starting"


def replica_sets(caller: Principal, limit: int) -> dict[str, Any]:
    items = []
    for job_id, name, _, counts, submitted_at, *_ in _rows(caller, limit, None):
        servers = _decode(counts).get("pserver")
        if servers is None:
            continue
        items.append(
            {
                "metadata": _metadata(caller, f"{name}-pserver", name, job_id, submitted_at),
                "status": {
                    "replicas": servers["wanted"],
                    "ready_replicas": servers["running"] or None,
                },
            }
        )
    return {"api_version": "extensions/v1beta1", "kind": "ReplicaSetList", "items": items}


def _pod_phase(state: str, end: Any) -> str:
    if state == "Ended":
        is_well = end is not None and end["cause"] == "exited" and end["code"] == 0
        return "Succeeded" if is_well else "Failed"
    return "Unknown" if state == "Lost" else state


def _pods_of(caller: Principal, job_id: str, job: str, run: int) -> list[dict[str, Any]]:
    rows = fetch(
        'SELECT role, "index", attempt, state, address, started_at, exit FROM jobs_replica'
        " WHERE job_id = %s AND run = %s"
        ' ORDER BY role DESC, "index", attempt',
        (job_id, run),
    )
    latest = {(row[0], row[1]): row for row in rows}  # a restart takes the place of its elder
    pods = []
    for role, index, attempt, state, address, started_at, stored in latest.values():
        end = _decode(stored)
        terminated = end and {
            "exit_code": end["code"],
            "signal": end["signal"] or None,
            "reason": end["cause"],
            "message": end["message"] or None,
        }
        is_running = state == "Running"
        name = f"{job}-{role}-{index}"
        pods.append(
            {
                "metadata": _metadata(caller, name, job, f"{job_id}-{name}", started_at or 0.0),
                "status": {
                    "phase": _pod_phase(state, end),
                    "pod_ip": address or None,
                    "start_time": rfc3339_seconds(started_at),
                    "container_statuses": [
                        {
                            "name": role,
                            "ready": is_running,
                            "restart_count": attempt - 1,
                            "state": {
                                "running": {"started_at": rfc3339_seconds(started_at)}
                                if is_running
                                else None,
                                "terminated": terminated or None,
                                "waiting": {} if state == "Pending" else None,
                            },
                        }
                    ],
                },
            }
        )
    return pods


def pods(caller: Principal, job_name: str, limit: int) -> dict[str, Any]:
    """The replicas of one job, or without a name of every job of the first page."""
    if job_name:
        job_id = job_rows.find_id(caller, job_name)
        name, run = job_rows.current_run(job_id)
        items = _pods_of(caller, job_id, name, run)
    else:
        items = [
            pod
            for row in _rows(caller, limit, None)
            for pod in _pods_of(caller, row[0], row[1], row[7])
        ]
    return {"api_version": "v1", "kind": "PodList", "items": items}


def resource_quotas(caller: Principal) -> dict[str, Any]:
    """What has no limit has no entry: the client prints <nil>."""
    quota = quotas.quota_of(caller.account_id)
    used = quotas.show(caller.account_id)["used"]
    hard: dict[str, str] = {}
    if quota.cpu_milli is not None:
        hard["requests.cpu"] = format_cpu(quota.cpu_milli)
    if quota.memory_bytes is not None:
        hard["requests.memory"] = format_memory(quota.memory_bytes)
    if quota.gpu is not None:
        hard[_GPU] = str(quota.gpu)
    if quota.replicas is not None:
        hard["pods"] = str(quota.replicas)
    item = {
        "metadata": {"name": "quota", "namespace": dns_label(caller.name)},
        "status": {
            "hard": hard,
            "used": {
                "requests.cpu": used["cpu"],
                "requests.memory": used["memory"],
                _GPU: str(used["gpu"]),
                "pods": str(used["replicas"]),
            },
        },
    }
    return {"api_version": "v1", "kind": "ResourceQuotaList", "items": [item]}
