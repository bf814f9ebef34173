"""Jobs in the admin site: to look at, and to kill. Everything else has an interface of its own."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from paddlecloud.server.exchange import encode, rfc3339
from paddlecloud.server.jobs.models import Event, Job, Replica, Run
from paddlecloud.server.looking_only import ShownModel, ShownRows
from paddlecloud.server.services import orders, sharing


class _Runs(ShownRows):
    model = Run
    fields = ("run", "phase", "reason", "restarts", "package")


class _Replicas(ShownRows):
    model = Replica
    fields = ("run", "role", "index", "attempt", "state", "address", "exit")


class _Events(ShownRows):
    model = Event
    fields = ("run", "reason", "message", "severity", "replica")


@admin.register(Job)
class JobAdmin(ShownModel):
    """Not to be deleted: rows alone would go, and the engine would keep the rest."""

    list_display = ("id", "name", "account", "cluster", "phase", "submitted")
    list_filter = ("phase", "cluster", "live")
    search_fields = ("id", "name", "account__username")
    list_select_related = ("account",)
    ordering = ("-submitted_at",)
    inlines = (_Runs, _Replicas, _Events)
    actions = ("kill",)
    exclude = ("spec",)  # as it is it may hold secrets
    readonly_fields = ("specification",)
    show_full_result_count = False

    @admin.display(ordering="submitted_at")
    def submitted(self, job: Job) -> str:
        return rfc3339(job.submitted_at) or ""

    @admin.display(description="spec")
    def specification(self, job: Job) -> str:
        return encode(sharing.shown(job.spec)).decode()

    @admin.action(description="Kill the selected jobs", permissions=["view"])
    def kill(self, request: HttpRequest, queryset: Any) -> None:
        for job in queryset.filter(live=True, deleted=False):
            orders.cancel(job.pk, request.user.get_username())
