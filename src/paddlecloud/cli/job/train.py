"""`paddlecloud job train`: flags, a configuration file and some files become a running job.

All faults, of flags, file and paths, come at once and before anything is sent. Answers are those of
the old client (`answers`). `--dry-run` needs no server: it shows the specification and how every
flag was understood.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace

from paddlecloud.cli.job import answers, composing
from paddlecloud.cli.job.connection import ALL, JobSession
from paddlecloud.cli.pfs import paths
from paddlecloud.core import jobspec
from paddlecloud.core.errors import CannotFit, InvalidInput, NotFound, PaddleCloudError
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.forms import config_ini, rest_v1, train_flags
from paddlecloud.forms.effective import effective
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.train_flags import HINT, Training
from paddlecloud.wire import job_workspace

_CHECKING = "Start checking your job configuration, please be patient."
_CHECKED = "Congratulations! Job configuration check passed!"


class _UnknownCluster(Exception):
    def __init__(self, clusters: list[str]) -> None:
        super().__init__()
        self.clusters = clusters


def run(session: JobSession) -> int:
    training = read(session)
    if training.is_dry_run:
        return _dry_run(session, training)
    is_quiet = training.wants_json
    if session.generation == 2 and not is_quiet and not training.skips_check:
        session.say(_CHECKING)
        session.say(_CHECKED)
    try:
        job = _submit(session, training, is_quiet)
    except _UnknownCluster as unknown:
        session.say(f"Oops...The named cluster '{training.spec.cluster}' not exists.")
        rows = [(name,) for name in unknown.clusters]
        session.write(answers.table(("cluster_name",), rows))
        return 1
    except PaddleCloudError as error:
        session.debug(error)
        session.say(f"{answers.ABORTED}{_flat(_in_typed_words(error, training))}")
        if error.hint:
            session.note(f"hint:  {error.hint}")
        return 1
    session.write(answers.trained(job, session.generation, only_json=is_quiet))
    return 0


def _in_typed_words(error: PaddleCloudError, training: Training) -> str:
    """The server names keys of its REST body; who typed `--k8s-memory` is told of that."""
    faults = error.faults if isinstance(error, InvalidInput | CannotFit) else ()
    each = [f"{training.word_for(fault.field)} {fault.problem}" for fault in faults]
    return "; ".join(each) or error.message


def _flat(text: str) -> str:
    """Scripts read the failure as one line."""
    return " ".join(text.split())


# --- reading ---------------------------------------------------------------------------------


def read(session: JobSession) -> Training:
    """What the command line means here; raises InvalidInput with every fault there is."""
    faults = session.faults
    training = train_flags.read(
        session.words, faults, earlier=ALL, in_full=lambda path: paths.resolve(session, [path])[0]
    )
    session.unknown += training.unknown
    if training.conf:
        _take_conf(training, faults)
    composing.check(training, faults)
    session.raise_if_any(hint=HINT)
    return training


def _take_conf(training: Training, faults: FaultList) -> None:
    try:
        with open(training.conf, "rb") as file:
            raw = file.read()
    except OSError as error:
        faults.add(training.word("conf"), f"cannot be read: {error.strerror}", training.conf)
        return
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("gb18030", "replace")  # what editors of that time wrote
    if not training.skips_check:
        training.with_conf(config_ini.parse(text, faults, field=training.word("conf")))
        return
    found = FaultList()
    config = config_ini.parse(text, found)
    training.with_conf(replace(config, notes=(*config.notes, *_as_notes(found))))


def _as_notes(found: FaultList) -> list[str]:
    try:
        found.raise_if_any()
    except InvalidInput as error:
        return [f"{fault.problem}; not used" for fault in error.faults]
    return []


# --- submitting ------------------------------------------------------------------------------


def _submit(session: JobSession, training: Training, is_quiet: bool) -> dict[str, object]:
    import tempfile

    spec = _settled(session, training.spec)
    with tempfile.TemporaryDirectory(prefix="paddlejob-") as folder:
        try:
            taken = composing.compose(training, folder)
        except OSError as error:
            where = error.filename or folder
            raise InvalidInput(f"cannot collect {where}: {error.strerror}") from error
        if session.generation == 1 and not is_quiet:
            for path in taken:
                session.say(f"uploading {path}")
            session.flush()
        form = dict(rest_v1.render(job_workspace.as_sent(spec, os.urandom(3).hex())))
        job = session.client.submit(form, package=folder)
    # A list does not bring the specification.
    return {**job, "spec": {"group": spec.group}}


def _settled(session: JobSession, spec: JobSpec) -> JobSpec:
    """The spec with what only the server knows: its clusters, its runtimes."""
    if spec.cluster:
        clusters = session.client.whoami()["clusters"]
        if spec.cluster not in clusters:
            raise _UnknownCluster(clusters)
    if algorithm := spec.annotations.get("algo-id", ""):
        _check_algorithm(session, algorithm)
    if uri := spec.annotations.get("code-uri", ""):
        _check_code(session, uri)
    if spec.runtime:
        known = {runtime["name"] for runtime in session.client.runtimes()}
        if spec.runtime not in known:
            session.note(f"note: no runtime called {spec.runtime} here; the default one is used")
            return replace(
                spec, runtime="", annotations={"job-version": spec.runtime, **spec.annotations}
            )
    return spec


def _check_algorithm(session: JobSession, algorithm: str) -> None:
    """Before anything is uploaded; the server checks it again with the job."""
    try:
        session.client.algorithm(algorithm, limit=1)
    except NotFound as error:
        words = f"--algo-id {algorithm}: there is no such algorithm you may use"
        hint = "paddlecloud algo list shows them, paddlecloud algo create makes one"
        raise NotFound(words, hint=hint) from error


def _check_code(session: JobSession, uri: str) -> None:
    """At the start of the job it would be a failure of every replica."""
    try:
        session.client.files.entry(uri)
    except NotFound as error:
        words = f"--code-uri {uri}: there is nothing there"
        raise NotFound(words, hint="paddlecloud pfs cp puts files under /pfs") from error


# --- only showing ----------------------------------------------------------------------------


def _dry_run(session: JobSession, training: Training) -> int:
    spec = training.spec
    plain = jobspec.to_json(replace(spec, env=config_ini.shown(spec.env)))
    summary = effective(spec)
    understood = [each._asdict() for each in training.understood]
    if training.wants_json:
        result = {"spec": plain, "effective": summary, "understood": understood}
        session.say(answers.as_json(result))
        return 0
    session.say(f"{spec.name}: nothing was submitted (dry run)")
    session.say("effective")
    for key, value in summary.items():
        session.say(f"  {key:<18} {'none' if value is None else str(value).lower()}")
    session.say("understood")
    heads = [f"{each.flag} {each.value}".strip() for each in training.understood]
    column = min(max(len(head) for head in heads), 40)
    for head, each in zip(heads, training.understood, strict=True):
        session.say(f"  {head:<{column}}  {each.meaning}")
    session.say("specification")
    for line in answers.as_json(plain).splitlines():
        session.say(f"  {line}")
    sys.stdout.flush()
    return 0
