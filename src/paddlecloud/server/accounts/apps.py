"""Names the Django app of accounts."""

from __future__ import annotations

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    name = "paddlecloud.server.accounts"
    label = "accounts"
