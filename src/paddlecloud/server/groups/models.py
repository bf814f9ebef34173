"""Rows about groups. What they mean is decided by `scheduling.groups`; here it is kept.

Every account has a group of its own, made with it and called like it. Amounts are in the units of
`core.resources`; null means nothing guaranteed, or no limit.
"""

from __future__ import annotations

import time

from django.conf import settings
from django.db import models


class Group(models.Model):
    name = models.CharField(max_length=150, unique=True)
    own_account = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="own_group"
    )  # whose own group it is, if it is somebody's
    created_at = models.FloatField(default=time.time, editable=False)
    weight = models.IntegerField(default=1)
    clusters = models.TextField(default="", blank=True)  # names, one per line; empty = every one
    guarantee_cpu_milli = models.BigIntegerField(null=True, blank=True)
    guarantee_memory_bytes = models.BigIntegerField(null=True, blank=True)
    guarantee_gpu = models.IntegerField(null=True, blank=True)
    guarantee_replicas = models.IntegerField(null=True, blank=True)
    limit_cpu_milli = models.BigIntegerField(null=True, blank=True)
    limit_memory_bytes = models.BigIntegerField(null=True, blank=True)
    limit_gpu = models.IntegerField(null=True, blank=True)
    limit_replicas = models.IntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """An owner manages members and ends jobs, a member submits, a viewer only looks."""

    OWNER = "owner"
    MEMBER = "member"
    VIEWER = "viewer"
    ROLES = (OWNER, MEMBER, VIEWER)

    group = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="memberships")
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships"
    )
    role = models.CharField(max_length=8, choices=[(role, role) for role in ROLES])

    class Meta:
        constraints = [models.UniqueConstraint(fields=["group", "account"], name="one_membership")]

    def __str__(self) -> str:
        return f"{self.account} is {self.role} of {self.group}"
