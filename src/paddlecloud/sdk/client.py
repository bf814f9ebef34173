"""`Client`: every call of the server's API as a method, with plain dictionaries as answers.

It promises: what `wire.shapes` describes comes back as it was sent; errors are `core.errors`
classes; every change carries an idempotency key, so a retry after a lost answer never does the
work twice. Scripts and the command line call it. It never prints and never exits.

    from paddlecloud.sdk import Client

    client = Client()                                   # as ~/.paddle/config says
    job = client.submit({"name": "hello", "entry": "python train.py"}, package="./pkg")
    for record in client.follow_logs(job["id"]):
        print(record.get("data", ""), end="")
    print(client.wait(job["id"])["phase"])
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from paddlecloud.sdk.config import Profile, load_profile
from paddlecloud.sdk.http import Response, query
from paddlecloud.sdk.platform_calls import PlatformCalls
from paddlecloud.sdk.transport import Transport
from paddlecloud.wire import routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.core.jobspec import JobSpec
    from paddlecloud.sdk.snapshots import Snapshot
    from paddlecloud.sdk.transfers.events import OnEvent, Summary
    from paddlecloud.wire.shapes import (
        DryRunShape,
        EventShape,
        ExplainShape,
        JobShape,
        JobWithSpecShape,
        ReplicaShape,
        RunShape,
    )

LONG_POLL_S = 30.0
PAGE_JOBS = 500
FOLLOW_SILENCE_S = 45.0
CHECK_FIRST_BYTES = 1 << 20  # below it a package is sent sooner than the question is answered
LOG_PART_BYTES = 4 << 20  # the most a server gives at once


def _ignore(event: object) -> None:
    """The listener of those who do not listen."""


class Client(PlatformCalls):
    """A session with one server. Connections are kept and shared by threads; close when done."""

    def __init__(
        self,
        endpoint: str = "",
        *,
        token: str = "",
        username: str = "",
        password: str = "",
        ak: str = "",
        sk: str = "",
        profile: Profile | None = None,
        say: Callable[[str], None] = lambda text: None,
        user_agent: str = "paddlecloud-sdk",
    ) -> None:
        """Without a profile, what is given here goes before `~/.paddle/config`.

        With an access key (`ak` and `sk`) requests are signed and nothing else logs in.
        `say` is told when a password is used to fetch a token.
        """
        if profile is None:
            profile = load_profile(endpoint=endpoint)
            if token:
                profile.token = token
            if username:
                profile.username, profile.password, profile.token = username, password, token
            profile.ak, profile.sk = ak, sk
        self.profile = profile
        super().__init__(Transport(profile, say=say, user_agent=user_agent))

    # --- submitting ------------------------------------------------------------------------

    def has_package(self, digest: str) -> bool:
        """Whether a job can be submitted with this `package_digest`."""
        from paddlecloud.core.errors import NotFound

        try:
            self._transport.open("HEAD", routes.fill(routes.PACKAGE, digest=digest)).close()
        except NotFound:
            return False
        return True

    def upload(self, package: Snapshot, on_event: OnEvent = _ignore) -> int:
        """Make the server have a package; how many bytes of its files it lacked and were sent."""
        from paddlecloud.sdk.transfers.events import Event, Planned

        lacked_bytes = 0

        def listen(event: Event) -> None:
            nonlocal lacked_bytes
            if isinstance(event, Planned):
                lacked_bytes = event.size_bytes - event.same_bytes
            on_event(event)

        self.files.put_snapshot(package, listen)
        return lacked_bytes

    def submit(
        self,
        job: JobSpec | Mapping[str, Any],
        *,
        package: str | Snapshot | None = None,
        key: str = "",
    ) -> JobShape:
        """Start a job. `job` is a spec or a form of the REST API; `package` a folder to send."""
        form = self._form(job, package)
        return self._change("POST", routes.JOBS, form, key=key)

    def dry_run(
        self, job: JobSpec | Mapping[str, Any], *, package: str | Snapshot | None = None
    ) -> DryRunShape:
        """What the server would make of it, and whether it would start now; nothing is kept."""
        form = self._form(job, package)
        return self._change("POST", routes.JOBS + "?dry_run=1", form)

    def check_before_upload(self, form: Mapping[str, Any], size_bytes: int) -> None:
        """Have a refusal before a large package is sent, not after; a small one costs less than
        the question."""
        if size_bytes >= CHECK_FIRST_BYTES:
            self.dry_run(form)

    def _form(
        self, job: JobSpec | Mapping[str, Any], package: str | Snapshot | None
    ) -> dict[str, Any]:
        if isinstance(job, Mapping):
            form = dict(job)
        else:
            from paddlecloud.forms import rest_v1

            form = dict(rest_v1.render(job))
        if package is not None:
            if isinstance(package, str):
                from paddlecloud.sdk.snapshots import collect

                package = collect(package)
            self.check_before_upload(form, package.bytes)
            form["package_digest"] = self.upload_folder(package)
        return form

    def upload_folder(self, package: str | Snapshot) -> str:
        """Send of a folder what the server does not have, and return its digest."""
        if isinstance(package, str):
            from paddlecloud.sdk.snapshots import collect

            package = collect(package)
        self.upload(package)
        return package.digest

    # --- jobs ------------------------------------------------------------------------------

    def list_jobs(
        self, phase: str = "live", *, name: str = "", kind: str = "normal"
    ) -> Iterator[JobShape]:
        """Newest first; `phase` is live, all, or one phase's word; `kind` is normal (your own),
        favorite (marked) or group (shared with your groups). Pages come as needed."""
        cursor: str | None = None
        while True:
            page = self.jobs_page(phase, name=name, cursor=cursor, kind=kind)
            yield from page["items"]
            cursor = page["next"]
            if not cursor:
                return

    def jobs_page(
        self,
        phase: str = "live",
        *,
        name: str = "",
        cursor: str | None = None,
        limit: int = PAGE_JOBS,
        kind: str = "normal",
    ) -> dict[str, Any]:
        chosen = None if kind == "normal" else kind
        asked = query(
            {"phase": phase, "name": name, "type": chosen, "limit": limit, "cursor": cursor}
        )
        page: dict[str, Any] = self._call("GET", routes.JOBS + asked)
        return page

    def get(self, ref: str) -> JobWithSpecShape:
        """By id, or by name: the live job of that name, else the latest."""
        return self._call("GET", routes.fill(routes.JOB, ref=ref))

    def runs(self, ref: str) -> list[RunShape]:
        return self._items(routes.fill(routes.JOB_RUNS, ref=ref))

    def replicas(self, ref: str, *, run: int | None = None) -> list[ReplicaShape]:
        return self._items(routes.fill(routes.JOB_REPLICAS, ref=ref) + query({"run": run}))

    def events(self, ref: str, *, after: int = 0) -> Iterator[EventShape]:
        """Oldest first, all pages."""
        path = routes.fill(routes.JOB_EVENTS, ref=ref)
        position: int | None = after
        while position is not None:
            page = self._call("GET", path + query({"after": position or None}))
            yield from page["items"]
            position = page["next"]

    def explain(self, ref: str) -> ExplainShape:
        return self._call("GET", routes.fill(routes.JOB_EXPLAIN, ref=ref))

    def cancel(self, ref: str, reason: str = "") -> JobShape:
        return self._change("POST", routes.fill(routes.JOB_CANCEL, ref=ref), {"reason": reason})

    def rerun(self, ref: str, *, key: str = "") -> JobShape:
        return self._change("POST", routes.fill(routes.JOB_RERUN, ref=ref), {}, key=key)

    def move(self, ref: str, replicas: Mapping[str, str]) -> JobShape:
        """Have replicas (`trainer-1`) leave the hosts they are on; each starts again."""
        rows = [{"replica": name, "host": host} for name, host in replicas.items()]
        return self._change("POST", routes.fill(routes.JOB_MOVE, ref=ref), {"replicas": rows})

    def scale(self, ref: str, trainers: int) -> JobShape:
        """Another number of trainers for a live job, between its least and its most."""
        path = routes.fill(routes.JOB_SCALE, ref=ref)
        return self._change("POST", path, {"trainers": trainers})

    def mark(self, ref: str, is_marked: bool = True) -> None:
        """Make a job one of your favourites, or no longer."""
        method = "PUT" if is_marked else "DELETE"
        self._change(method, routes.fill(routes.JOB_FAVORITE, ref=ref), None)

    def delete(self, ref: str) -> None:
        self._change("DELETE", routes.fill(routes.JOB, ref=ref), None)

    def wait(
        self, ref: str, until: str = "end", *, timeout_s: float | None = None
    ) -> JobShape | None:
        """The job once it has ended (`end`) or runs (`running`); None when the time was up."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        path = routes.fill(routes.JOB_WAIT, ref=ref)
        while True:
            poll_s = LONG_POLL_S
            if deadline is not None:
                poll_s = max(0.0, min(poll_s, deadline - time.monotonic()))
            job: JobShape = self._long_poll(path, {"for": until}, poll_s)
            if _has_reached(job["phase"], until):
                return job
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def changes(self, after: int, *, timeout_s: float = LONG_POLL_S) -> int:
        """The newest revision; returns early as soon as anything of the caller's changed."""
        answer = self._long_poll(routes.CHANGES, {"after": after}, timeout_s)
        return int(answer["revision"])

    # --- outputs ---------------------------------------------------------------------------

    def outputs(self, job: str | JobShape) -> Iterator[dict[str, Any]]:
        """The files a job left below its output path, as `files.entries` says them, with their
        whole `path`; none while it has not written any."""
        from paddlecloud.core.errors import NotFound

        shape = self.get(job) if isinstance(job, str) else job
        if not (top := shape["output"]):
            return
        try:
            for entry in self.files.entries(top, recursive=True):
                if entry["type"] == "file":
                    yield {"path": f"{top}/{entry['name']}", **entry}
        except NotFound:
            return  # the folder is made when the job starts

    def fetch_outputs(
        self, job: str | JobShape, folder: str, *, on_event: OnEvent = _ignore
    ) -> Summary:
        """Fetch them into a local folder, which is made; the same call goes on after a cut."""
        from paddlecloud.core.errors import NotFound

        shape = self.get(job) if isinstance(job, str) else job
        if not (top := shape["output"]):
            raise NotFound(f"{shape['name']} has no output path")
        return self.files.copy([f"{top}/"], folder, recursive=True, on_event=on_event)

    # --- logs ------------------------------------------------------------------------------

    def logs(
        self,
        ref: str,
        replica: str,
        *,
        tail: int | None = None,
        run: int | None = None,
        attempt: int | None = None,
    ) -> str:
        """The end of one replica's log (`trainer-0`), `tail` lines of it, or all of it as it is
        now; bad bytes as `�`."""
        parts = self.log_parts(ref, replica, tail=tail, run=run, attempt=attempt)
        return b"".join(parts).decode("utf-8", "replace")

    def log_parts(
        self,
        ref: str,
        replica: str,
        *,
        tail: int | None = None,
        run: int | None = None,
        attempt: int | None = None,
    ) -> Iterator[bytes]:
        """As `logs`, in pieces of a few MB. What the platform dropped is said in its place."""
        asked: dict[str, object] = {"replica": replica, "run": run, "attempt": attempt}
        path = routes.fill(routes.JOB_LOGS, ref=ref)
        place: dict[str, object] = {"cursor": 0} if tail is None else {"tail": tail}
        end: int | None = None
        while True:
            target = path + query({**asked, **place, "limit_bytes": LOG_PART_BYTES})
            response = self._transport.open("GET", target, headers={"Accept": "*/*"})
            data = self._transport.read(response)
            facts = response.headers
            if dropped := int(facts.get(routes.LOG_DROPPED.lower(), "0")):
                yield f"[... {dropped} bytes dropped ...]\n".encode()
            yield data
            position = int(facts.get(routes.LOG_NEXT.lower(), "0"))
            if end is None:
                end = int(facts.get(routes.LOG_SIZE.lower(), "0"))
            if position >= end or position <= int(str(place.get("cursor", -1))):
                return
            place = {"cursor": position}

    def follow_logs(
        self,
        ref: str,
        *,
        replica: str = "",
        tail: int | None = None,
        run: int | None = None,
        on_cut: Callable[[], None] = lambda: None,
    ) -> Iterator[dict[str, Any]]:
        """Records as they are written, over any number of cuts, until `{"end": True, ...}`."""
        from paddlecloud.sdk.following import follow

        path = routes.fill(routes.JOB_LOGS, ref=ref)

        def open_stream(cursors: str | None) -> Response:
            asked: dict[str, object] = {"follow": 1, "replica": replica, "run": run}
            asked.update({"tail": tail} if cursors is None else {"cursors": cursors})
            return self._transport.open("GET", path + query(asked), timeout_s=FOLLOW_SILENCE_S)

        return follow(open_stream, unreachable=self._transport.unreachable, on_cut=on_cut)


def _has_reached(phase: str, until: str) -> bool:
    from paddlecloud.core.phases import TERMINAL

    if phase in TERMINAL:
        return True
    return until == "running" and phase == "Running"
