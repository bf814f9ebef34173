"""An operator that is killed at one of its writes: `dying_operator.py CONFIG NAMESPACE N WHEN`.

At the Nth write it dies, `before` the write is sent or `after` the server has done it, without a
word of good-bye. Ends with code 7 when it died, and with 0 by itself when N writes never came
and standard input is closed. What it writes to renew its lease is not counted.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

from paddlecloud.controller.operator import Operator, Settings
from paddlecloud.kube import kubeconfig
from paddlecloud.kube.client import Client
from paddlecloud.kube.leases import Lease

DIED = 7


class DyingClient(Client):
    def __init__(self, access: kubeconfig.Access, number: int, when: str) -> None:
        super().__init__(access)
        self._left = number
        self._when = when
        self._lock = threading.Lock()

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
        if method == "GET":
            return super().call(method, path, body, **more)
        with self._lock:  # one write after the other, so that the Nth is one write
            self._left -= 1
            if self._left == 0 and self._when == "before":
                os._exit(DIED)
            try:
                return super().call(method, path, body, **more)
            finally:  # a refused write was one too
                if self._left == 0:
                    os._exit(DIED)


def leading_operator(client: Client, of_the_lease: Client, namespace: str, name: str) -> Operator:
    """An operator that leads by a lease, as `paddlecloud controller` does."""
    lease = Lease(of_the_lease, namespace, "paddlecloud", name)
    return Operator(client, Settings(namespace=namespace, workers=4), lease)


def main(config: str, namespace: str, number: str, when: str) -> None:
    access = kubeconfig.from_file(Path(config))
    client = DyingClient(access, int(number), when)
    operator = leading_operator(client, Client(access), namespace, "the dying one")
    threading.Thread(target=lambda: (sys.stdin.read(), operator.stop()), daemon=True).start()
    operator.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
