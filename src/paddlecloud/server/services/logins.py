"""Passwords: checked at the same cost whether the account exists, and slowed down when guessed.

After some free tries each further failure doubles the wait, counted per account name and per
address; the counts are rows, so a restart does not reset them. A success clears the account's
count but not the address's. Wrong signatures are counted the same way (`signatures`).
"""

from __future__ import annotations

from django.contrib.auth.hashers import make_password

from paddlecloud import clock
from paddlecloud.core.errors import NotLoggedIn, RateLimited
from paddlecloud.server.accounts.models import Account, FailedLogins
from paddlecloud.server.authentication import Principal
from paddlecloud.server.configuration import Logins
from paddlecloud.server.database import writing
from paddlecloud.server.process import here


def _subjects(name: str, address: str) -> dict[str, int]:
    """What is counted, and how many failures each has free."""
    rules = here().configuration.logins
    return {
        f"account:{name[:150]}": rules.free_tries,
        f"address:{address[:64]}": rules.address_free_tries,
    }


def _delay_s(rules: Logins, count: int, free: int) -> float:
    over = count - free
    if over < 0:
        return 0.0
    return float(min(rules.max_delay_s, rules.first_delay_s * 2.0 ** min(over, 40)))


def refuse_if_too_soon(subjects: dict[str, int], what: str = "wrong passwords") -> None:
    rules = here().configuration.logins
    now = clock.now()
    for row in FailedLogins.objects.filter(subject__in=subjects):
        # One in the future was counted before the clock was set back: nobody waits for that.
        if not 0 <= now - row.last_at <= rules.forget_after_s:
            continue
        left_s = row.last_at + _delay_s(rules, row.count, subjects[row.subject]) - now
        if left_s > 0:
            error = RateLimited(f"too many {what}", hint=f"try again in {max(1, round(left_s))} s")
            error.retry_after_s = left_s  # type: ignore[attr-defined]
            raise error


def count_failure(subjects: dict[str, int]) -> None:
    rules = here().configuration.logins
    now = clock.now()
    with writing():
        FailedLogins.objects.filter(last_at__lt=now - rules.forget_after_s).delete()
        for subject in subjects:
            row, _ = FailedLogins.objects.get_or_create(subject=subject)
            row.count += 1
            row.last_at = now
            row.save()


def check_password(name: str, password: str, address: str) -> Principal:
    """The account, or NotLoggedIn, or RateLimited before the password is even looked at."""
    subjects = _subjects(name, address)
    refuse_if_too_soon(subjects)
    account = Account.objects.filter(username=name, is_active=True).first()
    if account is None:
        make_password(password)  # the same work as a real check: timing tells nothing
        is_right = False
    else:
        is_right = account.check_password(password)
    if account is None or not is_right:
        count_failure(subjects)
        raise NotLoggedIn("wrong user name or password")
    clear(f"account:{name}")
    return Principal(account.pk, account.username, account.is_staff)


def clear(subject: str) -> None:
    """The right proof came: wrong ones of before no longer slow it down."""
    if FailedLogins.objects.filter(subject=subject).exists():
        with writing():
            FailedLogins.objects.filter(subject=subject).delete()
