"""An operator that is killed at one of its writes: `dying_operator.py CONFIG NAMESPACE N WHEN`.

At the Nth write it dies, `before` the write is sent or `after` the server has done it, without a
word of good-bye. Ends with code 7 when it died, and with 0 by itself when N writes never came
and standard input is closed.
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


def main(config: str, namespace: str, number: str, when: str) -> None:
    client = DyingClient(kubeconfig.from_file(Path(config)), int(number), when)
    operator = Operator(client, Settings(namespace=namespace))
    threading.Thread(target=lambda: (sys.stdin.read(), operator.stop()), daemon=True).start()
    operator.run()


if __name__ == "__main__":
    main(*sys.argv[1:])
