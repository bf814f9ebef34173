"""Where rows live, and the one way to write them.

`settings_for` turns a setting into Django's; `writing` is the only door to a write transaction:
SQLite allows one writer, so writers of this process queue on a lock of ours (fair, no busy
waiting) and begin with BEGIN IMMEDIATE, never upgrading a read. Readers are never held up (WAL).
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from paddlecloud.core.errors import InvalidInput, OutOfSpace, PaddleCloudError, Unavailable
from paddlecloud.server.configuration import Storage

log = logging.getLogger(__name__)

VARIABLE = "PADDLECLOUD_DATABASE_URL"
_CONNECT_WITHIN_S = 10
_SQLITE_SETUP = (
    "PRAGMA journal_mode=WAL;"
    # NORMAL: a commit survives kill -9 of us; only a power cut may take the last ones back.
    "PRAGMA synchronous=NORMAL;"
    "PRAGMA busy_timeout=10000;"
    "PRAGMA cache_size=-4000;"
    "PRAGMA journal_size_limit=67108864"
)


def settings_for(storage: Storage) -> dict[str, Any]:
    """Django's DATABASES["default"]."""
    if not storage.database_url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": str(storage.state_dir / "server.db"),
            "CONN_MAX_AGE": None,
            "OPTIONS": {
                "transaction_mode": "IMMEDIATE",
                "init_command": _SQLITE_SETUP,
                "timeout": 10,
            },
        }
    return _postgres_settings(storage.database_url)


def _postgres_settings(text: str) -> dict[str, Any]:
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:  # its own message repeats a part of the text, perhaps the password
        raise _not_an_address() from None
    if url.scheme not in ("postgres", "postgresql") or not url.path.strip("/"):
        raise _not_an_address()
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(url.path.strip("/")),
        "USER": unquote(url.username or ""),
        "PASSWORD": unquote(url.password or ""),
        "HOST": unquote(url.hostname or ""),
        "PORT": str(port or ""),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {"connect_timeout": str(_CONNECT_WITHIN_S), **dict(parse_qsl(url.query))},
    }


def _not_an_address() -> InvalidInput:
    return InvalidInput(
        f"{VARIABLE} must look like postgres://user:password@host:5432/name",
        field=VARIABLE,
        hint="leave it unset to use SQLite in the state directory; other characters than letters,"
        " digits, - . _ ~ in a password are written as %XX",
    )


def check_driver(storage: Storage) -> None:
    """Say what is missing before Django does, in a sentence. Nothing to do for SQLite."""
    if not storage.database_url:
        return
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        why = str(error).strip().splitlines()[0]
        raise Unavailable(
            f"{VARIABLE} is set, but the driver psycopg cannot be imported: {why}",
            field=VARIABLE,
            hint=f"{sys.executable} -m pip install 'psycopg[binary]>=3.2'",
        ) from None


@contextmanager
def setting_up(storage: Storage) -> Iterator[None]:
    """The first connection and the tables: what fails here is the operator's to mend."""
    from django.db import Error

    try:
        yield
    except Error as error:
        if not storage.database_url:
            raise
        url = urlsplit(storage.database_url)
        where = url.hostname or dict(parse_qsl(url.query)).get("host", "localhost")
        # What libpq and the server say never holds the password.
        why = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
        raise Unavailable(
            f"{VARIABLE}: the database {unquote(url.path.strip('/'))} at {where} cannot be used:"
            f" {why}",
            field=VARIABLE,
            hint="see that it runs, that its address is right and that the account may make tables",
        ) from None


# A transaction that computes longer than this does something else than rows.
MOST_HELD_S = 0.05
_SLOW_S = 1.0  # with waiting: worth a line in the log


class _Held(threading.local):
    """What the thread that has the lock is to do when it has given it back."""

    depth = 0

    def __init__(self) -> None:
        self.hooks: list[Callable[[], object]] = []


_writer = threading.RLock()
_held = _Held()


@contextmanager
def writing(*, is_durable: bool = False) -> Iterator[None]:
    """A write transaction; nested calls join the outer one.

    With `is_durable` not even a power cut takes it back once this returns (the outermost, if
    nested). For what is promised to hold "from now on": revoked, rotated, disabled, spent.

    All writers of the platform wait for whoever is inside, so nothing but rows is touched there:
    no engine, no process, no tree of files, no comparison of what a user chose. `rows_only` marks
    such work; `after_commit` is the place for it.
    """
    if _held.depth:
        with _transaction(is_durable):
            yield
        return
    hooks: list[Callable[[], object]] = []
    with _writer:
        began_s, own_began_s = time.monotonic(), time.thread_time()
        _held.depth, _held.hooks = 1, hooks
        try:
            with _transaction(is_durable):
                yield
        finally:
            _held.depth, _held.hooks = 0, []
            _look_at_time(time.monotonic() - began_s, time.thread_time() - own_began_s)
    for hook in hooks:
        hook()


