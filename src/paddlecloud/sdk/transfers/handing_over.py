"""Giving the file service on this machine an open file, instead of its bytes.

It promises: `hand_over` either gives the file as it was found, to a process of the same user, or
nothing; then the bytes are sent.
The service may read the file until `close`. Called by `large_uploads`.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping

from paddlecloud.sdk.transfers.local_files import opened_as_found
from paddlecloud.sdk.transfers.walking import Found
from paddlecloud.wire import handovers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ANSWER_WITHIN_S = 5.0


def hand_over(offer: Mapping[str, Any] | None, file: Found) -> socket.socket | None:
    """The connection that keeps it handed over; None where that cannot be."""
    if not offer or sys.platform != "linux" or not hasattr(socket, "AF_UNIX"):
        return None
    name = str(offer["socket"])
    if not handovers.is_socket_name(name):
        return None
    with opened_as_found(file) as (source, _):
        try:
            return _give(source.fileno(), name, str(offer["ticket"]))
        except OSError:  # another machine, or another world on this one
            return None


def _give(descriptor: int, name: str, ticket: str) -> socket.socket | None:
    link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    is_taken = False
    try:
        link.settimeout(_ANSWER_WITHIN_S)
        link.connect("\0" + name)
        credentials = link.getsockopt(
            socket.SOL_SOCKET, socket.SO_PEERCRED, handovers.CREDENTIALS_BYTES
        )
        if handovers.user_of(credentials) == os.geteuid():
            socket.send_fds(link, [ticket.encode()], [descriptor])
            is_taken = link.recv(len(handovers.TAKEN)) == handovers.TAKEN
    finally:
        if not is_taken:
            link.close()
    return link if is_taken else None
