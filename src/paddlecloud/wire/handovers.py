"""What is said on the socket where files are handed over on one machine.

The client sends its ticket as one message, with the open file attached; the answer is `TAKEN`, or
the end. The file is the service's to read until the client closes the socket.
"""

from __future__ import annotations

TICKET_BYTES = 32
TAKEN = b"taken"
_NAME = "paddlecloud-pfs-"


def socket_name(secret: str) -> str:
    return _NAME + secret


def is_socket_name(name: str) -> bool:
    """A server must not be able to make a client talk to whatever else listens on its machine."""
    return name.startswith(_NAME)
