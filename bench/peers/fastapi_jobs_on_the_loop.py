"""The same peer with its queries on the event loop instead of in FastAPI's pool of threads.

Not what FastAPI's documents advise (a slow query holds up everyone), but faster on a fast
database, so bench/list_bench.py measures it too and takes the better of both as the peer.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

import fastapi_jobs as threaded
from fastapi import Depends, FastAPI, Header, Query
from sqlalchemy.orm import Session


async def session() -> AsyncIterator[Session]:
    with threaded.make_session() as opened:
        yield opened


async def caller(
    opened: Annotated[Session, Depends(session)], authorization: Annotated[str, Header()] = ""
) -> threaded.Account:
    return threaded.caller(opened, authorization)


app = FastAPI()


@app.get("/api/v1/jobs", response_model=threaded.JobsOut)
async def list_jobs(
    opened: Annotated[Session, Depends(session)],
    account: Annotated[threaded.Account, Depends(caller)],
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict:
    return threaded.list_jobs(opened, account, limit)
