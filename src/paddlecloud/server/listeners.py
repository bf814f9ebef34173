"""Listening sockets: made once, kept by the supervisor, given back at the next start.

Jobs share the machine's network and outlive this process. Were its address free for a moment, one
of them could take it and be sent everybody's token; so each socket listens as soon as it is bound
(until then a second one may be bound beside it), and a copy goes up to the supervisor, which hands
it down to our successor. Without a supervisor sockets are ours alone. The protocol is described in
`cli/supervisor.py`.
"""

from __future__ import annotations

import errno
import functools
import os
import socket
import time

VARIABLE = "PADDLECLOUD_LISTENERS"
_KEEPER = "keeper"
_BACKLOG = 1024
_LOOK_EVERY_S = 0.02


@functools.cache
def _handed_down() -> dict[str, socket.socket]:
    """What the supervisor gave us, and no child of ours: jobs must not inherit it."""
    found = {}
    for word in os.environ.pop(VARIABLE, "").split():
        name, _, number = word.partition("=")
        found[name] = socket.socket(fileno=int(number))
        found[name].set_inheritable(False)
    return found


def listen(name: str, host: str, port: int, *, patience_s: float = 0.0) -> socket.socket:
    """The socket of that name, listening; raises OSError when the address is another's.

    One from an earlier life is used as it is: the address changes with the next `up`, not with a
    restart. `patience_s` is how long an address in use is tried again.
    """
    kept = _handed_down().pop(name, None)
    if kept is not None:
        return kept
    sock = _bound(host, port, patience_s)
    keeper = _handed_down().get(_KEEPER)
    if keeper is not None:
        socket.send_fds(keeper, [name.encode()], [sock.fileno()])
    return sock


def _bound(host: str, port: int, patience_s: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    until_s = time.monotonic() + patience_s
    while True:
        # Named, not 0: asyncio sets TCP_NODELAY only on sockets that say they are TCP, and without
        # it every answer of two writes waits 40 ms for the client's delayed acknowledgement.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((host, port))
            sock.listen(_BACKLOG)
        except OSError as error:
            sock.close()
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until_s:
                raise
            time.sleep(_LOOK_EVERY_S)
        else:
            return sock
