"""`paddlecloud group list|info|create|delete|add|remove|quota`: who shares what with whom.

`group info --group-name G --json` is a call of the second client, whose scripts read `idleQuota`;
so the verb is connected like `paddlecloud job` and takes its connection flags. What a group's
guarantee, limit and weight mean is in docs/guides/administration.md; the server decides.
"""

from __future__ import annotations

from paddlecloud.cli import tables
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.job import answers, connection
from paddlecloud.cli.job.connection import JobSession
from paddlecloud.core.errors import Fault, InvalidInput
from paddlecloud.forms.faults import FaultList, nearest
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.forms.go_flags import Parsed
    from paddlecloud.wire.group_shapes import GroupInfoShape

USAGE = (
    "paddlecloud group [connection flags]"
    " list | info | create | delete | add | remove | quota [GROUP] [ACCOUNT] [flags]"
)
HELP = """
  list                  the groups you are in; administrators see all
  info GROUP            members, guarantee, limit, what is used and what is idle
  add GROUP ACCOUNT     put somebody in, or give them another role (--role)
  remove GROUP ACCOUNT  take somebody out; their jobs go on
  create GROUP          make a group (administrators); --owner names who manages it
  delete GROUP          remove a group without live jobs (administrators)
  quota GROUP           set what is given, keep the rest, `none` removes one (administrators)

A group is named as the first word or by --group-name; without either, info shows your own.

Examples:
  paddlecloud group info nlp
  paddlecloud group info --group-name nlp --json
  paddlecloud group create nlp --owner bob --guarantee-gpu 4 --limit-gpu 8
  paddlecloud group add nlp carol --role viewer
  paddlecloud group quota nlp --limit-gpu none --weight 2
"""
AMOUNTS = ("cpu", "memory", "gpu", "replicas")
KINDS = ("guarantee", "limit")
_MEANINGS = {"guarantee": "{} guaranteed to it, or none", "limit": "{} it may hold in all, or none"}
_VALUES = {"cpu": "CPU", "memory": "SIZE", "gpu": "N", "replicas": "N"}

GROUP = Flag(("--group-name", "--group"), value="GROUP", meaning="which group")
JSON = Flag(("--json",), Kind.BOOL, meaning="print JSON")
OUTPUT = output_flag("table", "wide", "json", "yaml", "name")
ROLE = Flag(
    ("--role",),
    value="ROLE",
    choices=("owner", "member", "viewer"),
    meaning="add: owner, member (default) or viewer",
)
OWNER = Flag(("--owner",), value="ACCOUNT", meaning="create: who manages it")
WEIGHT = Flag(("--weight",), Kind.INT, value="N", low=1, high=1000, meaning="its share of the rest")
CLUSTERS = Flag(("--clusters",), value="NAMES", meaning="where it may run: a,b, or all")
QUOTA = tuple(
    Flag((f"--{kind}-{name}",), value=_VALUES[name], meaning=_MEANINGS[kind].format(name))
    for kind in KINDS
    for name in AMOUNTS
)
FLAGS = (GROUP, ROLE, OWNER, *QUOTA, WEIGHT, CLUSTERS, JSON, OUTPUT)
_FLAGS_OF = {
    "list": (JSON, OUTPUT),
    "info": (GROUP, JSON, OUTPUT),
    "create": (GROUP, OWNER, *QUOTA, WEIGHT, CLUSTERS, JSON, OUTPUT),
    "delete": (GROUP,),
    "add": (GROUP, ROLE, JSON, OUTPUT),
    "remove": (GROUP,),
    "quota": (GROUP, *QUOTA, WEIGHT, CLUSTERS, JSON, OUTPUT),
}


def open_session(words: list[str]) -> JobSession:
    session = connection.split(words, _FLAGS_OF)
    if session.action not in _FLAGS_OF:
        if not session.action:
            session.refuse_action("group needs an action", hint=f"usage: {USAGE}")
        near = nearest(session.action, _FLAGS_OF)
        session.refuse_action(
            f"group cannot {session.action}; it can {', '.join(_FLAGS_OF)}",
            hint=f"did you mean {near}?" if near else f"usage: {USAGE}",
        )
    return session


def run(session: JobSession) -> int:
    faults = session.faults
    asked = session.take(_FLAGS_OF[session.action])
    names = _names(session.action, asked, faults)
    sent = _quota(asked, faults) if session.action in ("create", "quota") else {}
    session.raise_if_any(hint="paddlecloud group --help")
    try:
        return _act(session, asked, names, sent)
    except InvalidInput as error:
        if not error.faults:
            raise
        raise InvalidInput(faults=[_in_flags(fault) for fault in error.faults]) from None


def _in_flags(fault: Fault) -> Fault:
    """`limit.cpu` was typed as `--limit-cpu`."""
    kind = fault.field.partition(".")[0]
    if kind not in (*KINDS, "weight", "clusters", "owner", "role"):
        return fault
    return Fault(f"--{fault.field.replace('.', '-')}", fault.problem, fault.value)


