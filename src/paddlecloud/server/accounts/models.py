"""Rows about people. The id decides who owns what; a name is only what they are called.

Times are unix seconds (as everywhere in the engines), so that no conversion stands between a row
and an answer.
"""

from __future__ import annotations

import time
from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models


class AccountManager(BaseUserManager):
    def create_user(self, username: str, password: str | None = None, **fields: Any) -> Account:
        account = self.model(username=username, **fields)
        account.set_password(password)
        account.save(using=self._db)
        return account

    def create_superuser(self, username: str, password: str | None = None) -> Account:
        return self.create_user(username, password, is_staff=True)


class Account(AbstractBaseUser):
    """An e-mail address or a word; `is_staff` is the platform's administrator."""

    username = models.CharField(max_length=150, unique=True)
    is_staff = models.BooleanField("administrator", default=False)
    is_active = models.BooleanField(default=True)
    created_at = models.FloatField(default=time.time, editable=False)
    # The newest revision that touched anything of this account: what /changes waits on.
    revision = models.BigIntegerField(default=0, editable=False)

    objects = AccountManager()
    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: list[str] = []

    # Django's admin asks these; an administrator may do everything there, others nothing.
    def has_perm(self, perm: str, obj: object = None) -> bool:
        return self.is_active and self.is_staff

    def has_perms(self, perms: object, obj: object = None) -> bool:
        return self.is_active and self.is_staff

    def has_module_perms(self, label: str) -> bool:
        return self.is_active and self.is_staff

    def __str__(self) -> str:
        return self.username


class ApiToken(models.Model):
    """A token, of which only the SHA-256 is kept (it has 256 random bits: no salt is needed)."""

    USER = "user"
    JOB = "job"
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tokens")
    digest = models.CharField(max_length=64, unique=True)
    prefix = models.CharField(max_length=12)  # to recognise it in a list
    scope = models.CharField(max_length=8, default=USER)
    job = models.ForeignKey(
        "jobs.Job", on_delete=models.CASCADE, null=True, related_name="tokens"
    )  # what a job's own token may read
    created_at = models.FloatField(default=time.time)
    expires_at = models.FloatField(null=True)
    last_used_at = models.FloatField(null=True)  # right to `authentication.USE_NOTED_EVERY_S`

    def __str__(self) -> str:
        return f"{self.prefix}… ({self.scope})"


class ClientCertificate(models.Model):
    """A certificate our CA has signed for an account. One that is not here is not believed."""

    serial = models.CharField(max_length=40, primary_key=True)  # hex, no leading zeros
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="certificates")
    created_at = models.FloatField(default=time.time)
    expires_at = models.FloatField()
    revoked_at = models.FloatField(null=True)
    reason = models.TextField(default="", blank=True)

    def __str__(self) -> str:
        return f"{self.serial} of {self.account}"


class AccessKey(models.Model):
    """A key pair that signs requests. Its secret is kept sealed: checking needs it back."""

    READ, SUBMIT, ALL = "read", "submit", "all"
    SCOPES = (READ, SUBMIT, ALL)
    ak = models.CharField(max_length=128, primary_key=True)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="access_keys")
    name = models.CharField(max_length=64)
    scope = models.CharField(max_length=8, default=ALL)
    sealed = models.TextField()  # server.sealing, about "access key <ak>"
    previous = models.TextField(default="")  # the secret before a rotation, good for a while more
    previous_until = models.FloatField(default=0.0)
    created_at = models.FloatField(default=time.time)
    rotated_at = models.FloatField(null=True)
    last_used_at = models.FloatField(null=True)  # right to `authentication.USE_NOTED_EVERY_S`
    revoked_at = models.FloatField(null=True)
    reason = models.TextField(default="", blank=True)

    class Meta:
        indexes = [models.Index(fields=["account", "-created_at"], name="access_key_list")]

    def __str__(self) -> str:
        return f"{self.ak} of {self.account}"


class Registry(models.Model):
    """A login to a registry of images. The password is kept sealed: clusters need it back."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="registries")
    name = models.CharField(max_length=63)
    server = models.CharField(max_length=255)
    username = models.CharField(max_length=255)
    sealed = models.TextField()  # server.sealing, about "registry <account id> <name>"
    created_at = models.FloatField(default=time.time)
    changed_at = models.FloatField(default=time.time)

    class Meta:
        verbose_name_plural = "registries"
        constraints = [models.UniqueConstraint(fields=["account", "name"], name="one_registry")]

    def __str__(self) -> str:
        return f"{self.name} of {self.account}"


class SeenNonce(models.Model):
    """A request that was proven once and is not to be proven again while it could be."""

    digest = models.CharField(max_length=64, primary_key=True)  # of access key and nonce
    good_until = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.digest


class Quota(models.Model):
    """Hard limits of one account: over all its running jobs (null = none), and in storage."""

    account = models.OneToOneField(
        Account, on_delete=models.CASCADE, primary_key=True, related_name="quota"
    )
    cpu_milli = models.BigIntegerField(null=True, blank=True)
    memory_bytes = models.BigIntegerField(null=True, blank=True)
    gpu = models.IntegerField(null=True, blank=True)
    replicas = models.IntegerField(null=True, blank=True)
    # Of what is stored. Here null = the platform's default and NO_LIMIT = none, so that a default
    # that is changed reaches everybody nobody decided about.
    storage_bytes = models.BigIntegerField(
        null=True, blank=True, help_text="empty: the platform's default; -1: no limit"
    )
    storage_files = models.BigIntegerField(
        null=True, blank=True, help_text="empty: the platform's default; -1: no limit"
    )

    NO_LIMIT = -1

    def __str__(self) -> str:
        return f"quota of {self.account}"


class FailedLogins(models.Model):
    """Wrong passwords in a row, by account name or by address; survives a restart."""

    subject = models.CharField(max_length=200, primary_key=True)  # account:… or address:…
    count = models.IntegerField(default=0)
    last_at = models.FloatField(default=time.time)

    class Meta:
        verbose_name_plural = "failed logins"

    def __str__(self) -> str:
        return f"{self.subject}: {self.count}"
