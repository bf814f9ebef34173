"""From a parsed /pfs path to a tree on this disk, and whether the caller may go there.

The one place where paths meet accounts: an account reaches its own home and, to read, the public
directory. Somebody else's home is answered as if it were not there.
"""

from __future__ import annotations

from paddlecloud.core.errors import InvalidInput, NotAllowed
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.server.process import here
from paddlecloud.server.services import accounts
from paddlecloud.wire.pfspath import PUBLIC, PfsPath


def tree_of(account_id: int, account: str, path: PfsPath, *, to_write: bool = False) -> Tree:
    """The tree `path.parts` lie in. Refuses what is not the caller's."""
    if path.datacenter not in here().engines.clusters:
        raise InvalidInput(f"no datacenter {path.datacenter}", field="path")
    if path.area == PUBLIC:
        if to_write:
            raise NotAllowed(
                "public data is read-only",
                field="path",
                hint=f"write below {PfsPath.home(path.datacenter, account)}",
            )
        return accounts.public_tree()
    if path.user != account:
        raise NotAllowed(f"not a valid user: {path.user}", field="path")
    return accounts.home_tree(account_id, account)


def job_folder(cluster: str, account: str, job_name: str) -> PfsPath:
    return PfsPath.home(cluster, account).child("jobs").child(job_name)


def text(path: PfsPath) -> str:
    """How a path is stored: without a slash at the end."""
    return str(path).rstrip("/")
