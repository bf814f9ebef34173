"""Rows of the second generation: which jobs are marked or shared, and files sent before a job."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Favorite(models.Model):
    """A job an account has marked; perhaps somebody else's."""

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="favorites"
    )
    job = models.ForeignKey("jobs.Job", on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "job"], name="one_mark")]

    def __str__(self) -> str:
        return f"{self.job_id} for {self.account_id}"


class Sharing(models.Model):
    """A job that the members of a group may look at (`--permission group`)."""

    job = models.OneToOneField(
        "jobs.Job", on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    group = models.CharField(max_length=150, db_index=True)

    def __str__(self) -> str:
        return f"{self.job_id} with {self.group}"


class PendingFile(models.Model):
    """A file that waits for the next job of the key it was sent with; its bytes are a blob."""

    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="pending_files"
    )
    ak = models.CharField(max_length=128)  # empty: sent with a token
    name = models.CharField(max_length=255)
    digest = models.CharField(max_length=64)
    size_bytes = models.BigIntegerField()
    sent_at = models.FloatField(db_index=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["account", "ak", "name"], name="one_pending_file")
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.account_id}"
