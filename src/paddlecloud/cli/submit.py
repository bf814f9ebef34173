"""`paddlecloud submit`: collects a folder, sends what the server lacks, starts the job.

All faults of the command line come at once, before anything is sent. With `--follow` or `--wait`
the job's own result is the exit code (0 or 10); Ctrl-C detaches and the job goes on.
"""

from __future__ import annotations

import os
import time

from paddlecloud.cli import outcomes, sizes
from paddlecloud.cli.everywhere import FLAGS as EVERYWHERE
from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import CannotFit, InvalidInput
from paddlecloud.forms import submit_flags
from paddlecloud.forms.go_flags import Flag, Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.core.errors import PaddleCloudError
    from paddlecloud.forms.submit_flags import Submission
    from paddlecloud.sdk.snapshots import Snapshot
    from paddlecloud.sdk.transfers.events import Event
    from paddlecloud.wire.shapes import JobShape

USAGE = "paddlecloud submit [options] <package path>"
HELP = """
The package is a folder with your program and all it needs; `.git` and what `.gitignore` and
`.paddleignore` name stays behind (paddlecloud help packages). A path that begins with /pfs/ or
'~/' (quoted: your home on the platform) is used where it is. Flags may stand before or after the
path, with one dash or two.

Without --mode and -pservers there are as many parameter servers as trainers, and every replica
runs the command. For a program that needs no servers: --mode single, or collective for several.
On the embedded engine jobs share cores: `paddlecloud status` says how many cpu there are per core.

Examples:
  paddlecloud submit --mode single -entry "python train.py" ./my_package
  paddlecloud submit -jobname wide-deep -parallelism 2 -pservers 2 -entry "python train.py" \\
      --follow ./wide_and_deep
  paddlecloud submit ./job -p 4 -c 2 -m 10Gi -t modules/train.py
  paddlecloud submit --mode collective -p 2 --max-restarts 3 --wall-time 2h --wait ./pkg
  paddlecloud submit --dry-run -p 8 -gpu 1 -o json ./pkg

With --follow or --wait the exit code is 0 if the job succeeded and 10 if it did not. Ctrl-C
detaches (exit code 130); the job goes on.
"""
CLIENT_FLAGS = (
    Flag(("--follow", "-f"), Kind.BOOL, meaning="print the logs as they are written, to the end"),
    Flag(("--wait",), Kind.BOOL, meaning="wait for the end of the job"),
    Flag(
        ("--dry-run",),
        value="client|server",
        choices=("client", "server"),
        alone="client",
        meaning="only show what would be submitted; `server` also asks whether it fits",
    ),
    output_flag("json", "yaml", "name"),
)
FLAGS = (*submit_flags.FLAGS, *CLIENT_FLAGS)

_LARGE_BYTES = 100_000_000  # a package that deserves a second look before it is sent
_COLUMN = 39
_ON_A_TERMINAL_EVERY_S = 0.1


class SubmitSession(Session):
    def __init__(self, submission: Submission) -> None:
        super().__init__(submission.client)
        self.submission = submission

    def in_typed_words(self, error: PaddleCloudError) -> PaddleCloudError:
        """The server names keys of its REST body; who typed `-m` is told of `-m`."""
        if not isinstance(error, InvalidInput | CannotFit) or not error.faults:
            return error
        flag_for = self.submission.flag_for
        faults = [
            fault._replace(field=flag_for(fault.field) or fault.field) for fault in error.faults
        ]
        return type(error)(faults=faults, hint=error.hint)


def open_session(words: list[str]) -> SubmitSession:
    return SubmitSession(submit_flags.parse(words, client_flags=(*CLIENT_FLAGS, *EVERYWHERE)))


