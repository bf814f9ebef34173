"""How many replicas a role may have: every list of peers is one variable of the environment.

Engines know how long an endpoint of theirs can be; `most` and `too_many` know the rest.
"""

from __future__ import annotations

from paddlecloud.core.errors import Fault
from paddlecloud.core.jobspec import JobSpec, Role

# Linux starts no program with one longer `NAME=value` (MAX_ARG_STRLEN), and the peers of a role
# are one such list.
_LONGEST_VARIABLE_BYTES = 128 * 1024
_LONGEST_NAME = "PADDLE_PSERVERS_IP_PORT_LIST="
_FIELDS = {Role.TRAINER: "parallelism", Role.PSERVER: "pservers", Role.HETER: "heters"}


def most(longest_endpoint: str) -> int:
    """How many fit into a list; the longest endpoint ends with the comma behind it."""
    return (_LONGEST_VARIABLE_BYTES - len(_LONGEST_NAME)) // len(longest_endpoint)


def too_many(spec: JobSpec, most_peers: int, *, where: str = "") -> list[Fault]:
    """Roles whose list of endpoints no program could be started with, at their largest size."""
    found = []
    for role in spec.roles:
        if role.max_replicas > most_peers:
            is_elastic = role.max_replicas > role.replicas
            field = "max_instance" if is_elastic else _FIELDS.get(role.role, role.role.value)
            problem = (
                f"at most {most_peers}{where}: the list of their addresses is given in one "
                "variable, which holds 128 KiB"
            )
            found.append(Fault(field, problem, str(role.max_replicas)))
    return found
