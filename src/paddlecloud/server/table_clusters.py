"""Rows of the route table about clusters."""

from __future__ import annotations

from paddlecloud.server.routers import clusters_v2
from paddlecloud.server.routing import Route
from paddlecloud.wire import cluster_shapes, routes

ROUTES = [
    Route(
        "GET",
        routes.CLUSTERS,
        clusters_v2.list_clusters,
        "The clusters, and what the caller's groups may use of each",
        answers={200: cluster_shapes.ClusterListShape},
    ),
]
