"""The revision counter and the notices that go with it.

Whoever changes a job's row takes a revision in the same transaction; clients that wait compare
it. Must be called inside `writing()`.
"""

from __future__ import annotations

from django.db import connection

from paddlecloud.server.database import after_commit
from paddlecloud.server.notifying import account_subject, job_subject
from paddlecloud.server.process import here

_NAME = "revision"


def next_revision() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO jobs_counter (name, value) VALUES (%s, 1)"
            " ON CONFLICT (name) DO UPDATE SET value = jobs_counter.value + 1 RETURNING value",
            (_NAME,),
        )
        return int(cursor.fetchone()[0])


def stamp_job(job_id: str) -> int:
    """Give the job's row the next revision."""
    revision = next_revision()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET revision = %s WHERE id = %s", (revision, job_id))
    return revision


def announce(account_id: int, job_id: str, revision: int) -> None:
    """Note the newest revision of all who see the job in a list: its account and, if it is shared,
    the members of that group. Tell the waiting once it is durable."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE accounts_account SET revision = %s WHERE id = %s OR id IN (SELECT m.account_id"
            ' FROM job_service_sharing s JOIN groups_group g ON g.name = s."group"'
            " JOIN groups_membership m ON m.group_id = g.id WHERE s.job_id = %s) RETURNING id",
            (revision, account_id, job_id),
        )
        seen_by = [account_subject(row[0]) for row in cursor.fetchall()]
    hub = here().hub
    after_commit(lambda: hub.publish((job_subject(job_id), *seen_by)))
