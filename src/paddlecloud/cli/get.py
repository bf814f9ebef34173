"""`paddlecloud get jobs|workers|quota|registry`: the tables of the first client, and wider ones.

The default columns are those of the usage manual; `-o wide` says more, `--watch` stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddlecloud.cli import tables, times
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.wire.shapes import JobShape, ReplicaShape

USAGE = "paddlecloud get [options] jobs | workers JOB | quota | registry"
HELP = """
  jobs          running and waiting jobs, with -a also the ended ones
  workers JOB   the replicas of a job, with -a also earlier attempts
  quota         your limits; -o wide shows what is used of them
  registry      your logins to registries of images; -o wide shows where and as whom

Examples:
  paddlecloud get jobs
  paddlecloud get -a jobs -o wide
  paddlecloud get workers wide-deep --watch
  paddlecloud get jobs -a -o json
"""
FLAGS = (
    Flag(("-a", "-all"), Kind.BOOL, meaning="list all, not only what is live"),
    Flag(("-watch",), Kind.BOOL, meaning="stay and show every change (Ctrl-C ends it)"),
    output_flag(),
)

Row = Sequence[str]


def run(session: Session) -> int:
    words = session.parsed.positionals
    if not words:
        raise InvalidInput("get what?", hint=USAGE)
    what, rest = words[0], words[1:]
    if what in ("jobs", "job"):
        return _show(session, lambda: _jobs(session, rest))
    if what in ("workers", "worker"):
        if len(rest) != 1:
            raise InvalidInput("get workers needs one job", hint="paddlecloud get workers JOB")
        return _show(session, lambda: _workers(session, rest[0]))
    if what == "quota":
        return _quota(session)
    if what in ("registry", "registries"):
        from paddlecloud.cli.registry import show

        return show(session)
    from paddlecloud.forms.faults import nearest

    near = nearest(what, ("jobs", "workers", "quota", "registry"))
    advice = f". Did you mean {near}?" if near else ""
    raise InvalidInput(f"get cannot list {what}{advice}", hint=f"usage: {USAGE}")


class Listing:
    """One look at a list: a table for people, the items for programs."""

    def __init__(
        self,
        headers: Row,
        rows: list[Row],
        items: Sequence[JobShape] | Sequence[ReplicaShape],
        row_of: Callable[[int, JobShape], Row] | None = None,
    ) -> None:
        self.headers = headers
        self.rows = rows
        self.items = items
        self.row_of = row_of  # the row of one more job, for a watcher


def _show(session: Session, look: Callable[[], Listing]) -> int:
    form = session.parsed.text("o", "table")
    if session.parsed.switch("watch"):
        from paddlecloud.cli import watching

        return watching.watch(session, look, form)
    listing = look()
    if form in ("table", "wide"):
        session.write(tables.render(listing.headers, listing.rows, session.terminal))
        if not listing.rows and listing.row_of is not None:
            say_where_jobs_are(session, "".join(session.parsed.positionals[1:2]))
    else:
        from paddlecloud.cli.output import print_items

        print_items(session, listing.items, form)  # type: ignore[arg-type]
    return 0


# --- jobs ------------------------------------------------------------------------------------


def _jobs(session: Session, names: Sequence[str]) -> Listing:
    phase = "all" if session.parsed.switch("a") else "live"
    page = session.client.jobs_page(phase, name=names[0] if names else "")
    jobs: list[JobShape] = page["items"]
    while page["next"]:
        page = session.client.jobs_page(phase, name=names[0] if names else "", cursor=page["next"])
        jobs += page["items"]
    if session.parsed.text("o") == "wide":
        row_of, headers = _wide, WIDE_HEADERS
    else:
        row_of, headers = _short, SHORT_HEADERS
    rows = [row_of(number, job) for number, job in enumerate(jobs)]
    return Listing(headers, rows, jobs, row_of)


def say_where_jobs_are(session: Session, name: str = "") -> None:
    """Below a table without rows, on the standard error: what to type to see or to have some."""
    session.flush()
    is_all = session.parsed.switch("a")
    which = f" named {name}" if name else "s"
    if not is_all and session.client.jobs_page("all", name=name, limit=1)["items"]:
        session.note(f"no live job{which}; ended ones: paddlecloud get jobs -a {name}".rstrip())
    elif name:
        session.note(f"no job{which}; paddlecloud get jobs -a lists all")
    else:
        session.note("no jobs yet; to start one: paddlecloud submit --help")


SHORT_HEADERS: Row = ("NUM", "NAME", "SUCC", "FAIL", "START", "COMP", "ACTIVE")
WIDE_HEADERS: Row = (
    *("ID", "NAME", "PHASE", "TRAINERS", "PSERVERS"),
    *("CPU", "GPU", "AGE", "GROUP", "REASON"),
)


def _short(number: int, job: JobShape) -> Row:
    trainers = job["roles"].get("trainer")
    return (
        str(number),
        job["name"],
        tables.nil(trainers and trainers["succeeded"]),
        tables.nil(trainers and trainers["failed"]),
        tables.nil(times.whole_seconds(job["started_at"])),
        tables.nil(times.whole_seconds(job["ended_at"])),
        tables.nil(trainers and trainers["running"]),
    )


def _wide(number: int, job: JobShape) -> Row:
    return (
        job["id"],
        job["name"],
        job["phase"],
        _counts(job, "trainer"),
        _counts(job, "pserver"),
        job["cpu"],
        str(job["gpu"]),
        times.age(job["submitted_at"]),
        job.get("group") or job["account"],
        job["reason"],
    )


def _counts(job: JobShape, role: str) -> str:
    """`2/3`: running (of an ended job: succeeded) of those wanted."""
    counts = job["roles"].get(role)
    if counts is None or not counts["wanted"]:
        return "-"
    done = counts["succeeded"] if job["ended_at"] else counts["running"] + counts["succeeded"]
    return f"{done}/{counts['wanted']}"


# --- workers ---------------------------------------------------------------------------------


def _workers(session: Session, ref: str) -> Listing:
    job = session.client.get(session.job(ref))
    replicas = session.client.replicas(job["id"])
    if not session.parsed.switch("a"):
        replicas = latest_attempts(replicas)
    rows: list[Row]
    if session.parsed.text("o") == "wide":
        headers: Row = ("NAME", "STATUS", "START", "EXIT_CODE", "MSG", "ADDRESS", "ATTEMPT")
        rows = [_wide_worker(replica) for replica in replicas]
    else:
        headers = ("NAME", "STATUS", "START")
        rows = [
            (r["name"], pod_status(r), tables.nil(times.whole_seconds(r["started_at"])))
            for r in replicas
        ]
    return Listing(headers, rows, replicas)


def latest_attempts(replicas: Sequence[ReplicaShape]) -> list[ReplicaShape]:
    """The newest attempt of each replica, trainers first, by rank."""
    newest: dict[tuple[str, int], ReplicaShape] = {}
    for replica in replicas:
        key = (replica["role"], replica["index"])
        if key not in newest or newest[key]["attempt"] < replica["attempt"]:
            newest[key] = replica
    order = {"trainer": 0, "pserver": 1}
    return sorted(newest.values(), key=lambda r: (order.get(r["role"], 2), r["role"], r["index"]))


def pod_status(replica: ReplicaShape) -> str:
    """The word a pod's phase would be; `Stopped` if the platform ended it, whatever its code."""
    if replica["state"] != "Ended":
        return replica["state"]
    if replica["stop_asked"]:
        return "Stopped"
    end = replica["exit"]
    is_good = end is not None and end["cause"] == "exited" and end["code"] == 0
    return "Succeeded" if is_good else "Failed"