def _act(session: JobSession, asked: Parsed, names: list[str], sent: dict[str, Any]) -> int:
    client, action = session.client, session.action
    if action == "list":
        return _list(session, asked)
    if action == "info":
        return _info(session, asked, names[0] if names else client.whoami()["name"])
    if action == "delete":
        client.delete_group(names[0])
        session.say(f"group      {names[0]} deleted")
        return 0
    if action == "remove":
        client.remove_from_group(names[0], names[1])
        session.say(f"group      {names[1]} is no longer in {names[0]}; their jobs go on")
        return 0
    if action == "create":
        group = client.create_group(names[0], owner=asked.text("owner"), **sent)
        said = f"group      {names[0]} created"
    elif action == "add":
        role = asked.text("role", "member")
        group = client.add_to_group(names[0], names[1], role)
        said = f"group      {names[1]} is {role} of {names[0]}"
    elif sent:
        group = client.set_group_quota(names[0], **sent)
        said = _quota_line(group)
    else:
        group = client.group(names[0])
        said = _quota_line(group)
    if _wants_data(asked):
        return _print(session, asked, group)
    session.say(said)
    for note in group["notes"]:
        session.note(f"note: {note}")
    return 0


def _names(action: str, asked: Parsed, faults: FaultList) -> list[str]:
    """[group], [group, account], or nothing where the group may be left out."""
    names = [*filter(None, [asked.text("group-name")]), *asked.positionals]
    most = 0 if action == "list" else 2 if action in ("add", "remove") else 1
    for word in names[most:]:
        faults.add(word, "is not asked for here")
    if len(names) < most and action != "info" and not faults:
        missing = ("GROUP", "ACCOUNT")[len(names)]
        faults.add(missing, f"is missing: {action} which {missing.lower()}?")
    return names


def _quota(asked: Parsed, faults: FaultList) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    for kind in KINDS:
        for name in AMOUNTS:
            flag = f"{kind}-{name}"
            if flag in asked:
                written = asked.given[flag].written
                value = _amount(written, name, asked.text(flag), faults)
                sent.setdefault(kind, {})[name] = value
    if "weight" in asked:
        sent["weight"] = asked.number("weight")
    if "clusters" in asked:
        text = asked.text("clusters")
        names = [] if text == "all" else [part for part in text.replace(",", " ").split() if part]
        sent["clusters"] = names
    return sent


def _amount(written: str, name: str, text: str, faults: FaultList) -> str | int | None:
    if text.lower() in ("none", "unlimited"):
        return None
    if name in ("cpu", "memory"):
        return text
    if not text.isdecimal():
        faults.add(written, "must be a whole number or none", text)
        return None
    return int(text)


# --- what is printed ------------------------------------------------------------------------------


def _wants_data(asked: Parsed) -> bool:
    return asked.switch("json") or asked.text("o", "table") not in ("table", "wide")


def _print(session: JobSession, asked: Parsed, group: GroupInfoShape) -> int:
    from paddlecloud.cli.output import print_items, print_object

    # `groupName` is what the second client's answers call it.
    whole: dict[str, Any] = {"groupName": group["name"], **group}
    form = asked.text("o")
    if asked.switch("json"):
        session.say(answers.as_json(whole))
    elif form == "name":
        print_items(session, [whole], form)
    else:
        print_object(session, whole, form)
    return 0


def _list(session: JobSession, asked: Parsed) -> int:
    groups = session.client.groups()
    if _wants_data(asked):
        from paddlecloud.cli.output import print_items

        items: list[Any] = [{"groupName": group["name"], **group} for group in groups]
        if asked.switch("json"):
            session.say(answers.as_json({"items": items}))
        else:
            print_items(session, items, asked.text("o"))
        return 0
    is_wide = asked.text("o") == "wide"
    columns = AMOUNTS if is_wide else ("cpu", "gpu")
    headers = ["NAME", "ROLE", "WEIGHT"]
    headers += [f"{name.upper()} USED/GUARANTEE/LIMIT" for name in columns]
    rows = []
    for group in groups:
        facts: Any = group
        cells = [
            "/".join(_cell(facts[kind][name]) for kind in ("used", *KINDS)) for name in columns
        ]
        rows.append((group["name"], group["role"] or "-", str(group["weight"]), *cells))
    session.write(tables.render(headers, rows, session.terminal))
    return 0


def _cell(value: object) -> str:
    text = "-" if value is None else str(value)
    if text.endswith("Ki"):  # what is free is seldom a round number
        from paddlecloud.cli.status import gibibytes

        return gibibytes(text)
    return text


def _info(session: JobSession, asked: Parsed, name: str) -> int:
    group: Any = session.client.group(name)
    if _wants_data(asked):
        return _print(session, asked, group)
    jobs = group["jobs"]
    session.say(f"group      {name} (weight {group['weight']}), on {', '.join(group['clusters'])}")
    members = ", ".join(f"{each['account']} ({each['role']})" for each in group["members"])
    session.say(f"members    {members or 'none'}")
    session.say(f"jobs       {jobs['running']} running, {jobs['waiting']} waiting")
    rows = [
        (name, *(_cell(group[kind][name]) for kind in ("used", *KINDS, "beyond", "idleQuota")))
        for name in AMOUNTS
    ]
    headers = ("RESOURCE", "USED", "GUARANTEE", "LIMIT", "BEYOND", "IDLE")
    session.write(tables.render(headers, rows, session.terminal))
    for note in group["notes"]:
        session.note(f"note: {note}")
    return 0


def _quota_line(group: GroupInfoShape) -> str:
    """`nlp   guarantee gpu 4; limit gpu 8; weight 2`."""
    facts: Any = group
    parts = []
    for kind in KINDS:
        named = [f"{name} {facts[kind][name]}" for name in AMOUNTS if facts[kind][name] is not None]
        parts.append(f"{kind} {', '.join(named)}" if named else f"no {kind}")
    return f"{group['name']}   {'; '.join(parts)}; weight {group['weight']}"
