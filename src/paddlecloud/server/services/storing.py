"""What the file server must know of a caller: who it is and what it may store.

`whoami` answers it to a file server that was shown a token; the relay sends the same along with a
request it has already authenticated.
"""

from __future__ import annotations

from paddlecloud.server.authentication import Principal
from paddlecloud.server.process import here
from paddlecloud.server.services import accounts, quotas
from paddlecloud.wire.shapes import WhoamiShape


def facts_of(caller: Principal) -> WhoamiShape:
    limits = quotas.storage_of(caller.account_id)
    return {
        "name": caller.name,
        "id": caller.account_id,
        "admin": caller.is_admin,
        "uid": accounts.uid_of(caller.account_id),
        "clusters": sorted(here().engines.clusters),
        "storage": {"bytes": limits.size_bytes, "files": limits.files},
        "job_id": caller.job_id,
    }
