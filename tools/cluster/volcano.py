"""Volcano's scheduler beside the test cluster's own: for pods that name it.

Its definitions, its default queue and the scheduler; nothing else of Volcano, and none of its
webhooks. What its controllers would do is done here once: a queue takes jobs only when somebody has
opened it. Standard library only; run.py calls it.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: default}
spec: {weight: 1, reclaimable: true}
"""
# The order of Volcano's own installation.
RULES = """\
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
"""


def install(programs: Path, kubeconfig: Path) -> None:
    def kubectl(*words: str, text: str = "") -> None:
        command = [str(programs / "controlplane"), "kubectl", f"--kubeconfig={kubeconfig}"]
        done = subprocess.run([*command, *words], input=text, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"cluster: Volcano: {done.stderr}")

    folder = str(programs / "volcano")
    kubectl("apply", "--server-side", "-f", folder)
    kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", folder)
    kubectl("apply", "-f", "-", text=QUEUE)
    opened = ("--subresource=status", "--type=merge", "-p", '{"status":{"state":"Open"}}')
    kubectl("patch", "queues.scheduling.volcano.sh", "default", *opened)


def command(programs: Path, kubeconfig: Path, rules: Path) -> list[str]:
    rules.write_text(RULES)
    return [
        str(programs / "volcano-scheduler"),
        f"--kubeconfig={kubeconfig}",
        f"--scheduler-conf={rules}",
        "--leader-elect=false",
        "--enable-metrics=false",
        "--enable-healthz=false",
        "--cache-dumper=false",
        "--schedule-period=1s",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--logtostderr=true",
    ]
