"""What an earlier job of the same name left behind, for its successor to clear away.

The garbage collector of the cluster does the same, but may take half a minute to learn of new kinds
of owners, and the successor needs the names. Two jobs never have one name at once, so an owner of
our name and another uid is gone, or younger than the copy we look at: only what is older than the
job is touched. Pure; `planning` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.controller.identity import Identity, Json
from paddlecloud.controller.plans import CONFIG_MAPS, PODS, SERVICES, Children, Delete
from paddlecloud.controller.podgroups import POD_GROUPS
from paddlecloud.controller.remembering import seconds


def left_behind(who: Identity, created: str | None, everybody: Children) -> list[Delete]:
    born_at = seconds(created)
    if born_at is None:
        return []
    return [
        Delete(plural, child["metadata"]["name"], child["metadata"]["uid"])
        for plural, child in _all(everybody)
        if _is_of_a_predecessor(who, born_at, child["metadata"])
    ]


def _all(everybody: Children) -> Iterable[tuple[str, Json]]:
    yield from ((PODS, pod) for pod in everybody.pods)
    yield from ((SERVICES, service) for service in everybody.services)
    single = (
        (CONFIG_MAPS, everybody.config_map),
        (CONFIG_MAPS, everybody.gate),
        (CONFIG_MAPS, everybody.runtime),
        (POD_GROUPS, everybody.pod_group),
    )
    yield from ((plural, child) for plural, child in single if child is not None)


def _is_of_a_predecessor(who: Identity, born_at: float, metadata: Json) -> bool:
    made_at = seconds(metadata.get("creationTimestamp"))
    if metadata.get("deletionTimestamp") or made_at is None or made_at >= born_at:
        return False
    owners = [one for one in metadata.get("ownerReferences") or () if one.get("controller")]
    return any(
        owner.get("kind") == who.kind.name
        and owner.get("apiVersion") == who.kind.api_version
        and owner.get("name") == who.name
        and owner.get("uid") != who.uid
        for owner in owners
    )
