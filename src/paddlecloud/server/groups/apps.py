"""Names the Django app of groups."""

from __future__ import annotations

from django.apps import AppConfig


class GroupsConfig(AppConfig):
    name = "paddlecloud.server.groups"
    label = "groups"
