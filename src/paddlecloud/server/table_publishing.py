"""Publishing, row by row: our own interface, the first server's, and the links."""

from __future__ import annotations

from dataclasses import replace

from paddlecloud.server.routers import publishing
from paddlecloud.server.routing import Access, Change, Param, Route, Work
from paddlecloud.wire import published, routes, shapes_v1

_OURS = [
    Route(
        "POST",
        routes.PUBLICATIONS,
        publishing.publish,
        "A link to a file of the caller's, for anybody who has it",
        body=published.PublicationBody,
        answers={201: published.PublicationShape},
        change=Change.ATOMIC,
        secret_answer=True,
    ),
    Route(
        "GET",
        routes.PUBLICATIONS,
        publishing.listed,
        "The caller's links, newest first",
        answers={200: published.PublicationListShape},
    ),
    Route(
        "DELETE",
        routes.PUBLICATION,
        publishing.revoke,
        "End a link",
        answers={204: None},
        change=Change.ATOMIC,
    ),
]
_FIRST = [
    Route(
        "POST",
        routes.V1_PUBLISH,
        publishing.publish_v1,
        "A link to a file of the caller's that lives a week",
        body=published.PublishBodyV1,
        answers={200: published.PublishedV1},
        change=Change.ATOMIC,
        dialect="v1",
        secret_answer=True,
    ),
    Route(
        "GET",
        routes.V1_PUBLISH,
        publishing.listed_v1,
        "The caller's links",
        answers={200: published.PublishedListV1},
        dialect="v1",
    ),
    Route(
        "DELETE",
        routes.V1_PUBLISH,
        publishing.revoke_v1,
        "End every link to a file",
        body=published.PublishBodyV1,
        answers={200: shapes_v1.DoneV1},
        change=Change.ATOMIC,
        dialect="v1",
    ),
]
_LINK = Route(
    "GET",
    routes.FILEPUB,
    publishing.fetch,
    "A published file; ranges and ETag as with /api/v2/pfs/content. Needs no login",
    params=(Param("uuid", str, "the link's secret", ""),),
    answers={200: "application/octet-stream"},
    access=Access.OPEN,
    work=Work.ERRAND,
)

ROUTES = [
    *_OURS,
    *_FIRST,
    *(replace(route, path=route.path + "/") for route in _FIRST),
    _LINK,
    replace(_LINK, path=routes.FILEPUB.rstrip("/")),
]
