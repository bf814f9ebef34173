"""Names the Django app of jobs."""

from __future__ import annotations

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "paddlecloud.server.jobs"
    label = "jobs"
