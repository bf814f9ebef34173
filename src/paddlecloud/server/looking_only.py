"""Pages of the admin site that show and never change: what they show is changed elsewhere."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest


class _Shown:
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ShownRows(_Shown, admin.TabularInline):  # type: ignore[misc]
    extra = 0
    can_delete = False


class RemovableModel(_Shown, admin.ModelAdmin):  # type: ignore[misc]
    """Rows can be deleted, and nothing else."""


class ShownModel(RemovableModel):
    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