@contextmanager
def _transaction(is_durable: bool) -> Iterator[None]:
    from django.db import InterfaceError, OperationalError, connection, transaction

    try:
        with transaction.atomic():
            if is_durable and connection.vendor == "sqlite":
                after_commit(_sync_log)  # before all that is told of it, and outside of the lock
            yield
    except (InterfaceError, OperationalError):
        if not connection.in_atomic_block:
            forget_broken_connection()
        raise


def _sync_log() -> None:
    """What synchronous=FULL does after every commit: the log is what a restart reads."""
    from django.db import connection

    fd = os.open(f"{connection.settings_dict['NAME']}-wal", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _look_at_time(held_s: float, own_s: float) -> None:
    if own_s <= MOST_HELD_S and held_s <= _SLOW_S:
        return
    frame = next(_callers(), None)
    who = f"{frame.name} in {Path(frame.filename).name}" if frame else "somebody"
    if own_s > MOST_HELD_S:
        log.warning("%s: %.0f ms, by %s", HELD_LONG, own_s * 1000, who)
    else:  # the disk or the database is slow, or this machine has no time for us
        log.warning("a write took %.1f s, by %s", held_s, who)


HELD_LONG = "the write lock was held for long work"
NOT_ROWS = "this holds up every writer of the platform"


def rows_only(what: str) -> None:
    """Called by what takes long, or as long as others please: it is not for inside `writing`."""
    if _held.depth:
        log.error("%s: %s inside a write transaction", NOT_ROWS, what, stack_info=True)


def _callers() -> Iterator[traceback.FrameSummary]:
    """Who called, nearest first, without this module and the standard library's wrapping."""
    for frame in reversed(traceback.extract_stack(limit=12)):
        if frame.filename != __file__ and "contextlib" not in frame.filename:
            yield frame


def after_commit(action: Callable[[], object]) -> None:
    """Run `action` when the running transaction is durable and the write lock is free again, or
    now if there is none."""
    from django.db import transaction

    if _held.depth:  # Django drops it when the part of the transaction it belongs to is undone
        action = partial(_held.hooks.append, action)
    transaction.on_commit(action)


def fetch(sql: str, parameters: tuple[Any, ...] | list[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of one SELECT, as plain tuples: the fast way to read many."""
    from django.db import InterfaceError, OperationalError, connection

    try:
        return _select(sql, parameters)
    except (InterfaceError, OperationalError):
        if connection.in_atomic_block:
            raise
        # The database may have been restarted since this thread last asked: once more, anew.
        forget_broken_connection()
        if connection.connection is not None:
            raise
    return _select(sql, parameters)


def _select(sql: str, parameters: tuple[Any, ...] | list[Any]) -> list[tuple[Any, ...]]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.fetchall()


def fetch_joined(sql: str, parameters: tuple[Any, ...] | list[Any] = ()) -> str:
    """The texts a SELECT of one column, called `text`, finds; in its order, joined by commas.

    SQLite's driver offers the interpreter to other threads before every row; with several
    requests at work those hand-overs cost three times what reading a page costs. This is one row.
    """
    from django.db import connection

    join = "group_concat" if connection.vendor == "sqlite" else "string_agg"
    # An ordered and limited subquery is read in its order by both databases.
    return fetch(f"SELECT {join}(text, ',') FROM ({sql}) AS page", parameters)[0][0] or ""


def forget_broken_connection() -> None:
    """After an unexpected error: drop this thread's connection if it no longer works.

    Threads keep their connection for life; a database server that was restarted must not make
    every one of them useless.
    """
    from django.db import connection

    connection.close_if_unusable_or_obsolete()


def named(error: BaseException) -> PaddleCloudError | None:
    """What a failing database means to a caller; None for an error that is not the database's."""
    from django.db import DataError, InterfaceError, OperationalError

    if isinstance(error, OverflowError):  # SQLite's driver says it so
        return InvalidInput("a number is too large")
    if isinstance(error, DataError):
        return InvalidInput("a value is too long, too large or holds a NUL character")
    if not isinstance(error, InterfaceError | OperationalError):
        return None
    if "full" in str(error) or "No space left" in str(error):
        return OutOfSpace("the platform's disk is full")
    return Unavailable("the database does not answer", hint="try again in a moment")
