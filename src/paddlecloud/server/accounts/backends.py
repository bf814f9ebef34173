"""Password logins of Django's pages, under the same slowing down as those of the API."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.core.exceptions import PermissionDenied

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.server.accounts.models import Account


class SlowedPasswords(BaseBackend):  # type: ignore[misc]
    def authenticate(
        self, request: Any, username: str | None = None, password: str | None = None, **_: Any
    ) -> Account | None:
        from paddlecloud.server.services import logins

        if username is None or password is None:
            return None
        address = request.META.get("REMOTE_ADDR", "") if request is not None else ""
        try:
            principal = logins.check_password(username, password, address)
        except PaddleCloudError:
            raise PermissionDenied from None
        return self.get_user(principal.account_id)

    def get_user(self, user_id: int) -> Account | None:
        account: Account | None = Account.objects.filter(pk=user_id, is_active=True).first()
        return account
