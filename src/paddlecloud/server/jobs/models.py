"""Rows about jobs. Submitting writes the wish, the mirror writes what the engine tells.

A row never overrules the engine about what happened, and the engine never changes a wish. Times
are unix seconds; `counts`, `failure` and `wish_v1` hold JSON exactly as it is answered, so that a
list needs no decoding.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models


class Job(models.Model):
    id = models.CharField(max_length=32, primary_key=True)  # job-<16 hex>
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="jobs"
    )
    group = models.ForeignKey(
        "groups.Group", on_delete=models.SET_NULL, null=True, related_name="jobs"
    )  # whose quota it counts against; null: the group is gone
    cluster = models.CharField(max_length=63)
    name = models.CharField(max_length=255)
    spec = models.TextField()  # core.jobspec.to_json
    wish_v1 = models.TextField()  # the same wish as an entry of GET /api/v1/jobs
    run = models.IntegerField(default=1)
    phase = models.CharField(max_length=16)
    live = models.BooleanField(default=True)  # phase is not terminal
    reason = models.TextField(default="")
    counts = models.TextField(default="{}")  # {"trainer": {"wanted": …}, …}
    failure = models.TextField(default="null")
    granted = models.IntegerField(default=0)
    restarts = models.IntegerField(default=0)
    max_restarts = models.IntegerField(default=0)
    mode = models.CharField(max_length=16)
    priority = models.SmallIntegerField(default=0)
    cpu_milli = models.BigIntegerField()  # of the whole job, at its grant once it has one
    memory_bytes = models.BigIntegerField()
    gpu = models.IntegerField()
    package = models.TextField()  # /pfs/… : the working directory
    package_digest = models.CharField(max_length=64, default="")
    submitted_at = models.FloatField()
    started_at = models.FloatField(null=True)
    ended_at = models.FloatField(null=True)
    revision = models.BigIntegerField(default=0)
    prepared = models.BooleanField(default=False)  # the working directory is filled
    cancel_asked = models.TextField(default="")  # non-empty: the user's kill, with its reason
    algorithm = models.CharField(max_length=32, default="")  # id of the experiment, if any
    moves = models.TextField(default="[]")  # JSON: replicas of this run ordered off their hosts
    trainers_asked = models.IntegerField(null=True)  # a new size the engine was not told yet
    deleted = models.BooleanField(default=False)  # hidden; forgotten once it has ended

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["account", "name"], condition=models.Q(live=True), name="one_live_name"
            )
        ]
        indexes = [
            models.Index(
                fields=["account", "-submitted_at", "-id"],
                condition=models.Q(deleted=False),
                name="job_list",
            ),
            models.Index(
                fields=["account", "-submitted_at", "-id"],
                condition=models.Q(live=True),
                name="job_live",
            ),
            models.Index(fields=["account", "name", "-submitted_at"], name="job_name"),
            models.Index(
                fields=["algorithm", "-submitted_at"],
                condition=~models.Q(algorithm=""),
                name="job_algorithm",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class Run(models.Model):
    """One run of a job. Its status is final once it has ended; a re-run is another row."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="runs")
    run = models.IntegerField()
    phase = models.CharField(max_length=16)
    reason = models.TextField(default="")
    package = models.TextField()  # where this run worked; moves when the folder is put aside
    counts = models.TextField(default="{}")
    failure = models.TextField(default="null")
    restarts = models.IntegerField(default=0)
    submitted_at = models.FloatField()
    started_at = models.FloatField(null=True)
    ended_at = models.FloatField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["job", "run"], name="one_run")]
        indexes = [models.Index(fields=["package"], name="run_package")]

    def __str__(self) -> str:
        return f"{self.job_id} run {self.run}"


class Replica(models.Model):
    """One attempt of one replica, as last seen."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="replicas")
    run = models.IntegerField()
    role = models.CharField(max_length=16)
    index = models.IntegerField()
    attempt = models.IntegerField()
    state = models.CharField(max_length=16)
    stopping = models.BooleanField(default=False)
    address = models.CharField(max_length=64, default="")
    node = models.CharField(max_length=255, default="")
    exit = models.TextField(default="null")
    started_at = models.FloatField(null=True)
    ended_at = models.FloatField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["job", "run", "role", "index", "attempt"], name="one_attempt"
            )
        ]

    def __str__(self) -> str:
        return f"{self.job_id}/{self.run} {self.role}-{self.index}.{self.attempt}"


class Event(models.Model):
    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="events")
    run = models.IntegerField()
    at = models.FloatField()
    reason = models.CharField(max_length=64)
    message = models.TextField()
    severity = models.CharField(max_length=16)
    replica = models.CharField(max_length=64, default="")

    class Meta:
        indexes = [models.Index(fields=["job", "id"], name="event_list")]

    def __str__(self) -> str:
        return f"{self.reason}: {self.message}"


class Algorithm(models.Model):
    """An experiment that jobs belong to. Its owner and the members of its group may use it."""

    id = models.CharField(max_length=32, primary_key=True)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="algorithms"
    )
    name = models.CharField(max_length=128)
    group = models.CharField(max_length=150, default="")  # empty: its owner's alone
    remark = models.TextField(default="")
    created_at = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "name"], name="one_algorithm")]
        indexes = [models.Index(fields=["group"], name="algorithm_group")]

    def __str__(self) -> str:
        return f"{self.name} ({self.id})"


class Publication(models.Model):
    """A link to one file, for anybody who has it. Its secret is derived, not stored."""

    id = models.CharField(max_length=32, primary_key=True)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="publications"
    )
    path = models.TextField()  # /pfs/…, in the account's home
    created_at = models.FloatField()
    expires_at = models.FloatField()

    class Meta:
        indexes = [models.Index(fields=["account", "-created_at"], name="publication_list")]

    def __str__(self) -> str:
        return self.path


class IdempotencyKey(models.Model):
    """The answer a change was given, so that the same request asked again changes nothing."""

    account = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    request = models.CharField(max_length=64)  # keyed hash of method, path and body
    status = models.IntegerField()
    response = models.BinaryField(default=b"")
    job_id = models.CharField(max_length=32, default="")  # answer with this job as it is now
    created_at = models.FloatField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["account", "key"], name="one_key")]
        indexes = [models.Index(fields=["created_at"], name="key_age")]

    def __str__(self) -> str:
        return self.key


class EngineCursor(models.Model):
    """How far the mirror has read an engine's changes; written with what they changed."""

    cluster = models.CharField(max_length=63, primary_key=True)
    cursor = models.BigIntegerField(default=0)
    epoch = models.CharField(max_length=64, default="")  # of the engine's memory it counts in

    def __str__(self) -> str:
        return f"{self.cluster} at {self.cursor}"


class Counter(models.Model):
    """The revision: grows with every change of any job."""

    name = models.CharField(max_length=32, primary_key=True)
    value = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.name} = {self.value}"
