"""What is said on the socket where files are handed over on one machine.

The client sends its ticket as one message, with the open file attached; the answer is `TAKEN`, or
the end. The file is the service's to read until the client closes the socket. Both ends talk only
to a process of their own user: anybody can see the socket's name, and listen at it where the
service does not; and a file of another user may lie where looking at it never ends.
"""

from __future__ import annotations

import struct

TICKET_BYTES = 32
TAKEN = b"taken"
MOST_BYTES = 64 << 20  # taken by one call: so often progress is shown, and an end is noticed
_NAME = "paddlecloud-pfs-"
_CREDENTIALS = struct.Struct("3i")  # Linux' struct ucred: process, user, group
CREDENTIALS_BYTES = _CREDENTIALS.size


def socket_name(unique: str) -> str:
    return _NAME + unique


def is_socket_name(name: str) -> bool:
    """A server must not be able to make a client talk to whatever else listens on its machine."""
    return name.startswith(_NAME)


def user_of(credentials: bytes) -> int:
    """The user at the other end, by what `SO_PEERCRED` says."""
    return int(_CREDENTIALS.unpack(credentials)[1])
