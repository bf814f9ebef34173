"""Tokens: made, listed, revoked; and the token a job gets of its own.

A token is shown once and only its hash is kept. A job's token is derived from the platform's key,
the job and the run, so it can be handed to the engine again after a crash without being stored;
it may read that job and nothing else, and dies with the run.
"""

from __future__ import annotations

from django.conf import settings

from paddlecloud import clock
from paddlecloud.server.accounts.models import ApiToken
from paddlecloud.server.authentication import derived_token, new_token, token_digest
from paddlecloud.server.database import writing
from paddlecloud.server.jobs.models import Job
from paddlecloud.server.process import here

_SHOWN = 8


def _keep(token: str, account_id: int, *, job_id: str | None, expires_at: float | None) -> None:
    with writing(is_durable=True):
        row = ApiToken(
            digest=token_digest(token),
            account_id=account_id,
            prefix=token[:_SHOWN],
            scope=ApiToken.USER if job_id is None else ApiToken.JOB,
            job_id=job_id,
            expires_at=expires_at,
        )
        ApiToken.objects.bulk_create([row], ignore_conflicts=True)  # a derived one may be there


def make(account_id: int, *, expires_in_s: float | None = None, key: str = "") -> str:
    """A new token for the account. The same non-empty `key` gives the same token again."""
    token = (
        derived_token(settings.SECRET_KEY, "account", str(account_id), key) if key else new_token()
    )
    expires_at = None if expires_in_s is None else clock.now() + expires_in_s
    _keep(token, account_id, job_id=None, expires_at=expires_at)
    return token


def job_environment(job: Job) -> dict[str, str]:
    """How a job reaches the server: its own token and where to send it."""
    token = derived_token(settings.SECRET_KEY, "job", job.id, str(job.run))
    _keep(token, job.account_id, job_id=job.id, expires_at=None)
    return {"PADDLECLOUD_TOKEN": token, "PADDLECLOUD_ENDPOINT": here().endpoint}


def revoke_job_tokens(job_id: str) -> None:
    """The run has ended. Call inside `writing()`."""
    ApiToken.objects.filter(job_id=job_id).delete()
