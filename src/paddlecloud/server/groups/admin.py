"""Groups in the admin site: to look at. `paddlecloud group` changes them."""

from __future__ import annotations

from django.contrib import admin

from paddlecloud.server.groups.models import Group, Membership
from paddlecloud.server.looking_only import ShownModel, ShownRows


class _Members(ShownRows):
    model = Membership


@admin.register(Group)
class GroupAdmin(ShownModel):
    list_display = ("name", "weight", "guarantee_gpu", "limit_gpu", "clusters")
    search_fields = ("name",)
    ordering = ("name",)
    inlines = (_Members,)
