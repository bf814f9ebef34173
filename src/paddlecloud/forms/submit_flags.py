"""`paddlecloud submit` of generation A: flags and a package path → `JobSpec`.

Every spelling of the first client and of its design document is read (`-p 4`, `-parallelism=4`,
`--parallelism 4`; the package before, between or after the flags), and what people expect today.
All faults are reported at once. `render` writes the flags of a spec, for `--dry-run` and hints.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paddlecloud.core.jobspec import CleanPolicy, JobSpec, Priority, RestartRule, Role, RoleSpec
from paddlecloud.core.resources import format_cpu, format_memory
from paddlecloud.forms.draft import DEFAULT_GRACE_S, Draft, settle
from paddlecloud.forms.durations import format_duration
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.fields import (
    PAIR_CHECKS,
    PERMISSION,
    READERS,
    SHARED,
    cluster_of_package,
    is_pfs_path,
    read_package,
    read_permission,
    split_pair,
)
from paddlecloud.forms.go_flags import Flag, Given, Kind, Parsed
from paddlecloud.forms.go_flags import parse as parse_flags

USAGE = "paddlecloud submit [options] <package path>"
PACKAGE = "<package path>"
DEFAULT_ENTRY = "paddle train"

# Field of Draft -> its flag.
_FLAGS: Mapping[str, Flag] = {
    "name": Flag(
        ("-jobname", "-name", "--job-name"),
        meaning="the job's name (default paddle-cluster-job)",
        value="NAME",
    ),
    "parallelism": Flag(("-parallelism", "-p"), meaning="trainers (default 1)", value="N"),
    "cpu_milli": Flag(
        ("-cpu", "-c"), meaning="cpu per trainer: 1, 0.5, 500m (default 1)", value="CPU"
    ),
    "gpu": Flag(("-gpu", "-g", "--gpus"), meaning="cards per trainer (default 0)", value="N"),
    "memory_bytes": Flag(
        ("-memory", "-m"), meaning="memory per trainer: 512Mi, 10Gi (default 1Gi)", value="SIZE"
    ),
    "pservers": Flag(
        ("-pservers",),
        meaning="parameter servers (default as many as trainers; 0 for none)",
        value="N",
    ),
    "pscpu_milli": Flag(("-pscpu",), meaning="cpu per parameter server (default 1)", value="CPU"),
    "psmemory_bytes": Flag(
        ("-psmemory",), meaning="memory per parameter server (default 1Gi)", value="SIZE"
    ),
    "entry": Flag(("-entry",), meaning='start command (default "paddle train")', value="COMMAND"),
    "topology": Flag(("-topology", "-t"), meaning="v1 configuration file", value="FILE"),
    "passes": Flag(("-passes",), meaning="passes over the data (default 1)", value="N"),
    "runtime": Flag(("-image", "--runtime"), meaning="image or runtime to run in", value="NAME"),
    "registry": Flag(
        ("-registry",), meaning="registry secret for the image (Kubernetes)", value="NAME"
    ),
    "fault_tolerant": Flag(
        ("-faulttolerant", "--fault-tolerant"),
        Kind.BOOL,
        meaning="go on while at least one trainer lives",
    ),
    "min_instance": Flag(
        ("-min_instance", "--min"),
        meaning="start as soon as there is room for this many trainers",
        value="N",
    ),
    "max_instance": Flag(
        ("-max_instance", "--max"),
        meaning="start with as many trainers as there is room for, up to this",
        value="N",
    ),
    "mode": Flag(
        ("--mode",),
        meaning="mode: single, collective or ps; decides what is unset",
        value="MODE",
    ),
    "priority": Flag(
        ("--priority",),
        meaning="priority: low, normal, high, very_high (default normal)",
        value="WORD",
    ),
    "wall_time_s": Flag(
        ("--wall-time",),
        meaning="stop after a time: 1:30:00, 10m, 2h (default never)",
        value="TIME",
    ),
    "max_restarts": Flag(
        ("--max-restarts",), meaning="restart after failures, at most N times", value="N"
    ),
    "restart_exit_codes": Flag(
        ("--restart-exit-codes",), meaning="restart on these codes only: 1,2,137", value="CODES"
    ),
    "grace_s": Flag(("--grace",), meaning="time between TERM and KILL (default 10s)", value="TIME"),
    "clean": Flag(
        ("--clean-policy",),
        meaning="when remains are removed: Always, Never, OnFailure, OnCompletion",
        value="WORD",
    ),
    "env": Flag(
        ("--env",), Kind.LIST, meaning="a variable of the job; may be repeated", value="NAME=VALUE"
    ),
    "labels": Flag(
        ("--label", "-l"), Kind.LIST, meaning="a label; may be repeated", value="NAME=VALUE"
    ),
    "annotations": Flag(
        ("--annotation",), Kind.LIST, meaning="a note; may be repeated", value="NAME=TEXT"
    ),
    "may_borrow": Flag(
        ("--may-borrow",),
        Kind.BOOL,
        meaning="may run on what others leave idle, and be preempted first",
    ),
    "permission": Flag(
        ("--permission",),
        meaning="who may see the job: private or group (default private)",
        value="WORD",
    ),
    "group": Flag(
        ("--group", "--group-name"),
        meaning="whose quota it counts against (default your own group)",
        value="GROUP",
    ),
}
FLAGS: tuple[Flag, ...] = tuple(_FLAGS.values())
_FIELD_BY_KEY = {flag.key: name for name, flag in _FLAGS.items()}


@dataclass(frozen=True, slots=True)
class Submission:
    """A well-formed `submit`: the wish, the folder to send, and the flags for the client."""

    spec: JobSpec
    package: str  # as typed; a /pfs/... path is used in place and stands in spec.package too
    client: Parsed  # the given flags of `client_flags`
    written: Mapping[str, str]  # field of Draft -> its flag as it was typed
    given: Mapping[str, Given]  # the flags of the job itself, by key

    def flag_for(self, key: str) -> str:
        """What to call a key of the REST body in front of who typed flags; empty if it has none."""
        from paddlecloud.forms import rest_v1

        name = rest_v1.field_of(key)
        if name == "package":
            return PACKAGE
        return self.written.get(name) or (_FLAGS[name].names[0] if name in _FLAGS else "")

    @property
    def is_in_place(self) -> bool:
        return bool(self.spec.package)

    def in_place(self, package: str) -> Submission:
        """The same job with a package that is on the platform already, by its whole path."""
        faults = FaultList()
        path = faults.read(PACKAGE, package, read_package) or ""
        faults.raise_if_any()
        spec = replace(self.spec, package=path, cluster=cluster_of_package(path))
        return replace(self, package=package, spec=spec)


def parse(
    argv: Sequence[str], *, cluster: str = "", client_flags: Sequence[Flag] = ()
) -> Submission:
    """Read the words after `submit`; raises InvalidInput with every fault there is.

    `cluster` is used unless the package is a /pfs path, which names its own. `client_flags` are
    the caller's own (--follow, -o, ...), returned in `client`.
    """
    faults = FaultList()
    parsed = parse_flags(argv, [*FLAGS, *client_flags], faults, last_wins=False)
    draft = Draft()
    for key, given in parsed.given.items():
        name = _FIELD_BY_KEY.get(key)
        if name is None:
            continue
        if name == "permission":
            continue  # a note, to be compared with those that are given
        if name in PAIR_CHECKS:
            _read_pairs(getattr(draft, name), given, parsed.texts(key), name, faults)
        elif isinstance(given.value, bool):
            setattr(draft, name, given.value)
        else:
            setattr(draft, name, faults.read(given.written, given.text, READERS[name]))
    _take_permission(parsed, draft, faults)
    package = _take_package(parsed, draft, faults)
    draft.cluster = cluster_of_package(draft.package or "") or cluster
    if not draft.entry and not draft.topology:
        draft.entry = DEFAULT_ENTRY

    def word(name: str) -> str:
        flag = _FLAGS[name]
        return parsed.given[flag.key].written if flag.key in parsed else flag.names[0]

    spec = settle(draft, faults, word)
    if draft.restart_exit_codes and "max-restarts" not in parsed:
        faults.add(
            word("restart_exit_codes"),
            "does nothing without restarts; add --max-restarts 3",
            parsed.text("restart-exit-codes"),
        )
    faults.raise_if_any(hint=f"usage: {USAGE}     (paddlecloud submit --help)")
    ours = {flag.key for flag in client_flags}
    client = Parsed({key: given for key, given in parsed.given.items() if key in ours})
    written = {name: word(name) for name, flag in _FLAGS.items() if flag.key in parsed}
    of_job = {key: each for key, each in parsed.given.items() if key in _FIELD_BY_KEY}
    return Submission(spec, package, client, written, of_job)


def _take_permission(parsed: Parsed, draft: Draft, faults: FaultList) -> None:
    given = parsed.given.get("permission")
    word = faults.read(given.written, given.text, read_permission) if given else None
    if given is None or word is None:
        return
    noted = draft.annotations.get(PERMISSION, word)
    if noted != word:
        faults.add(given.written, f"contradicts --annotation {PERMISSION}={noted}", word)
    if word == SHARED:
        draft.annotations[PERMISSION] = word


def _take_package(parsed: Parsed, draft: Draft, faults: FaultList) -> str:
    if not parsed.positionals:
        faults.add(PACKAGE, "is missing; name the folder that holds your program")
        return ""
    package = parsed.positionals[0]
    # What follows an unknown flag may be its value rather than a second package.
    if len(parsed.positionals) > 1 and not parsed.unknown:
        rest = " ".join(parsed.positionals[1:])
        advice = ' (quote a command: -entry "python train.py")' if "entry" in parsed else ""
        faults.add(PACKAGE, f"is {package}; what else is this?{advice}", rest)
    if not package:
        faults.add(PACKAGE, "is empty; name the folder that holds your program")
    # A local path may be anything this machine understands; it never leaves it.
    if is_pfs_path(package):
        draft.package = faults.read(PACKAGE, package, read_package)
    return package


def _read_pairs(
    into: dict[str, str], given: Given, texts: tuple[str, ...], name: str, faults: FaultList
) -> None:
    check = PAIR_CHECKS[name]
    for text in texts:
        pair = faults.read(given.written, text, split_pair)
        if pair is None:
            continue
        try:
            check(*pair)
        except ValueError as error:
            faults.add(given.written, str(error), text)
            continue
        key, value = pair
        if into.setdefault(key, value) != value:
            faults.add(given.written, f"was already given as {key}={into[key]}", text)


# --- and back --------------------------------------------------------------------------------


def render(spec: JobSpec, package: str = "") -> list[str]:
    """The shortest flags that mean this spec: `parse(render(spec, p)).spec == spec`.

    `cluster` and `package_digest` have no flag; a package in place is its own path.
    """
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)
    words = [
        *_pair("-jobname", spec.name),
        *_pair("--mode", spec.mode.value),
        *_trainer_flags(trainer),
        *(_server_flags(servers) if servers else ()),
    ]
    if spec.entry != DEFAULT_ENTRY or spec.topology:
        words += _pair("-entry", spec.entry)
    words += _pair("-topology", spec.topology)
    words += _pair("-image", spec.runtime)
    words += _pair("-registry", spec.registry)
    if spec.passes != 1:
        words += _pair("-passes", str(spec.passes))
    if spec.fault_tolerant:
        words.append("-faulttolerant")
    words += _policy_flags(spec)
    for name, value in spec.env.items():
        words += _pair("--env", f"{name}={value}")
    for name, value in spec.labels.items():
        words += _pair("--label", f"{name}={value}")
    for name, value in spec.annotations.items():
        if (name, value) == (PERMISSION, SHARED):
            words += _pair("--permission", value)
        else:
            words += _pair("--annotation", f"{name}={value}")
    if spec.may_borrow:
        words.append("--may-borrow")
    words += _pair("--group", spec.group)
    return [*words, "--", spec.package or package]


def _pair(flag: str, text: str) -> list[str]:
    return [f"{flag}={text}"] if text else []


def _trainer_flags(trainer: RoleSpec) -> list[str]:
    words = _pair("-parallelism", str(trainer.replicas))
    words += _pair("-cpu", format_cpu(trainer.resources.cpu_milli))
    words += _pair("-memory", format_memory(trainer.resources.memory_bytes))
    if trainer.resources.gpu:
        words += _pair("-gpu", str(trainer.resources.gpu))
    if trainer.min_replicas != trainer.replicas:
        words += _pair("--min", str(trainer.min_replicas))
    if trainer.max_replicas != trainer.replicas:
        words += _pair("--max", str(trainer.max_replicas))
    return words


def _server_flags(servers: RoleSpec) -> list[str]:
    return [
        *_pair("-pservers", str(servers.replicas)),
        *_pair("-pscpu", format_cpu(servers.resources.cpu_milli)),
        *_pair("-psmemory", format_memory(servers.resources.memory_bytes)),
    ]


def _policy_flags(spec: JobSpec) -> list[str]:
    words = []
    if spec.priority != Priority.NORMAL:
        words += _pair("--priority", spec.priority.word)
    if spec.wall_time_s:
        words += _pair("--wall-time", format_duration(spec.wall_time_s))
    if spec.restart != RestartRule():
        words += _pair("--max-restarts", str(spec.restart.max_restarts))
        codes = ",".join(str(code) for code in sorted(spec.restart.exit_codes))
        words += _pair("--restart-exit-codes", codes)
    if spec.grace_s != DEFAULT_GRACE_S:
        words += _pair("--grace", f"{spec.grace_s:.9f}".rstrip("0").rstrip("."))
    if spec.clean != CleanPolicy.ON_COMPLETION:
        words += _pair("--clean-policy", spec.clean.value)
    return words


def command_line(spec: JobSpec, package: str) -> str:
    """`render` as one line to copy into a shell."""
    return shlex.join(["paddlecloud", "submit", *render(spec, package)])
