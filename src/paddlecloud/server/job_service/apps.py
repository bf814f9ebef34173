"""Names the Django app of the job service."""

from __future__ import annotations

from django.apps import AppConfig


class JobServiceConfig(AppConfig):
    name = "paddlecloud.server.job_service"
    label = "job_service"
