"""Groups in the admin site: to look at. `paddlecloud group` changes them."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from paddlecloud.server.groups.models import Group, Membership


class _Members(admin.TabularInline):
    model = Membership
    extra = 0
    can_delete = False

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Group)
class GroupAdmin(admin.ModelAdmin):  # type: ignore[misc]
    list_display = ("name", "weight", "guarantee_gpu", "limit_gpu", "clusters")
    search_fields = ("name",)
    ordering = ("name",)
    inlines = (_Members,)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
