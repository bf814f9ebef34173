"""What proves an account: tokens, certificates, a password; listed, ended, and all of it at once.

Everybody may look after their own, an administrator after anyone's. What is ended here is refused
from the moment of the answer on: the memory of known tokens is emptied and requests that are held
open (followed logs, waits) are asked again who they are. Jobs are not credentials: they go on.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, NotAllowed, NotFound
from paddlecloud.server import authentication, certificates
from paddlecloud.server.accounts.models import Account, ApiToken, ClientCertificate, FailedLogins
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import after_commit, rows_only, writing
from paddlecloud.server.exchange import rfc3339
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.notifying import access_subject
from paddlecloud.server.process import here
from paddlecloud.server.services import accounts, orders

_MAX_REASON = 200


def managed_by(caller: Principal, name: str) -> Account:
    """The account called `name`. Who is no administrator may only name itself, and learns
    nothing about other names."""
    if not caller.is_admin and name != caller.name:
        raise NotAllowed("only an administrator may do this for somebody else")
    return accounts.find(name)


def look_again(account_id: int) -> None:
    """Something of the account has ended: nobody is believed because of what was true before."""

    def tell() -> None:
        authentication.forget_all()
        here().hub.publish((access_subject(account_id),))

    after_commit(tell)


# --- the whole account -----------------------------------------------------------------------


def check_may_disable(account: Account) -> None:
    """A platform without an administrator could not be mended from outside."""
    others = Account.objects.filter(is_staff=True, is_active=True).exclude(pk=account.pk)
    if account.is_staff and not others.exists():
        raise Conflict(
            f"{account.username} is the last administrator and cannot be disabled",
            field="name",
            hint="make another one first: paddlecloud account add NAME --admin",
        )


def disable(name: str, *, by: str, is_killing: bool) -> dict[str, Any]:
    """Nothing of the account is a login any more; its jobs go on unless they are to be killed."""
    with writing(is_durable=True):
        account = accounts.find(name)
        if account.is_active:
            check_may_disable(account)
            Account.objects.filter(pk=account.pk).update(is_active=False)
        look_again(account.pk)
        live = Job.objects.filter(account=account, live=True, deleted=False)
        job_ids = list(live.values_list("id", flat=True)) if is_killing else []
        for job_id in job_ids:
            orders.cancel(job_id, by, f"its account was disabled by {by}")
    return _access(account.pk, killed=len(job_ids))


def enable(name: str) -> dict[str, Any]:
    with writing(is_durable=True):
        account = accounts.find(name)
        Account.objects.filter(pk=account.pk).update(is_active=True)
        _forgive(name)
    return _access(account.pk, killed=0)


def _access(account_id: int, *, killed: int) -> dict[str, Any]:
    name, is_active = Account.objects.values_list("username", "is_active").get(pk=account_id)
    live = Job.objects.filter(account_id=account_id, live=True, deleted=False).count()
    return {"name": name, "enabled": is_active, "live_jobs": live, "killed_jobs": killed}


def _forgive(name: str) -> None:
    """Wrong passwords of before no longer slow down the right one."""
    FailedLogins.objects.filter(subject=f"account:{name[:150]}").delete()


def set_password(account: Account, password: str) -> None:
    """Ends the sessions of the old one (Django ties them to it); tokens stay."""
    try:
        validate_password(password, account)
    except ValidationError as error:
        raise InvalidInput(faults=[Fault("password", " ".join(error.messages))]) from None
    rows_only("hashing a password")
    account.set_password(password)
    with writing(is_durable=True):
        account.save(update_fields=["password"])
        _forgive(account.username)
        look_again(account.pk)


# --- tokens ----------------------------------------------------------------------------------


def list_tokens(account: Account, presented: str) -> list[dict[str, Any]]:
    """The account's own tokens, newest first; those of its jobs come and go with them.

    `presented` is the token of this very request, to tell which one not to revoke by mistake.
    """
    digest = authentication.token_digest(presented) if presented else ""
    rows = ApiToken.objects.filter(account=account, scope=ApiToken.USER).order_by("-id")
    return [
        {
            "id": row.pk,
            "prefix": row.prefix,
            "created_at": rfc3339(row.created_at),
            "last_used_at": rfc3339(row.last_used_at),
            "expires_at": rfc3339(row.expires_at),
            "current": row.digest == digest,
        }
        for row in rows
    ]


def revoke_token(account: Account, token_id: int) -> None:
    with writing(is_durable=True):
        rows = ApiToken.objects.filter(account=account, scope=ApiToken.USER, pk=token_id)
        if not rows.delete()[0]:
            raise NotFound(
                f"{account.username} has no token {token_id}",
                field="token",
                hint=f"paddlecloud account tokens {account.username}",
            )
        look_again(account.pk)


def revoke_all(account: Account, by: str, reason: str) -> tuple[int, int]:
    """(tokens, certificates) that were good until now."""
    with writing(is_durable=True):
        rows = ApiToken.objects.filter(account=account, scope=ApiToken.USER)
        tokens = int(rows.delete()[0])
        good = ClientCertificate.objects.filter(
            account=account, revoked_at=None, expires_at__gt=clock.now()
        )
        certs = good.update(revoked_at=clock.now(), reason=words(by, reason))
        look_again(account.pk)
    return tokens, certs


# --- certificates ----------------------------------------------------------------------------


def make_certificate(account: Account) -> dict[str, Any]:
    """A new pair; the key is given once and not kept, the serial number is."""
    made = certificates.account_certificate(here().state_dir, account.username, account.pk)
    with writing(is_durable=True):
        ClientCertificate.objects.create(
            serial=made.serial, account=account, expires_at=made.expires_at
        )
    return {
        "serial": made.serial,
        "cert_pem": made.pair.cert_pem.decode(),
        "key_pem": made.pair.key_pem.decode(),
        "ca_pem": made.ca_pem.decode(),
    }


def list_certificates(account: Account) -> list[dict[str, Any]]:
    rows = ClientCertificate.objects.filter(account=account).order_by("-created_at", "serial")
    return [
        {
            "serial": row.serial,
            "created_at": rfc3339(row.created_at),
            "expires_at": rfc3339(row.expires_at),
            "revoked_at": rfc3339(row.revoked_at),
            "reason": row.reason,
        }
        for row in rows
    ]


def revoke_certificate(account: Account, serial: str, by: str, reason: str) -> None:
    """Repeating it changes nothing: the first reason stays."""
    with writing(is_durable=True):
        rows = ClientCertificate.objects.filter(account=account, serial=_plain(serial))
        if not rows.exists():
            raise NotFound(
                f"{account.username} has no certificate {serial[:80]}",
                field="cert",
                hint=f"paddlecloud account cert {account.username} --list",
            )
        rows.filter(revoked_at=None).update(revoked_at=clock.now(), reason=words(by, reason))
        look_again(account.pk)


def _plain(serial: str) -> str:
    """As openssl and browsers may write it (`0A:1B…`), in our spelling."""
    return serial.replace(":", "").lower().lstrip("0")


def words(by: str, reason: str) -> str:
    return " ".join(reason.split())[:_MAX_REASON] or f"revoked by {by}"
