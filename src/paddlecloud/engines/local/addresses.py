"""Which loopback address and ports a replica has.

Each replica has an address of its own because Paddle counts distinct hosts as nodes, and ports of
its own because some programs listen on all addresses.
"""

from __future__ import annotations

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec
from paddlecloud.engines import peer_lists

PORTS_PER_REPLICA = 20
_FIRST_PORT = 20_000  # below the ephemeral range, above what services use
_PORT_BLOCKS = 600  # up to 32000; the ephemeral range begins at 32768


def address(number: int) -> str:
    return f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def number_of(address: str) -> int:
    """The number that `address` was made from."""
    _, high, middle, low = map(int, address.split("."))
    return high << 16 | middle << 8 | low


def first_port(number: int) -> int:
    return _FIRST_PORT + PORTS_PER_REPLICA * (number % _PORT_BLOCKS)


# --- how many there may be -------------------------------------------------------------------

_LONGEST_ENDPOINT = "127.15.255.255:31999,"
MOST_PEERS = peer_lists.most(_LONGEST_ENDPOINT)


def too_many(spec: JobSpec) -> list[Fault]:
    return peer_lists.too_many(spec, MOST_PEERS, where=" on one machine")
