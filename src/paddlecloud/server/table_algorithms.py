"""Rows of the route table about algorithms."""

from __future__ import annotations

from paddlecloud.server.routers import algorithms_v2
from paddlecloud.server.routing import Change, Param, Route
from paddlecloud.wire import algorithm_shapes, routes

ROUTES = [
    Route(
        "GET",
        routes.ALGORITHMS,
        algorithms_v2.list_algorithms,
        "The algorithms the caller may use, newest first",
        answers={200: algorithm_shapes.AlgorithmListShape},
    ),
    Route(
        "POST",
        routes.ALGORITHMS,
        algorithms_v2.create,
        "A new algorithm, for jobs to belong to",
        body=algorithm_shapes.AlgorithmBody,
        answers={201: algorithm_shapes.AlgorithmShape},
        change=Change.ATOMIC,
    ),
    Route(
        "GET",
        routes.ALGORITHM,
        algorithms_v2.get_algorithm,
        "One algorithm with its latest jobs; {ref} is an id, or the name of one's own",
        params=(Param("limit", int, "at most this many jobs", 100, 1, 1000),),
        answers={200: algorithm_shapes.AlgorithmWithJobsShape},
    ),
    Route(
        "DELETE",
        routes.ALGORITHM,
        algorithms_v2.delete,
        "Forget an algorithm without live jobs; its jobs stay",
        answers={204: None},
        change=Change.ATOMIC,
    ),
]