def _wide_worker(replica: ReplicaShape) -> Row:
    end = replica["exit"]
    return (
        replica["name"],
        pod_status(replica),
        tables.nil(times.whole_seconds(replica["started_at"])),
        tables.NIL if end is None else str(end["code"]),
        tables.nil(end and end["message"]),
        replica["address"],
        str(replica["attempt"]),
    )


# --- quota -----------------------------------------------------------------------------------

# The last word is spelt as the first client spelt it: scripts match it.
_QUOTA_ROWS = (("Memory", "memory"), ("CPU", "cpu"), ("GPU", "gpu"), ("MaxParallism", "replicas"))


_STORED_ROWS = (("Storage", "storage"), ("Files", "files"))


def _stored(session: Session) -> dict[str, str]:
    """What counts against the limits of storage: the file server knows."""
    from paddlecloud.cli import sizes
    from paddlecloud.core.errors import PaddleCloudError

    try:
        me = session.client.whoami()
        used = session.client.files.usage(f"/pfs/{me['clusters'][0]}/home/{me['name']}")
    except PaddleCloudError as error:
        session.note(f"note: what is stored is not known: {error.message}")
        return {}
    return {"storage": sizes.binary(used["used_bytes"]), "files": str(used["used_files"])}


def _quota(session: Session) -> int:
    quota = session.client.quota()
    form = session.parsed.text("o", "table")
    if form in ("json", "yaml"):
        from paddlecloud.cli.output import print_object

        print_object(session, quota, form)  # type: ignore[arg-type]
        return 0
    limits: dict[str, object] = quota["limits"]  # type: ignore[assignment]
    used: dict[str, object] = quota["used"]  # type: ignore[assignment]
    rows = [["-----", "-----", "-----"]]
    for word, key in _QUOTA_ROWS:
        limit = limits.get(key)
        rows.append([word, tables.NIL if limit is None else str(limit), str(used.get(key, 0))])
    columns = 3 if form == "wide" else 2
    stored = [pair for pair in _STORED_ROWS if limits.get(pair[1]) is not None]
    shown = _stored(session) if stored and form == "wide" else {}
    for word, key in stored:
        rows.append([word, str(limits[key]), shown.get(key, tables.NIL)])
    headers = ("RESOURCE", "LIMIT", "USED")[:columns]
    session.write(tables.render(headers, [row[:columns] for row in rows], session.terminal))
    return 0