def run(session: SubmitSession) -> int:
    if paths.is_home(session.submission.package):
        [package] = paths.resolve(session, [session.submission.package])
        session.submission = session.submission.in_place(package)
    submission = session.submission
    if "dry-run" in session.parsed:
        from paddlecloud.cli import dry_run

        return dry_run.show(session, submission)
    is_quiet = "o" in session.parsed
    sent = None if submission.is_in_place else _collect(session, submission.package, is_quiet)
    form = submit_flags_form(submission)
    if sent is not None:
        session.client.check_before_upload(form, sent.bytes)
        _upload(session, sent, is_quiet)
        form["package_digest"] = sent.digest
    job = _start(session, form, is_quiet)
    if is_quiet:
        _print_job(session, job)
    elif shape := _shape(job, submission):
        session.say(shape)
        session.flush()
    if session.parsed.switch("follow"):
        return follow(session, job)
    if session.parsed.switch("wait"):
        return wait(session, job)
    return 0


def submit_flags_form(submission: Submission) -> dict[str, object]:
    from paddlecloud.forms import rest_v1

    return dict(rest_v1.render(submission.spec))


# --- the three steps -------------------------------------------------------------------------


class Step:
    """`Collecting package ... Done            14 files`; a failed one says so and goes on up."""

    def __init__(self, session: Session, label: str, is_quiet: bool) -> None:
        self._session = session
        self._head = f"{label} ... "
        self._is_quiet = is_quiet
        self._shown_at_s = time.monotonic()
        self.detail = ""

    def __enter__(self) -> Step:
        if not self._is_quiet:
            self._session.write(self._head)
            self._session.flush()
        return self

    def progress(self, text: str) -> None:
        """Shown in place, only on a terminal, and only if the step takes long enough to see."""
        now_s = time.monotonic()
        is_due = now_s - self._shown_at_s >= _ON_A_TERMINAL_EVERY_S
        if not self._is_quiet and self._session.terminal.is_terminal and is_due:
            self._shown_at_s = now_s
            self._session.write(f"\r{self._head}{text}\x1b[K")
            self._session.flush()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._is_quiet:
            return
        start = "\r\x1b[K" + self._head if self._session.terminal.is_terminal else ""
        if kind is not None:
            self._session.say(f"{start}failed")
            return
        word = "Done".ljust(max(6, _COLUMN - len(self._head))) if self.detail else "Done"
        self._session.say(f"{start}{word}{self.detail}")
        self._session.flush()


def _collect(session: Session, path: str, is_quiet: bool) -> Snapshot:
    from paddlecloud.sdk.snapshots import collect

    if not os.path.exists(path):
        raise InvalidInput(
            f"there is no folder {path}",
            hint="the package is the folder that holds your program",
            field="<package path>",
        )
    with Step(session, "Collecting package", is_quiet) as step:
        package = collect(path)
        step.detail = f"{sizes.counted(package.files, 'file')}, {sizes.of_bytes(package.bytes)}"
        if package.skipped:
            what = ", ".join(package.skipped[:3]) + (", ..." if len(package.skipped) > 3 else "")
            step.detail += f" (skipped {what}, {sizes.of_bytes(package.skipped_bytes)})"
    for note in package.notes:
        session.note(f"note: {note}")
    if package.bytes >= _LARGE_BYTES and not is_quiet:
        session.note(f"note: {_largest(package)}; .paddleignore names what to leave out")
    return package


def _largest(package: Snapshot) -> str:
    """`most of it is data/ (1.0 GB), ckpt.bin (150 MB)`: said before a large package goes out."""
    by_top: dict[str, int] = {}
    for file in package.listed.files:
        top, slash, _ = file.path.partition("/")
        by_top[top + slash] = by_top.get(top + slash, 0) + file.size_bytes
    most = sorted(by_top.items(), key=lambda pair: -pair[1])[:3]
    shown = ", ".join(f"{name} ({sizes.of_bytes(size)})" for name, size in most)
    return f"most of it is {shown}"


