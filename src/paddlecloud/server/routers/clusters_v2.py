"""Clusters: what there is to run on."""

from __future__ import annotations

from paddlecloud.server.exchange import Answer, Request, json_answer
from paddlecloud.server.services import clusters


def list_clusters(request: Request) -> Answer:
    return json_answer({"items": clusters.listed(request.caller)})
