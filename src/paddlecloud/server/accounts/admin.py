"""Accounts, limits and tokens in the admin site. Tokens are only shown and revoked here, access
keys and registries only shown."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.forms import AdminUserCreationForm, UserChangeForm
from django.contrib.auth.models import Group
from django.http import HttpRequest

from paddlecloud.core import names
from paddlecloud.core.errors import Conflict
from paddlecloud.server.accounts.models import (
    AccessKey,
    Account,
    ApiToken,
    ClientCertificate,
    FailedLogins,
    Quota,
    Registry,
)
from paddlecloud.server.looking_only import RemovableModel, ShownModel
from paddlecloud.server.services import accounts, credentials, groups, telling

admin.site.unregister(Group)


class _NewAccount(AdminUserCreationForm):  # type: ignore[misc]
    class Meta:
        model = Account
        fields = ("username",)

    def clean_username(self) -> str:
        from django.core.exceptions import ValidationError

        name = str(self.cleaned_data["username"])
        try:
            names.check_account_name(name)
        except names.BadName as error:
            raise ValidationError(str(error)) from None
        if groups.is_taken(name):
            raise ValidationError(f"there is already a group {name}")
        return name


class _ChangedAccount(UserChangeForm):  # type: ignore[misc]
    class Meta:
        model = Account
        fields = ("username", "is_active", "is_staff")

    def clean(self) -> dict[str, Any]:
        from django.core.exceptions import ValidationError

        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if not (cleaned.get("is_active") and cleaned.get("is_staff")):
            before = Account.objects.get(pk=self.instance.pk)
            try:
                if before.is_active:
                    credentials.check_may_disable(before)
            except Conflict as error:
                raise ValidationError(error.message) from None
        return cleaned


class _QuotaInline(admin.StackedInline):
    model = Quota
    extra = 0


@admin.register(Account)
class AccountAdmin(UserAdmin):  # type: ignore[misc]
    form, add_form = _ChangedAccount, _NewAccount
    list_display = ("username", "id", "is_staff", "is_active", "last_login")
    list_filter = ("is_staff", "is_active")
    search_fields = ("username",)
    ordering = ("username",)
    filter_horizontal = ()
    inlines = (_QuotaInline,)
    # A name is part of paths and of certificates: it is chosen once.
    readonly_fields = ("username", "last_login")
    fieldsets = ((None, {"fields": ("username", "password", "is_active", "is_staff")}),)
    add_fieldsets = ((None, {"fields": ("username", "usable_password", "password1", "password2")}),)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return () if obj is None else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False  # its jobs and files would be orphans; make it inactive instead

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(super().has_add_permission(request)) and accounts.may_add()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        accounts.home_tree(obj.pk, obj.username)
        groups.own_of(obj.pk, obj.username)
        credentials.look_again(obj.pk)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        telling.tell_engines()


@admin.register(ApiToken)
class ApiTokenAdmin(RemovableModel):
    list_display = ("prefix", "account", "scope", "job")
    list_filter = ("scope",)
    search_fields = ("account__username", "prefix")

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        super().delete_model(request, obj)
        credentials.look_again(obj.account_id)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        owners = set(queryset.values_list("account_id", flat=True))
        super().delete_queryset(request, queryset)
        for account_id in owners:
            credentials.look_again(account_id)


@admin.register(ClientCertificate)
class ClientCertificateAdmin(ShownModel):
    """To look at; `paddlecloud account revoke NAME --cert SERIAL` ends one."""

    list_display = ("serial", "account", "reason")
    search_fields = ("account__username", "serial")


@admin.register(AccessKey)
class AccessKeyAdmin(ShownModel):
    """To look at; `paddlecloud account revoke NAME --key AK` ends one."""

    list_display = ("ak", "account", "name", "scope", "reason")
    list_filter = ("scope",)
    search_fields = ("account__username", "ak", "name")
    exclude = ("sealed", "previous")


@admin.register(Registry)
class RegistryAdmin(ShownModel):
    """To look at; `paddlecloud delete registry NAME` removes one."""

    list_display = ("name", "account", "server", "username")
    search_fields = ("account__username", "name", "server")
    exclude = ("sealed",)


@admin.register(FailedLogins)
class FailedLoginsAdmin(RemovableModel):
    """Deleting a row lets somebody try again at once."""

    list_display = ("subject", "count")
