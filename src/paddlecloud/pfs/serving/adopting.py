"""Being a child of the cloud server: on a socket it made, and never longer than it lives."""

from __future__ import annotations

import ctypes
import os
import signal
import socket

from paddlecloud.core.errors import InvalidInput

_PR_SET_PDEATHSIG = 1


def inherited(fd: int) -> socket.socket:
    """The listening socket the parent left open for us; its port outlives this process."""
    try:
        sock = socket.socket(fileno=fd)
    except OSError as error:
        raise InvalidInput(f"{fd} is no socket: {error.strerror}", field="--listen-fd") from None
    sock.set_inheritable(False)
    return sock


def end_with(parent_pid: int) -> None:
    """Have the kernel send SIGTERM when the parent is gone; it may be gone already."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGTERM)
