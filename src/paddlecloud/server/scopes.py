"""What an access key may do, by its scope and the row of the route table.

`read` looks at things, `submit` also runs jobs and stores files, `all` is the account itself. The
front asks `check` for every request signed with a key that is not `all`. It never says whether the
account may: that is for the route and its service.
"""

from __future__ import annotations

from paddlecloud.core.errors import NotAllowed
from paddlecloud.server.routing import Access, Route
from paddlecloud.wire import routes

READ, SUBMIT, ALL = "read", "submit", "all"
_LOOKING = ("GET", "HEAD")
# Questions that are too long for a query.
_ASKING = (routes.PFS_COMPARE, routes.PFS_FETCH)
_WORKING = (
    routes.JOBS,
    routes.ALGORITHMS,
    routes.PFS,
    routes.V1_JOBS,
    routes.V1_TRAINING_JOBS,
    routes.V1_FILE,
    routes.V1_PFS,
    routes.JOB_SERVICE.rstrip("/"),
)


def check(scope: str, route: Route) -> None:
    if route.access is not Access.ADMIN and _is_within(scope, route):
        return
    needed = SUBMIT if scope == READ and _is_within(SUBMIT, route) else ALL
    raise NotAllowed(
        f"the access key has the scope {scope}; this needs {needed}",
        hint=f"paddlecloud account key --scope {needed}",
    )


def _is_within(scope: str, route: Route) -> bool:
    if route.method in _LOOKING or route.path in _ASKING or not route.path:
        return True
    return scope == SUBMIT and any(
        route.path == top or route.path.startswith(f"{top}/") for top in _WORKING
    )