def _upload(session: Session, package: Snapshot, is_quiet: bool) -> None:
    from paddlecloud.sdk.transfers.events import Moved, Planned

    with Step(session, "Uploading package", is_quiet) as step:
        total = sent = 0

        def show(event: Event) -> None:
            nonlocal total, sent
            if isinstance(event, Planned):
                total = event.size_bytes - event.same_bytes
            elif isinstance(event, Moved):
                sent += event.n_bytes
                step.progress(
                    f"{sent * 100 // max(1, total)}%  {sizes.of_bytes(sent)} of "
                    f"{sizes.of_bytes(total)}"
                )

        lacked = session.client.upload(package, show)
        size = sizes.of_bytes(package.bytes)
        if not lacked:
            step.detail = f"{size} already there"
        elif lacked == package.bytes:
            step.detail = f"{size} sent"
        else:
            step.detail = f"sent {sizes.of_bytes(lacked)} of {size}, the rest was there"


def _start(session: Session, form: dict[str, object], is_quiet: bool) -> JobShape:
    with Step(session, f"Starting job {form['name']}", is_quiet) as step:
        try:
            job = session.client.submit(form)
        except KeyboardInterrupt:
            session.note("\ninterrupted; the job may have been accepted:  paddlecloud get jobs")
            raise
        step.detail = job["id"]
    return job


_ABOUT_SERVERS = ("mode", "pservers", "pscpu_milli", "psmemory_bytes")


def _shape(job: JobShape, submission: Submission) -> str:
    """`2 trainers + 2 pservers`; nothing for a single process. Parameter servers that nobody has
    asked for come with the flag that does without them: a plain program would run in each."""
    counts = {role: each["wanted"] for role, each in job["roles"].items() if each["wanted"]}
    if sum(counts.values()) <= 1:
        return ""
    words = sizes.roles(counts)
    if "pserver" not in counts or any(name in submission.written for name in _ABOUT_SERVERS):
        return words
    if counts.get("trainer") == 1:
        return f"{words}; for one program only: --mode single"
    return f"{words}; for trainers only: --mode collective"


def _print_job(session: Session, job: JobShape) -> None:
    from paddlecloud.cli.output import print_object

    form = session.parsed.text("o")
    if form == "name":
        session.say(job["name"])
    else:
        print_object(session, job, form)  # type: ignore[arg-type]


# --- staying with the job --------------------------------------------------------------------


def follow(session: Session, job: JobShape) -> int:
    """Print the logs to the end; the job decides the exit code."""
    from paddlecloud.cli.log_lines import LogPrinter

    printer = LogPrinter(session)
    try:
        _say_if_it_waits(session, job)
        for record in session.client.follow_logs(
            job["id"], run=job["run"], on_cut=lambda: _reconnecting(session)
        ):
            printer.take(record)
        printer.finish()
        return _report(session, session.client.wait(job["id"]) or job)
    except KeyboardInterrupt:
        printer.finish()
        return _detached(session, job)


def wait(session: Session, job: JobShape) -> int:
    try:
        return _report(session, outcomes.wait_for_end(session, job["id"]) or job)
    except KeyboardInterrupt:
        return _detached(session, job)


def _say_if_it_waits(session: Session, job: JobShape) -> None:
    if session.client.wait(job["id"], "running", timeout_s=1.0) is None:
        now = session.client.get(job["id"])
        if now["reason"]:
            name = now["name"]
            session.note(f"{name} is {now['phase']}: {now['reason']}   paddlecloud explain {name}")


def _reconnecting(session: Session) -> None:
    session.note("the connection was cut; the job goes on, connecting again ...")


def _report(session: Session, job: JobShape) -> int:
    if "o" not in session.parsed:
        session.say(outcomes.result_line(job))
    return outcomes.exit_code(job)


def _detached(session: Session, job: JobShape) -> int:
    name = job["name"]
    session.note(
        f"\ndetached; the job goes on.  paddlecloud logs -f {name}   ·   paddlecloud kill {name}"
    )
    return 130
