"""`python -m paddlecloud.controller run|manifests`: what the two verbs of the command line become.

`run` is the operator until TERM or INT, which ends it gracefully: what is in hand is finished and
the lease let go. One that loses its lease stays and waits until it leads again.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from paddlecloud.controller.families import ABOUT
from paddlecloud.core.errors import InvalidInput, PaddleCloudError

DEFAULT_IMAGE = "paddlecloud/paddlecloud:latest"
DEFAULT_NAMESPACE = "paddlecloud"


class _JsonLines(logging.Formatter):
    """One JSON object per line, for whatever collects the logs of a cluster."""

    def format(self, record: logging.LogRecord) -> str:
        row = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "from": record.name.removeprefix("paddlecloud."),
            "message": record.getMessage(),
            **getattr(record, ABOUT, {}),  # kind, namespace and name of the job
        }
        if record.exc_info:
            row["trace"] = self.formatException(record.exc_info)
        return json.dumps(row, ensure_ascii=False)


def _log_in_json() -> None:
    """From here on every line of the standard error is an object, whatever goes wrong."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    logging.captureWarnings(True)
    log = logging.getLogger("paddlecloud.controller")

    def uncaught(args: threading.ExceptHookArgs) -> None:
        name = args.thread.name if args.thread is not None else "?"
        log.error("the thread %s ended by a fault", name, exc_info=args.exc_value)

    threading.excepthook = uncaught


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="paddlecloud")
    orders = parser.add_subparsers(dest="order", required=True)
    run = orders.add_parser("run")
    run.add_argument("--kubeconfig", default="")
    run.add_argument("--context", default="")
    run.add_argument("--namespace", default="")
    run.add_argument("--metrics-host", default="")
    run.add_argument("--metrics-port", type=int, default=-1)
    run.add_argument("--lease-namespace", default="")
    run.add_argument("--no-lease", action="store_true")
    run.add_argument("--no-planner", action="store_true")
    run.add_argument("--workers", type=int, default=8)
    run.add_argument("--datacenter", default="kubernetes")
    run.add_argument("--etcd-server", default="")
    run.add_argument("--log-wait", type=int, default=60)
    manifests = orders.add_parser("manifests")
    manifests.add_argument("--crds", action="store_true")
    manifests.add_argument("--namespace", default=DEFAULT_NAMESPACE)
    manifests.add_argument("--image", default=DEFAULT_IMAGE)
    manifests.add_argument("--job-image", default="")
    manifests.add_argument("--pfs-volume", default="")
    manifests.add_argument("--no-operator", action="store_true")
    manifests.add_argument("--no-server", action="store_true")
    return parser


def _run(asked: argparse.Namespace) -> int:
    from paddlecloud.controller.listening import Listener
    from paddlecloud.controller.operator import COMPONENT, Operator, Settings
    from paddlecloud.controller.peers import Site
    from paddlecloud.kube import kubeconfig, leases
    from paddlecloud.kube.client import Client

    # Objects as decoded are trees. Looking for cycles among a million of their parts is in vain,
    # and nothing else happens meanwhile.
    gc.set_threshold(50_000, 50, 100)
    _log_in_json()
    access = (
        kubeconfig.from_file(Path(asked.kubeconfig), asked.context)
        if asked.kubeconfig
        else kubeconfig.from_pod()
    )
    lease = None
    if not asked.no_lease:
        identity = f"{socket.gethostname()}-{secrets.token_hex(4)}"
        lease_namespace = asked.lease_namespace or asked.namespace or access.namespace
        impatient = Client(access, COMPONENT, patience_s=leases.PATIENCE_S)
        lease = leases.Lease(impatient, lease_namespace, COMPONENT, identity)
    client = Client(access, COMPONENT, fence=lease.holds if lease is not None else None)
    site = Site(asked.datacenter, _etcd_server(asked.etcd_server), is_ipv6=":" in access.host)
    settings = Settings(
        asked.namespace,
        asked.workers,
        site=site,
        plans=not asked.no_planner,
        log_wait_s=float(asked.log_wait),
    )
    operator = Operator(client, settings, lease)

    def stop(number: int, frame: object) -> None:
        operator.stop()
        if lease is not None:
            lease.give_up()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    listener = None
    if asked.metrics_port >= 0:
        # In a pod the kubelet asks from outside; elsewhere only this machine needs to.
        host = asked.metrics_host or ("127.0.0.1" if asked.kubeconfig else "")
        listener = Listener(host, asked.metrics_port, operator.is_ready, operator.figures)
        listener.start()
        logging.info("listening on %s:%d", host or "*", listener.port)
    operator.run()
    if listener is not None:
        listener.stop()
    return 0


def _etcd_server(text: str) -> str:
    """Paddle's launcher takes one address, and neither a scheme nor a list."""
    if text and not re.fullmatch(r"[^\s:/,]+:[0-9]{1,5}", text):
        raise InvalidInput("must be HOST:PORT, without a scheme, and one", field="--etcd-server")
    return text


def _print_manifests(asked: argparse.Namespace) -> int:
    from paddlecloud.controller import manifests
    from paddlecloud.controller.platform_manifests import Site

    site = Site(asked.namespace, asked.image, asked.job_image, _volume(asked.pfs_volume))
    objects = (
        manifests.definitions()
        if asked.crds
        else manifests.whole_platform(
            site, with_operator=not asked.no_operator, with_server=not asked.no_server
        )
    )
    sys.stdout.write(manifests.as_yaml(objects))
    return 0


def _volume(text: str) -> dict[str, object] | None:
    """One volume as a pod names it, without its name."""
    if not text:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or len(found) != 1 or "name" in found:
        raise InvalidInput(
            'must be one volume as a pod names it, e.g. {"nfs": {"server": "s", "path": "/pfs"}}',
            field="--pfs-volume",
        )
    return found


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(argv)
    try:
        if asked.order == "run":
            return _run(asked)
        return _print_manifests(asked)
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except PaddleCloudError as error:
        where = f"{error.field}: " if error.field else ""
        where = "" if error.message.startswith(where) else where
        print(f"error: {where}{error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint:  {error.hint}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
