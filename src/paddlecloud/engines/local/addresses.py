"""Which loopback address and ports a replica has.

Each replica has an address of its own because Paddle counts distinct hosts as nodes, and ports of
its own because some programs listen on all addresses.
"""

from __future__ import annotations

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec, Role

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

# Linux starts no program with one longer `NAME=value` (MAX_ARG_STRLEN), and the peers of a role
# are one such list.
_LONGEST_VARIABLE_BYTES = 128 * 1024
_LONGEST_NAME = "PADDLE_PSERVERS_IP_PORT_LIST="
_LONGEST_ENDPOINT = "127.15.255.255:31999,"
MOST_PEERS = (_LONGEST_VARIABLE_BYTES - len(_LONGEST_NAME)) // len(_LONGEST_ENDPOINT)

_FIELDS = {Role.TRAINER: "parallelism", Role.PSERVER: "pservers", Role.HETER: "heters"}


def too_many(spec: JobSpec) -> list[Fault]:
    """Roles whose list of endpoints no program could be started with, at their largest size."""
    found = []
    for role in spec.roles:
        if role.max_replicas > MOST_PEERS:
            is_elastic = role.max_replicas > role.replicas
            field = "max_instance" if is_elastic else _FIELDS.get(role.role, role.role.value)
            problem = (
                f"at most {MOST_PEERS} on one machine: the list of their addresses is given in one "
                "variable, which holds 128 KiB"
            )
            found.append(Fault(field, problem, str(role.max_replicas)))
    return found
