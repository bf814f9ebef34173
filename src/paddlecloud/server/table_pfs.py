"""The file server's calls as rows of ours: relayed, and described in the same OpenAPI file.

The file server reads the query and the body itself; the front only says who calls.
"""

from __future__ import annotations

from paddlecloud.pfs.serving import table
from paddlecloud.server.exchange import Request, encode
from paddlecloud.server.relaying import Errand
from paddlecloud.server.routing import Param, Route, Work
from paddlecloud.server.services import storing


def _pass_on(request: Request) -> Errand:
    return Errand(encode(storing.facts_of(request.caller)))


def _route(row: table.Row) -> Route:
    return Route(
        row.method,
        row.path,
        _pass_on,
        row.summary,
        params=tuple(
            Param(param.name, param.kind, param.about, param.default, param.low, param.high)
            for param in row.params
        ),
        body=row.body,
        body_type=row.body_type,
        answers=row.answers,
        work=Work.RELAY,
        dialect="v2" if row.dialect == "v2" else "v1",
    )


ROUTES = [_route(row) for row in table.ROWS]
