"""`paddlecloud job train` of generation B: flags and a configuration file → `JobSpec`.

`parse(argv, conf)` reads every spelling of every release (`train_options`), decides the mode
(`train_modes`) and settles the rest by `draft.settle`, as the other forms do; all faults come at
once, each with the flag as typed. `render(spec)` writes flags and file, and
`parse(*render(spec)).spec == spec`. What has no field of its own in a spec is an annotation.
Pure: the caller reads the configuration file and looks for the files that are named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from paddlecloud.core.jobspec import JobSpec, Mode, Priority, Role
from paddlecloud.forms import config_ini, rest_v1
from paddlecloud.forms.config_ini import Config
from paddlecloud.forms.draft import DEFAULT_CPU_MILLI, DEFAULT_MEMORY_BYTES, Draft, Word, settle
from paddlecloud.forms.durations import format_duration
from paddlecloud.forms.effective import LAUNCHER, LAUNCHERS
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.fields import is_pfs_path
from paddlecloud.forms.go_flags import Flag, Given, Parsed
from paddlecloud.forms.long_flags import parse as parse_flags
from paddlecloud.forms.train_modes import Size, decide, settle_twice
from paddlecloud.forms.train_options import COUNTS, DEFAULT_VERSION, FLAGS, OPTIONS
from paddlecloud.forms.understood import Understood

USAGE = "paddlecloud job train --job-name NAME --start-cmd COMMAND [options]"
HINT = f"usage: {USAGE}     (paddlecloud job train --help)"

# Option -> the annotation that keeps it.
NOTES: Mapping[str, str] = {
    "permission": "permission",
    "gpu_type": "gpu-type",
    "code_uri": "code-uri",
    "algo": "algo-id",
    "tags": "tags",
    "remark": "remark",
}
CUSTOM_VERSION = "job-version"
# Field of Draft -> the options that set it.
_NAMES_BY_FIELD: Mapping[str, tuple[str, ...]] = {
    "name": ("name",),
    "entry": ("entry",),
    "parallelism": ("trainers", "mpi_nodes", "slurm_nodes", "slurm_tasks"),
    "cpu_milli": ("cpu",),
    "memory_bytes": ("memory_bytes", "mpi_memory_bytes"),
    "gpu": ("gpu", "slurm_gpu"),
    "pservers": ("ps_num",),
    "pscpu_milli": ("ps_cpu",),
    "psmemory_bytes": ("ps_memory_bytes",),
    "cluster": ("cluster",),
    "group": ("group",),
    "runtime": ("version", "image"),
    "env": ("conf",),
}
_NAME_BY_KEY = {option.flag.key: name for name, option in OPTIONS.items()}


@dataclass(slots=True)
class Training:
    """A `job train` as read. With faults it is not usable."""

    spec: JobSpec
    understood: list[Understood] = field(default_factory=list)
    files: tuple[str, ...] = ()  # as typed, and so the other paths
    file_dir: str = ""
    code_uri: str = ""
    conf: str = ""
    skips_check: bool = False
    wants_json: bool = False
    is_dry_run: bool = False
    unknown: tuple[str, ...] = ()
    written: Mapping[str, str] = field(default_factory=dict)

    def word(self, name: str) -> str:
        """An option as typed, for a fault found later."""
        return self.written.get(name) or OPTIONS[name].flag.names[0]

    def word_for(self, key: str) -> str:
        """What to call a key of the REST body in front of who typed flags."""
        names = _NAMES_BY_FIELD.get(rest_v1.field_of(key), ())
        typed = [self.written[name] for name in names if name in self.written]
        return typed[0] if typed else OPTIONS[names[0]].flag.names[0] if names else key

    def with_conf(self, config: Config) -> None:
        """Take in what the configuration file says."""
        self.spec = replace(self.spec, env=dict(config.env))
        word = self.word("conf")
        self.understood += [Understood(word, self.conf, note) for note in config.notes]


def parse(argv: Sequence[str], conf: str = "") -> Training:
    """Read the words after `train` and the text of the configuration file.

    Raises InvalidInput with every fault there is.
    """
    faults = FaultList()
    training = read(argv, faults)
    training.with_conf(config_ini.parse(conf, faults))
    faults.raise_if_any(hint=HINT)
    return training


def read(
    argv: Sequence[str],
    faults: FaultList,
    *,
    earlier: Sequence[Flag] = (),
    in_full: Callable[[str], str] = str,
) -> Training:
    """As `parse`, without the file; faults are added, so that the caller can find more.

    `earlier` are flags that stand before `train`; `in_full` makes a path on the platform whole.
    """
    parsed = parse_flags(argv, FLAGS, faults, earlier=earlier)
    given = {_NAME_BY_KEY[key]: each for key, each in parsed.given.items() if key in _NAME_BY_KEY}
    _take_positionals(parsed, given, faults)

    def word(name: str) -> str:
        if name in given:
            return given[name].written
        return OPTIONS[name].flag.names[0] if name in OPTIONS else name

    values, dropped = _read_values(given, faults)
    if "code_uri" in values:
        values["code_uri"] = in_full(values["code_uri"])
    _require(given, faults)
    spec, size = settle_values(values, faults, word)
    return Training(
        spec,
        _understood(given, dropped, size, spec),
        files=_texts(given.get("files")),
        file_dir=values.get("file_dir", ""),
        code_uri=values.get("code_uri", ""),
        conf=values.get("conf", ""),
        skips_check=bool(values.get("skip_check")),
        wants_json=bool(values.get("json")),
        is_dry_run=bool(values.get("dry_run")),
        unknown=parsed.unknown,
        written={name: each.written for name, each in given.items()},
    )


def settle_values(values: Mapping[str, Any], faults: FaultList, word: Word) -> tuple[JobSpec, Size]:
    """The spec that options already read mean; also how the job body of the service is settled."""
    size = decide(values, faults, word)
    draft = _draft(values, size, faults, word)
    _check_version(values, draft, size, faults, word)
    _check_sources(values, faults, word)
    return settle(draft, faults, word), size


def _texts(given: Given | None) -> tuple[str, ...]:
    return given.value if given is not None and isinstance(given.value, tuple) else ()


def _take_positionals(parsed: Parsed, given: dict[str, Given], faults: FaultList) -> None:
    """The oldest release: `train NAME FILE... CONF`."""
    words = list(parsed.positionals)
    if words and "name" not in given:
        given["name"] = Given("<job name>", words[0], words.pop(0))
    elif words and not parsed.unknown and "files" not in given:
        faults.add(words[0], "what is this? Every value needs its flag", "")
        return
    if words and "conf" not in given:
        last = words.pop()
        given["conf"] = Given("<job conf>", last, last)
    if words:
        files = (*_texts(given.get("files")), *words)
        given["files"] = Given("<files>", words[0], files)


def _read_values(
    given: Mapping[str, Given], faults: FaultList
) -> tuple[dict[str, Any], dict[str, str]]:
    """(what can be read, why some of it is as if it had not been written)."""
    values: dict[str, Any] = {}
    dropped: dict[str, str] = {}
    for name, each in given.items():
        option = OPTIONS[name]
        if option.read is None:
            values[name] = each.value
            continue
        value = faults.read(each.written, each.text, option.read)
        if value == 0 and name in COUNTS:
            dropped[name] = "0 is as if it were not given"
        elif value is not None:
            values[name] = value
        elif name == "image":
            values[name] = None  # given, and told: it is not missing as well
    return values, dropped


def _require(given: Mapping[str, Given], faults: FaultList) -> None:
    for name, example in (("name", "my_job"), ("entry", '"python train.py"')):
        if name not in given:
            flag = OPTIONS[name].flag.names[0]
            faults.add(flag, f"is missing; write {flag} {example}")


def _draft(values: Mapping[str, Any], size: Size, faults: FaultList, word: Word) -> Draft:
    memory = settle_twice(values, ("memory_bytes", "mpi_memory_bytes"), faults, word)
    notes = {NOTES[name]: values[name] for name in NOTES if values.get(name) not in (None, "")}
    if notes.get("permission") == "private":
        del notes["permission"]
    if size.launcher:
        notes[LAUNCHER] = size.launcher
    cores, ps_cores = values.get("cpu"), values.get("ps_cpu")
    return Draft(
        name=values.get("name"),
        mode=size.mode,
        parallelism=size.trainers,
        cpu_milli=cores * 1000 if cores else None,
        memory_bytes=memory,
        gpu=size.gpu,
        pservers=size.pservers,
        pscpu_milli=ps_cores * 1000 if ps_cores else None,
        psmemory_bytes=values.get("ps_memory_bytes"),
        entry=values.get("entry"),
        cluster=values.get("cluster"),
        priority=settle_twice(values, ("priority", "mpi_priority"), faults, word),
        wall_time_s=values.get("wall_time_s"),
        annotations=notes,
        may_borrow=values.get("may_borrow"),
        group=values.get("group"),
    )


def is_custom(version: str) -> bool:
    return "custom" in version


def _check_version(
    values: Mapping[str, Any], draft: Draft, size: Size, faults: FaultList, word: Word
) -> None:
    version, image = values.get("version", ""), values.get("image", "")
    if not is_custom(version):
        draft.runtime = version
        if image:
            shown = version or f"{DEFAULT_VERSION} (the default)"
            size.unused["image"] = f"not used: {word('version')} {shown} is not a custom one"
        return
    draft.annotations[CUSTOM_VERSION] = version
    draft.runtime = image or ""
    if image == "":
        faults.add(word("version"), f"needs {word('image')}, the image to run in", version)


def _check_sources(values: Mapping[str, Any], faults: FaultList, word: Word) -> None:
    found = [name for name in ("code_uri", "file_dir") if name in values]
    if len(found) == 2:
        faults.add(word("file_dir"), f"cannot stand beside {word('code_uri')}; choose one")
    uri = values.get("code_uri", "")
    if uri and not is_pfs_path(uri):
        faults.add(
            word("code_uri"),
            "must be a folder or a .tar.gz under /pfs/<cluster>/home/<user>",
            uri,
        )


def _understood(
    given: Mapping[str, Given], dropped: Mapping[str, str], size: Size, spec: JobSpec
) -> list[Understood]:
    found = []
    for name, each in given.items():
        text = " ".join(_texts(each)) or ("" if each.value is True else each.text)
        why = dropped.get(name) or size.unused.get(name)
        found.append(Understood(each.written, text, why or OPTIONS[name].says.format(text)))
    found.append(Understood("(mode)", spec.mode.value, size.why))
    if size.launcher:
        found.append(Understood("(launcher)", size.launcher, LAUNCHERS[size.launcher]))
    return found


# --- and back --------------------------------------------------------------------------------


class Written(NamedTuple):
    argv: list[str]
    conf: str


def render(spec: JobSpec) -> Written:
    """Flags and a configuration file that mean this spec.

    Raises ValueError for what this form cannot express.
    """
    check_expressible(spec)
    trainer, servers = spec.trainers, spec.role(Role.PSERVER)
    launcher = spec.annotations.get(LAUNCHER, "")
    count = {"mpi": "--mpi-nodes", "slurm": "--slurm-nodes"}.get(launcher, "--k8s-trainers")
    words = {
        "--job-name": spec.name,
        "--start-cmd": spec.entry,
        "--is-standalone": str(int(spec.mode == Mode.SINGLE)),
        count: str(trainer.replicas),
        "--k8s-cpu-cores": str(trainer.resources.cpu_milli // 1000),
        "--k8s-memory": format_memory(trainer.resources.memory_bytes),
        "--k8s-gpu-cards": str(trainer.resources.gpu),
    }
    if spec.mode != Mode.SINGLE:
        words["--distribute-job-type"] = "PSERVER" if servers else "NCCL2"
    if servers:
        words["--k8s-ps-num"] = str(servers.replicas)
        words["--k8s-ps-cores"] = str(servers.resources.cpu_milli // 1000)
        words["--k8s-ps-memory"] = format_memory(servers.resources.memory_bytes)
    if spec.priority != Priority.NORMAL:
        words["--k8s-priority"] = spec.priority.word
    if spec.wall_time_s:
        words["--wall-time"] = format_duration(spec.wall_time_s)
    if spec.may_borrow:
        words["--is-auto-over-sell"] = "1"
    words |= _note_words(spec)
    argv = [f"{flag}={text}" for flag, text in words.items() if text]
    return Written(argv, config_ini.render(spec.env))


def _note_words(spec: JobSpec) -> dict[str, str]:
    words = {
        OPTIONS[name].flag.names[0]: spec.annotations.get(note, "") for name, note in NOTES.items()
    }
    words["--cluster-name"] = spec.cluster
    words["--group-name"] = spec.group
    version = spec.annotations.get(CUSTOM_VERSION, "")
    words["--job-version"] = version or spec.runtime
    words["--image-addr"] = spec.runtime if version else ""
    return words


def format_memory(size_bytes: int) -> str:
    for suffix, factor in (("Gi", 2**30), ("Mi", 2**20)):
        if size_bytes % factor == 0:
            return f"{size_bytes // factor}{suffix}"
    return f"{size_bytes // 1024}Ki"


def check_expressible(spec: JobSpec) -> None:
    """Raise ValueError for a spec this generation has no words for."""
    plain = JobSpec(
        name=spec.name,
        mode=spec.mode,
        roles=spec.roles,
        entry=spec.entry,
        cluster=spec.cluster,
        runtime=spec.runtime,
        env=spec.env,
        priority=spec.priority,
        wall_time_s=spec.wall_time_s,
        annotations=spec.annotations,
        may_borrow=spec.may_borrow,
        group=spec.group,
    )
    known = {*NOTES.values(), LAUNCHER, CUSTOM_VERSION}
    is_round = all(
        role.resources.cpu_milli % DEFAULT_CPU_MILLI == 0
        and role.resources.memory_bytes % (DEFAULT_MEMORY_BYTES >> 20) == 0
        and role.min_replicas == role.replicas == role.max_replicas
        and role.template is None
        for role in spec.roles
    )
    if plain != spec or not is_round or not set(spec.annotations) <= known:
        raise ValueError(f"job {spec.name} cannot be written as flags of `job train`")
