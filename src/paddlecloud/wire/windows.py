"""How much of a file may be on the way between two ends that are near each other.

What piles up in the kernel while the other side hashes and writes falls out of the processor's
cache, and is lost and sent again when that side is killed. Who is far away needs a large window.
Both ends ask here and set their own sockets; only Linux tells how far the other one is.

On one machine there is nothing to be careful about either: a congestion control that spaces packets
out by a timer (BBR, the default in many places) costs a twentieth of a transfer's CPU for nothing.
"""

from __future__ import annotations

WINDOW_BYTES = 1 << 20  # enough for 1 GB/s at the longest round trip that is near
_RTT_AT = 68  # in Linux' struct tcp_info: the round trip in microseconds, 32 bits
TCP_INFO_BYTES = _RTT_AT + 4
NEAR_US = 1000
UNPACED = b"reno"  # on every Linux, and allowed to everybody unless an administrator forbids it


def is_here(own_address: str, other_address: str) -> bool:
    """Whether two ends with these addresses share a machine, and its processors."""
    return own_address == other_address


def is_near(tcp_info: bytes) -> bool:
    """By the first bytes of a connection's `TCP_INFO`; a round trip nobody measured is none."""
    return 0 < memoryview(tcp_info)[_RTT_AT:TCP_INFO_BYTES].cast("I")[0] < NEAR_US
