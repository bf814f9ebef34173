"""The peer of bench/list_bench.py: the job list as FastAPI + SQLAlchemy would answer it.

Written as the documents of both teach it: a session per request as a dependency, the caller found
by a token in the database, an ORM query, pydantic models for the answer, one uvicorn worker with
uvloop and httptools. It runs in an environment of its own (bench/_peer.py makes it) and never
imports PaddleCloud. `uvicorn fastapi_jobs:app`, with PEER_DATABASE naming its SQLite file.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import Annotated

from fastapi import Depends, FastAPI, Header, HTTPException, Query
from pydantic import BaseModel, ConfigDict
from sqlalchemy import ForeignKey, Index, create_engine, event, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

# As many connections as threads: a request never waits for one.
engine = create_engine(
    "sqlite:///" + os.environ["PEER_DATABASE"],
    connect_args={"check_same_thread": False},
    pool_size=40,
)
make_session = sessionmaker(engine)


@event.listens_for(engine, "connect")
def _set_up(connection, _record) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


class Base(DeclarativeBase):
    pass


class Account(Base):
    __tablename__ = "account"
    id: Mapped[int] = mapped_column(primary_key=True)
    username: Mapped[str] = mapped_column(unique=True)
    is_active: Mapped[bool]


class ApiToken(Base):
    __tablename__ = "token"
    digest: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))


class Job(Base):
    """What the list answers, what it is filtered and ordered by, and nothing else to load."""

    __tablename__ = "job"
    id: Mapped[str] = mapped_column(primary_key=True)
    account_id: Mapped[int] = mapped_column(ForeignKey("account.id"))
    live: Mapped[bool]
    submitted_at: Mapped[float]
    name: Mapped[str]
    job_package: Mapped[str]
    parallelism: Mapped[int]
    cpu: Mapped[int]
    gpu: Mapped[int]
    memory: Mapped[str]
    pservers: Mapped[int]
    pscpu: Mapped[int]
    psmemory: Mapped[str]
    topology: Mapped[str]
    entry: Mapped[str]


Index("job_list", Job.account_id, Job.submitted_at.desc(), Job.id.desc())


class JobOut(BaseModel):
    model_config = ConfigDict(from_attributes=True)
    name: str
    job_package: str
    parallelism: int
    cpu: int
    gpu: int
    memory: str
    pservers: int
    pscpu: int
    psmemory: str
    topology: str
    entry: str


class JobsOut(BaseModel):
    code: int
    msg: list[JobOut]


def make_tables() -> None:
    Base.metadata.create_all(engine)


def session() -> Iterator[Session]:
    with make_session() as opened:
        yield opened


def caller(
    opened: Annotated[Session, Depends(session)], authorization: Annotated[str, Header()] = ""
) -> Account:
    scheme, _, token = authorization.partition(" ")
    digest = hashlib.sha256(token.encode()).hexdigest()
    account = opened.scalar(
        select(Account).join(ApiToken).where(ApiToken.digest == digest, Account.is_active)
    )
    if scheme != "Token" or account is None:
        raise HTTPException(401, "this needs a login")
    return account


app = FastAPI()


@app.get("/api/v1/jobs", response_model=JobsOut)
def list_jobs(
    opened: Annotated[Session, Depends(session)],
    account: Annotated[Account, Depends(caller)],
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> dict:
    jobs = opened.scalars(
        select(Job)
        .where(Job.account_id == account.id)
        .order_by(Job.submitted_at.desc(), Job.id.desc())
        .limit(limit)
    ).all()
    return {"code": 200, "msg": jobs}
