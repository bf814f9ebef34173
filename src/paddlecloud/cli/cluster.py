"""`paddlecloud cluster [list|info]`: what there is to run on, and what of it is yours to use.

Tables are those of the second client (`=` rule, header, `-` rule); `--json` is for programs. It is
connected like `paddlecloud job` and takes its connection flags.
"""

from __future__ import annotations

from paddlecloud.cli.job import answers, connection
from paddlecloud.cli.job.connection import JobSession
from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.forms.faults import nearest
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.cluster_shapes import ClusterGroupShape, ClusterShape

USAGE = "paddlecloud cluster [connection flags] [list | info [--cluster-name NAME]] [--json]"
HELP = """
  list    the clusters, what each has and what of it is free
  info    limits, use and what is left, of each of your groups on each cluster

Examples:
  paddlecloud cluster list
  paddlecloud cluster info --cluster-name local --json
"""
JSON = Flag(("--json",), Kind.BOOL, meaning="print JSON")
CLUSTER = Flag(("--cluster-name",), value="NAME", meaning="info: this cluster only")
FLAGS = (CLUSTER, JSON)
ACTIONS = ("list", "info")
_AMOUNTS = ("cpu", "memory", "gpu")
_LIMITED = (*_AMOUNTS, "replicas")
_HEADERS = ("cluster_name", "engine", *_AMOUNTS, *(f"idle_{name}" for name in _AMOUNTS))
_INFO_HEADERS = ("cluster_name", "group_name", "resource", "quota", "used", "idle")


def open_session(words: list[str]) -> JobSession:
    session = connection.split(words, ACTIONS)
    if not session.action:  # it was called so, too
        session.action = "list"
    if session.action not in ACTIONS:
        near = nearest(session.action, ACTIONS)
        session.refuse_action(
            f"cluster cannot do {session.action}",
            hint=f"did you mean {near}?" if near else f"usage: {USAGE}",
        )
    return session


def run(session: JobSession) -> int:
    faults = session.faults
    flags = FLAGS if session.action == "info" else (JSON,)
    asked = session.take(flags)
    for word in asked.positionals:
        faults.add(word, "is not asked for here")
    session.raise_if_any(hint="paddlecloud cluster --help")
    try:
        clusters = session.client.clusters()
    except PaddleCloudError as error:
        session.debug(error)
        session.note(f"Error occurred: {error.message}")
        if error.hint:
            session.note(f"hint:  {error.hint}")
        return 1
    if name := asked.text("cluster-name"):
        found = [each for each in clusters if each["name"] == name]
        if not found:
            session.say(f"Oops...The named cluster '{name}' not exists.")
            session.write(answers.table(("cluster_name",), [(c["name"],) for c in clusters]))
            return 1
        clusters = found
    for each in clusters:
        for note in each["notes"]:
            session.note(f"note: {each['name']}: {note}")
    as_json = _info_json if session.action == "info" else _list_json
    if asked.switch("json"):
        _print_json(session, [as_json(each) for each in clusters])
    elif session.action == "info":
        rows = [row for each in clusters for row in _info_rows(each)]
        session.write(answers.table(_INFO_HEADERS, rows))
    else:
        session.write(answers.table(_HEADERS, [_list_row(each) for each in clusters]))
    return 0


def _list_row(cluster: ClusterShape) -> tuple[str, ...]:
    total, free = cluster["total"], cluster["free"]
    cells = [_cell(amounts and amounts[name]) for amounts in (total, free) for name in _AMOUNTS]  # type: ignore[literal-required]
    return (cluster["name"], cluster["engine"], *cells)


def _info_rows(cluster: ClusterShape) -> list[tuple[str, ...]]:
    return [
        (cluster["name"], group["name"], name, *_three(group, name))
        for group in cluster["groups"]
        for name in _LIMITED
    ]


def _three(group: ClusterGroupShape, name: str) -> tuple[str, str, str]:
    facts: Any = group
    limit, idle = facts["limits"][name], facts["idle"][name]
    is_unlimited = limit is None
    return (
        "no limit" if is_unlimited else str(limit),
        str(facts["used"][name]),
        _cell(idle) if idle is not None or not is_unlimited else "no limit",
    )


def _cell(value: object) -> str:
    return "-" if value is None else str(value)


def _list_json(cluster: ClusterShape) -> dict[str, Any]:
    return {
        "clusterName": cluster["name"],
        "engine": cluster["engine"],
        "isDefault": cluster["is_default"],
        "resources": cluster["total"],
        "idle": cluster["free"],
    }


def _info_json(cluster: ClusterShape) -> dict[str, Any]:
    groups = [
        {
            "groupName": group["name"],
            "quota": group["limits"],
            "used": group["used"],
            "idleQuota": group["idle"],
        }
        for group in cluster["groups"]
    ]
    return {**_list_json(cluster), "groups": groups}


def _print_json(session: JobSession, found: list[dict[str, Any]]) -> None:
    """Release 1.x wrapped it, with `msg` where other answers have `message`."""
    if session.generation == 1:
        session.say(answers.as_json({"code": 0, "data": found, "msg": "success"}))
    else:
        session.say(answers.as_json({"clusters": found}))
