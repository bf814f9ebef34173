"""Other operators on the same cluster: Kubeflow's training-operator and Volcano, as processes.

`_kube_peers.sh` builds them once per user. `peers(...)` gives, for each, a name, the jobs it takes
and how to start it: as it comes, and with the limits of its API client raised out of the way.
Its objects are installed before it is started; what is started is ended by pid. Webhooks are left
out, which spares the peers a call per object.
"""

from __future__ import annotations

import base64
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from _children import end, free_port
from _kube_jobs import TRAINING_OPERATOR, VOLCANO, Contender
from _report import CannotMeasure

from paddlecloud.kube.client import Client, collection
from paddlecloud.kube.refusals import Refused

BUILD = Path(__file__).with_name("_kube_peers.sh")
# Written into the training-operator.
CERTIFICATES = Path("/tmp/k8s-webhook-server/serving-certs")
QUICK = ["--kube-api-qps=5000", "--kube-api-burst=5000"]
START_S = 60.0


@dataclass(frozen=True)
class Peer:
    name: str
    contender: Contender
    run: Callable[[], Any]  # a context in which it runs


def build() -> Path:
    done = subprocess.run([BUILD], capture_output=True, text=True)
    if done.returncode:
        raise CannotMeasure(f"the peers cannot be built: {done.stderr.strip()[-300:]}")
    return Path(done.stdout.strip().splitlines()[-1])


def peers(
    client: Client, config: Path, programs: Path, scheduler: Path, folder: Path
) -> list[Peer]:
    """`scheduler` is Volcano's, of the test cluster's programs."""

    def training(program: str, *words: str) -> Callable[[], Any]:
        return lambda: _training_operator(client, config, programs, program, folder, words)

    def volcano(*words: str) -> Callable[[], Any]:
        return lambda: _volcano(client, config, programs, scheduler, folder, words)

    return [
        Peer("training_operator", TRAINING_OPERATOR, training("training-operator")),
        Peer(
            "training_operator_unlimited",
            TRAINING_OPERATOR,
            training("training-operator-unlimited", "--controller-threads=8"),
        ),
        Peer("volcano", VOLCANO, volcano()),
        Peer("volcano_unlimited", VOLCANO, volcano(*QUICK)),
    ]


@contextmanager
def _process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output)
    try:
        yield process
    finally:
        end(process.pid)
        process.wait()


def _install(client: Client, files: Path) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    for file in sorted(files.glob("*.yaml")):
        for body in yaml.safe_load_all(file.read_text()):
            if body and body.get("kind") == "CustomResourceDefinition":
                _create(client, path, body)


def _create(client: Client, path: str, body: dict[str, Any]) -> None:
    try:
        client.create(path, body)
    except Refused as error:
        if not error.is_taken:
            raise


def _until(true: Callable[[], bool], what: str, log: Path) -> None:
    deadline_s = time.monotonic() + START_S
    while not true():
        if time.monotonic() > deadline_s:
            raise CannotMeasure(f"{what}: {log.read_text(errors='replace')[-300:]}")
        time.sleep(0.2)


def _is_served(client: Client, who: Contender) -> bool:
    try:
        client.get(collection(who.api, who.plural))
    except Refused:
        return False
    return True


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


@contextmanager
def _training_operator(
    client: Client, config: Path, programs: Path, program: str, folder: Path, words: tuple[str, ...]
) -> Iterator[None]:
    _install(client, programs / "training-operator-manifests" / "crds")
    _create(client, collection("v1", "namespaces"), {"metadata": {"name": "kubeflow"}})
    secrets, name = collection("v1", "secrets", "kubeflow"), "training-operator-webhook-cert"
    _create(client, secrets, {"metadata": {"name": name}})
    # It insists on a configuration of webhooks to write its certificate to; this one calls nobody.
    nobody = {
        "name": "nobody.training-operator.kubeflow.org",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Ignore",
        "clientConfig": {"service": {"name": "nobody", "namespace": "kubeflow"}},
        "rules": [
            {
                "apiGroups": ["nobody.kubeflow.org"],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["nothing"],
            }
        ],
    }
    hooks = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    metadata = {"name": "validator.training-operator.kubeflow.org"}
    _create(client, hooks, {"metadata": metadata, "webhooks": [nobody]})
    log, health = folder / f"{program}.log", free_port()
    command = [
        str(programs / program),
        f"--kubeconfig={config}",
        f"--metrics-bind-address=127.0.0.1:{free_port()}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--webhook-server-port={free_port()}",
        "--enable-scheme=pytorchjob",
        *words,
    ]

    def has_certificates() -> bool:
        """In a pod the kubelet would put the secret there."""
        data = client.get(f"{secrets}/{name}").get("data") or {}
        if "tls.crt" not in data:
            return False
        CERTIFICATES.mkdir(parents=True, exist_ok=True)
        for file in ("ca.crt", "tls.key", "tls.crt"):
            (CERTIFICATES / file).write_bytes(base64.b64decode(data[file]))
        return True

    with _process(command, log):
        _until(lambda: _is_served(client, TRAINING_OPERATOR), "its kinds", log)
        _until(has_certificates, "its certificates", log)
        _until(lambda: _answers(f"http://127.0.0.1:{health}/readyz"), "the training-operator", log)
        yield


_SCHEDULER = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
  - name: binpack
"""


@contextmanager
def _volcano(
    client: Client,
    config: Path,
    programs: Path,
    scheduler: Path,
    folder: Path,
    words: tuple[str, ...],
) -> Iterator[None]:
    _install(client, programs / "volcano-definitions")
    (folder / "volcano.yaml").write_text(_SCHEDULER)
    log = folder / "volcano.log"
    _until(lambda: _is_served(client, VOLCANO), "its kinds", log)
    common = [f"--kubeconfig={config}", "--leader-elect=false", *words]

    def ports() -> list[str]:
        address = "127.0.0.1:"
        return [
            f"--listen-address={address}{free_port()}",
            f"--healthz-address={address}{free_port()}",
        ]

    scheduling = [
        str(scheduler),
        *common,
        *ports(),
        f"--scheduler-conf={folder / 'volcano.yaml'}",
        "--enable-metrics=false",
    ]
    # Those that make pods of jobs; others wait in vain for kinds that are not installed.
    needed = "--controllers=gc-controller,job-controller,pg-controller,queue-controller"
    controllers = [str(programs / "volcano-controllers"), *common, *ports(), needed]
    with ExitStack() as stack:
        stack.enter_context(_process(scheduling, log))
        stack.enter_context(_process(controllers, log))
        queue = f"{collection('scheduling.volcano.sh/v1beta1', 'queues')}/default"

        def has_a_queue() -> bool:
            try:
                return client.get(queue).get("status", {}).get("state") == "Open"
            except Refused:
                return False

        _until(has_a_queue, "Volcano's queue", log)
        yield
