"""Every route of the server."""

from __future__ import annotations

from paddlecloud.server import (
    table_credentials,
    table_groups,
    table_job_service,
    table_pfs,
    table_publishing,
    table_registries,
    table_v1,
    table_v2,
)
from paddlecloud.server.routing import Table

TABLE = Table(
    [
        *table_v2.ROUTES,
        *table_credentials.ROUTES,
        *table_groups.ROUTES,
        *table_job_service.ROUTES,
        *table_publishing.ROUTES,
        *table_registries.ROUTES,
        *table_pfs.ROUTES,
        *table_v1.ROUTES,
    ]
)
