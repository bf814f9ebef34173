"""The JSON of `/api/v2/algorithms`. Types only, as in `shapes`."""

from __future__ import annotations

from typing import NotRequired, TypedDict


class AlgorithmBody(TypedDict):
    """`group`: whose members may use it; left out, its owner alone."""

    name: str
    group: NotRequired[str]
    remark: NotRequired[str]


class AlgorithmShape(TypedDict):
    """`jobs` counts all jobs in it, whoever's they are."""

    id: str
    name: str
    group: str
    remark: str
    created_at: str
    account: str
    jobs: int


class AlgorithmListShape(TypedDict):
    items: list[AlgorithmShape]


class AlgorithmJobShape(TypedDict):
    """`title` is the name its user gave."""

    id: str
    name: str
    title: str
    phase: str
    submitted_at: str
    ended_at: str | None
    account: str


class AlgorithmWithJobsShape(AlgorithmShape):
    """`items` are the latest jobs that the caller may look at."""

    items: list[AlgorithmJobShape]
