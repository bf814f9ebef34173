#!/usr/bin/env python3
"""Starts and stops a real control plane with pretended nodes, and a real node beside them.

    run.py start --programs DIR --state DIR [--nodes N] [--real-node DIR] [--volcano]
    run.py stop --state DIR

`start` leaves alone what already runs, so it may be called at any time; it prints the kubeconfig
of an administrator, and leaves a `bin/kubectl` in the state that uses it. Ports are any that were
free the first time, and kept. `stop` ends, by pid, what `start` started and throws the state away.
`make cluster` and tests/kube call it. All listens on loopback only; with a real node
(`realnode.py`; DIR is what packages.sh made) the API server listens where that node's pods reach
it too, and pretended nodes take only pods that tolerate it. Volcano's scheduler (`volcano.py`)
may be added to a cluster that runs.
openssl makes the keys that the API server will not make for itself.
"""

from __future__ import annotations

import argparse
import json
import secrets
import shlex
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import realnode
import volcano
from processes import end, start_time

from paddlecloud.testing.ports import free_port

HERE = Path(__file__).resolve().parent
START_S = 120.0
TRIES = 3
PARTS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok",
    "volcano-scheduler",
)
# user -> groups; the names are those Kubernetes gives its own parts rights by
USERS = {
    "admin": "system:masters",
    "kwok": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    **realnode.USERS,
}
NODE_SIZE = {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
P100 = {"accelerator": "nvidia-tesla-p100"}  # what an example of ours asks for
PRETENDED = {"key": "paddlepaddle.org/node", "value": "pretended", "effect": "NoSchedule"}


class Cluster:
    def __init__(self, state: Path) -> None:
        self.state = state
        self.kubeconfig = state / "kubeconfig"
        self.commands: dict[str, list[str]] = {}
        self.tries: Counter[str] = Counter()

    # --- what is made once ---------------------------------------------------------------------

    def prepare(self, real: bool) -> None:
        self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        plan = self.state / "plan.json"
        if not plan.exists():
            body = {
                "ports": {
                    part: free_port() for part in ("api", "etcd", "peers", "kcm", "scheduler")
                },
                "tokens": {user: secrets.token_hex(16) for user in USERS},
                "network": realnode.claim_network() if real else None,
            }
            plan.write_text(json.dumps(body))
        self.read_plan()
        if real != (self.network is not None):
            there = "no" if real else "a"
            raise SystemExit(
                f"cluster: the one in {self.state} has {there} real node; stop it first"
            )
        rows = [f'{self.tokens[user]},{user},{user},"{USERS[user]}"' for user in self.tokens]
        (self.state / "tokens.csv").write_text("\n".join(rows) + "\n")
        key = self.state / "accounts.key"
        if not key.exists():
            subprocess.run(
                ["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True
            )
        self.authority = self.state / "certificates" / "apiserver.crt"

    def read_plan(self) -> None:
        try:
            plan = json.loads((self.state / "plan.json").read_text())
        except FileNotFoundError:
            plan = {"ports": {}, "tokens": {}}
        self.ports, self.tokens = plan["ports"], plan["tokens"]
        self.network: int | None = plan.get("network")
        self.address = (
            "127.0.0.1" if self.network is None else realnode.machine_address(self.network)
        )

    def write_kubeconfig(self, path: Path, user: str) -> Path:
        address = f"https://{self.address}:{self.ports['api']}"
        # JSON is YAML, and kubectl reads it.
        body = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": address, "certificate-authority": str(self.authority)},
                }
            ],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "current-context": "test",
        }
        path.write_text(json.dumps(body))
        path.chmod(0o600)
        return path

    def write_kubectl(self, programs: Path) -> None:
        """A `kubectl` for this cluster that can be put on the PATH."""
        program = self.state / "bin" / "kubectl"
        program.parent.mkdir(exist_ok=True)
        words = [str(programs.resolve() / "controlplane"), "kubectl"]
        config = f'KUBECONFIG="${{KUBECONFIG:-{self.kubeconfig}}}"'
        program.write_text(f'#!/bin/sh\n{config} exec {shlex.join(words)} "$@"\n')
        program.chmod(0o755)

    # --- processes -----------------------------------------------------------------------------

    def pid(self, part: str) -> int | None:
        """The pid of a part that runs; a number that another process has got since is not one."""
        try:
            pid, started = (self.state / f"{part}.pid").read_text().split()
        except (FileNotFoundError, ValueError):
            return None
        return int(pid) if start_time(int(pid)) == started else None

    def launch(self, part: str, command: list[str]) -> None:
        self.commands[part] = command
        if self.pid(part) is not None:
            return
        self.tries[part] += 1
        with (self.state / f"{part}.log").open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=self.state,
            )
        (self.state / f"{part}.pid").write_text(f"{process.pid} {start_time(process.pid)}")

    def start(self, programs: Path, nodes: int, real: Path | None) -> None:
        self.prepare(real is not None)
        plane = str(programs / "controlplane")
        etcd = f"http://127.0.0.1:{self.ports['etcd']}"
        self.launch("etcd", [plane, *self.etcd_flags(etcd)])
        self.launch("kube-apiserver", [plane, *self.apiserver_flags(etcd)])
        self.wait_for("/readyz", "kube-apiserver")
        self.write_kubeconfig(self.kubeconfig, "admin")
        self.write_kubectl(programs)
        kcm, scheduler, kwok = (
            str(self.write_kubeconfig(self.state / f"{user.split(':')[-1]}.kubeconfig", user))
            for user in ("system:kube-controller-manager", "system:kube-scheduler", "kwok")
        )
        quick = ["--kube-api-qps=1000", "--kube-api-burst=2000", "--leader-elect=false"]
        local = "--bind-address=127.0.0.1"
        self.launch(
            "kube-controller-manager",
            [
                plane,
                "kube-controller-manager",
                f"--kubeconfig={kcm}",
                local,
                f"--secure-port={self.ports['kcm']}",
                "--use-service-account-credentials=true",
                f"--service-account-private-key-file={self.state / 'accounts.key'}",
                f"--root-ca-file={self.authority}",
                # Pretended nodes send no heartbeat, so nobody may miss it.
                *(["--node-monitor-grace-period=87600h"] if nodes else []),
                *quick,
            ],
        )
        port = f"--secure-port={self.ports['scheduler']}"
        self.launch(
            "kube-scheduler",
            [plane, "kube-scheduler", f"--kubeconfig={scheduler}", local, port, *quick],
        )
        # Ours has a pod-delete of its own.
        theirs = [one for one in (programs / "stages").glob("*.yaml") if one.stem != "pod-delete"]
        stages = [*sorted(theirs), HERE / "stages.yaml"]
        self.launch(
            "kwok",
            [
                str(programs / "kwok"),
                f"--kubeconfig={kwok}",
                "--cidr=10.0.0.1/8",
                "--node-ip=127.0.0.1",
                "--manage-all-nodes=false",
                "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
                "--node-lease-duration-seconds=0",
                "--server-address=",
                "--v=WARN",
                *(f"--config={stage}" for stage in stages),
            ],
        )
        # The default account shows that the controllers work.
        path = "/api/v1/namespaces/default/serviceaccounts/default"
        self.wait_for(path, "kube-controller-manager")
        self.make_nodes(nodes)
        if real is not None:
            self.start_real_node(programs, real)

    def start_volcano(self, programs: Path) -> None:
        if self.pid("volcano-scheduler") is None:
            volcano.install(programs, self.kubeconfig)
            rules = self.state / "volcano.yaml"
            self.launch("volcano-scheduler", volcano.command(programs, self.kubeconfig, rules))

    def start_real_node(self, programs: Path, files: Path) -> None:
        assert self.network is not None
        home = self.state / "node"
        if self.pid("node") is None:
            realnode.write_files(home, self.network, programs, files)
            self.write_kubeconfig(home / "kubelet.kubeconfig", realnode.NODE_USER)
            self.write_kubeconfig(home / "kube-proxy.kubeconfig", realnode.PROXY_USER)
            self.write_kubeconfig(home / "dns.kubeconfig", realnode.DNS_USER)
            realnode.make_cgroups(self.network)
            self.launch("node", realnode.command(home))
            realnode.connect(self.network, self.pid("node") or 0)

        def is_ready(node: Any) -> bool:
            conditions = node["status"].get("conditions", ())
            rows = {one["type"]: one["status"] for one in conditions}
            return rows.get("Ready") == "True" and not node["spec"].get("taints")

        self.wait_for(f"/api/v1/nodes/{realnode.NAME}", "node", is_ready)

    def etcd_flags(self, address: str) -> list[str]:
        peers = f"http://127.0.0.1:{self.ports['peers']}"
        return [
            "etcd",
            "--name=test",
            f"--data-dir={self.state / 'etcd'}",
            f"--listen-client-urls={address}",
            f"--advertise-client-urls={address}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=test={peers}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ]

    def apiserver_flags(self, etcd: str) -> list[str]:
        key = self.state / "accounts.key"
        more = ["--endpoint-reconciler-type=none"]
        if self.network is not None:
            realnode.hold_address(self.network)  # it is lost when the machine starts anew
            shown, its_key = realnode.make_client_certificate(self.state / "node")
            more = [
                f"--kubelet-client-certificate={shown}",
                f"--kubelet-client-key={its_key}",
                "--kubelet-preferred-address-types=InternalIP",
            ]
        return [
            "kube-apiserver",
            *more,
            f"--etcd-servers={etcd}",
            f"--bind-address={self.address}",
            f"--secure-port={self.ports['api']}",
            f"--cert-dir={self.state / 'certificates'}",
            f"--token-auth-file={self.state / 'tokens.csv'}",
            "--authorization-mode=Node,RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
        ]

    def stop(self) -> None:
        self.read_plan()
        node = self.pid("node")
        if node is not None:
            realnode.kill(node)
        if self.network is not None:
            realnode.remove_cgroups(self.network)
            realnode.disconnect(self.network)
        for part in reversed(PARTS):
            pid = self.pid(part)
            if pid is not None:
                end(pid)
        shutil.rmtree(self.state, ignore_errors=True)

    # --- asking it -------------------------------------------------------------------------------

    def ask(self, path: str, body: object = None) -> tuple[int, bytes]:
        context = ssl.create_default_context(cafile=str(self.authority))
        request = urllib.request.Request(
            f"https://{self.address}:{self.ports['api']}{path}",
            None if body is None else json.dumps(body).encode(),
            {
                "Authorization": f"Bearer {self.tokens['admin']}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, context=context, timeout=10) as answer:
                return int(answer.status), answer.read()
        except urllib.error.HTTPError as error:
            return error.code, b""

    def wait_for(self, path: str, part: str, enough: Callable[[Any], bool] | None = None) -> None:
        """Until the object is there, and `enough` of it."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                status, body = self.ask(path)
                if status == 200 and (enough is None or enough(json.loads(body))):
                    return
            except OSError:
                pass
            for needed in ("etcd", part):
                if self.pid(needed) is not None:
                    continue
                # The API server gives up on an etcd that is slow to start; a kubelet would
                # start it again, and so do we.
                if needed in PARTS and self.tries[needed] < TRIES:
                    self.launch(needed, self.commands[needed])
                else:
                    tail = (self.state / f"{needed}.log").read_text(errors="replace")[-2000:]
                    raise SystemExit(f"cluster: {needed} ended:\n{tail}")
            time.sleep(0.1)
        raise SystemExit(f"cluster: {part} did not answer within {START_S:.0f} s")

    def make_nodes(self, count: int) -> None:
        def make(number: int) -> int:
            name = f"node-{number}"
            labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
            body = {
                "metadata": {
                    "name": name,
                    "annotations": {"kwok.x-k8s.io/node": "fake"},
                    "labels": labels | (P100 if number % 2 == 0 else {}),
                },
                "spec": {} if self.network is None else {"taints": [PRETENDED]},
                "status": {"allocatable": NODE_SIZE, "capacity": NODE_SIZE},
            }
            return self.ask("/api/v1/nodes", body)[0]

        with ThreadPoolExecutor(8) as pool:
            refused = [
                status for status in pool.map(make, range(count)) if status not in (201, 409)
            ]
        if refused:
            raise SystemExit(f"cluster: nodes were refused: {refused[:3]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("order", choices=("start", "stop"))
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--real-node", type=Path, metavar="FILES")
    parser.add_argument("--volcano", action="store_true")
    asked = parser.parse_args()
    cluster = Cluster(asked.state.resolve())
    if asked.order == "stop":
        cluster.stop()
    else:
        cluster.start(asked.programs, asked.nodes, asked.real_node)
        if asked.volcano:
            cluster.start_volcano(asked.programs)
        print(cluster.kubeconfig)
    return 0


if __name__ == "__main__":
    sys.exit(main())
