"""The calls about groups, which are a part of `Client`.

They promise what `client` promises. Only `platform_calls` builds on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud.wire import routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from paddlecloud.wire.group_shapes import GroupInfoShape, GroupShape


class GroupCalls:
    if TYPE_CHECKING:

        def _call(self, method: str, path: str) -> Any: ...
        def _items(self, path: str) -> list[Any]: ...
        def _change(self, method: str, path: str, body: object, *, key: str = "") -> Any: ...

    def groups(self) -> list[GroupShape]:
        """Those you are in; for an administrator all of them."""
        return self._items(routes.GROUPS)

    def group(self, name: str) -> GroupInfoShape:
        return self._call("GET", routes.fill(routes.GROUP, name=name))

    def create_group(self, name: str, *, owner: str = "", **quota: Any) -> GroupInfoShape:
        """`quota` as for `set_group_quota`."""
        form = {"name": name, **quota} | ({"owner": owner} if owner else {})
        return self._change("POST", routes.GROUPS, form)

    def delete_group(self, name: str) -> None:
        self._change("DELETE", routes.fill(routes.GROUP, name=name), None)

    def set_group_quota(
        self,
        name: str,
        *,
        guarantee: Mapping[str, Any] | None = None,
        limit: Mapping[str, Any] | None = None,
        weight: int | None = None,
        clusters: Sequence[str] | None = None,
    ) -> GroupInfoShape:
        """`guarantee={"gpu": 4}`; what is left out stays as it is, None in it removes it."""
        form: dict[str, Any] = {}
        for key, value in (("guarantee", guarantee), ("limit", limit)):
            if value is not None:
                form[key] = dict(value)
        if weight is not None:
            form["weight"] = weight
        if clusters is not None:
            form["clusters"] = list(clusters)
        return self._change("PUT", routes.fill(routes.GROUP_QUOTA, name=name), form)

    def add_to_group(self, name: str, account: str, role: str = "member") -> GroupInfoShape:
        """Or give them another role: owner, member or viewer."""
        path = routes.fill(routes.GROUP_MEMBERS, name=name)
        return self._change("PUT", path, {"account": account, "role": role})

    def remove_from_group(self, name: str, account: str) -> None:
        """Their jobs go on."""
        self._change(
            "POST", routes.fill(routes.GROUP_REMOVE_MEMBER, name=name), {"account": account}
        )
