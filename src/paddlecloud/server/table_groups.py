"""The rows of our own interface about groups."""

from __future__ import annotations

from paddlecloud.server.routers import groups_v2
from paddlecloud.server.routing import Access, Change, Route
from paddlecloud.wire import group_shapes as shapes
from paddlecloud.wire import routes

ROUTES = [
    Route(
        "GET",
        routes.GROUPS,
        groups_v2.list_groups,
        "The groups the caller is in; for administrators all of them",
        answers={200: shapes.GroupListShape},
    ),
    Route(
        "POST",
        routes.GROUPS,
        groups_v2.create,
        "Make a group (administrators)",
        body=shapes.GroupBody,
        answers={201: shapes.GroupInfoShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
        shown=groups_v2.shown,
    ),
    Route(
        "GET",
        routes.GROUP,
        groups_v2.get_group,
        "One group with its members, what it holds and what is idle for it",
        answers={200: shapes.GroupInfoShape},
    ),
    Route(
        "DELETE",
        routes.GROUP,
        groups_v2.delete,
        "Remove a group without live jobs (administrators)",
        answers={204: None},
        access=Access.ADMIN,
        change=Change.ATOMIC,
    ),
    Route(
        "PUT",
        routes.GROUP_QUOTA,
        groups_v2.set_quota,
        "Set guarantee, limit, weight and clusters of a group; what is left out stays as it is"
        " (administrators)",
        body=shapes.GroupQuotaBody,
        answers={200: shapes.GroupInfoShape},
        access=Access.ADMIN,
        change=Change.ATOMIC,
        shown=groups_v2.shown,
    ),
    Route(
        "PUT",
        routes.GROUP_MEMBERS,
        groups_v2.put_member,
        "Add somebody to a group or change their role (its owners and administrators)",
        body=shapes.MemberBody,
        answers={200: shapes.GroupInfoShape},
        change=Change.ATOMIC,
        shown=groups_v2.shown,
    ),
    Route(
        "POST",
        routes.GROUP_REMOVE_MEMBER,
        groups_v2.remove_member,
        "Take somebody out of a group (its owners and administrators); their jobs go on",
        body=shapes.LeavingBody,
        answers={204: None},
        change=Change.ATOMIC,
    ),
]
