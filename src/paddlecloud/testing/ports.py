"""Ports for servers that tests start: free, and nobody else's until the process ends.

Asking the kernel for any port and closing it again hands out one that the next connection may take,
and that a neighbour may be told as well. These lie below the ports of connections, and each is
marked as taken for all processes of this machine by a socket in the abstract namespace, which is
gone with its process.
"""

from __future__ import annotations

import random
import socket
import sys
from collections.abc import Iterable

BELOW_CONNECTIONS = range(20_000, 32_000)

_marks: list[socket.socket] = []


def free_port(among: Iterable[int] = BELOW_CONNECTIONS, host: str = "127.0.0.1") -> int:
    """One that nobody listens on, chosen at random."""
    candidates = list(among)
    random.SystemRandom().shuffle(candidates)
    for port in candidates:
        if _is_free(host, port) and _mark(port):
            return port
    raise OSError(f"no port from {min(candidates)} to {max(candidates)} is free")


def _is_free(host: str, port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
        return True


def _mark(port: int) -> bool:
    if sys.platform != "linux":
        return True
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0paddlecloud-port-{port}")
    except OSError:  # another test has it, though it may not listen yet
        mark.close()
        return False
    _marks.append(mark)
    return True
