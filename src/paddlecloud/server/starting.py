"""From a state directory to a running server, in the order that loses nothing.

One server per state directory (a lock held for life), tables migrated only when they are behind,
the engine adopting what still runs, then the mirror, then the feeder that repeats every promise,
and the socket last: whoever reaches us finds everything in place.
"""

from __future__ import annotations

import fcntl
import json
import os
import sys
import time
from pathlib import Path
from typing import IO

from paddlecloud.core.errors import Conflict
from paddlecloud.server import first_tables, secretfiles
from paddlecloud.server.configuration import Configuration

_LOCK_PATIENCE_S = 2.0
_LOCK_PAUSE_S = 0.01


def make_directories(state_dir: Path) -> None:
    """Jobs of other users may pass through the top; the rest of it is ours alone."""
    for name, mode in (("", 0o711), ("run", 0o700), ("secrets", 0o700)):
        path = state_dir / name
        path.mkdir(mode=mode, parents=True, exist_ok=True)
        if name:  # the top may be a directory the administrator made for us
            path.chmod(mode)


def hold_state(state_dir: Path) -> IO[str]:
    """The lock of this state directory; it is ours until the process ends."""
    make_directories(state_dir)
    secretfiles.check_secrets(state_dir)
    lock = (state_dir / "run" / "server.lock").open("a+", encoding="ascii")
    if not _take(lock):
        lock.seek(0)
        pid = lock.read().strip() or "unknown"
        raise Conflict(
            f"a server already runs on {state_dir} (pid {pid})",
            hint="paddlecloud status shows it, paddlecloud down stops it",
        )
    lock.truncate(0)
    lock.write(str(os.getpid()))
    lock.flush()
    return lock


def _take(lock: IO[str]) -> bool:
    """Try for a moment: `paddlecloud up` looks whether the lock is held by taking it itself, and
    a server that was killed may be gone a moment before its lock is."""
    deadline = time.monotonic() + _LOCK_PATIENCE_S
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_LOCK_PAUSE_S)


def set_up_django(configuration: Configuration) -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "paddlecloud.server.settings"
    import django

    from paddlecloud.server import database

    database.check_driver(configuration.storage)
    if not configuration.storage.database_url:
        # Ours alone from the first byte; SQLite's side files take the same mode.
        path = configuration.storage.state_dir / "server.db"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600))
        if path.stat().st_size == 0:
            first_tables.fill(path)
    django.setup()
    with database.setting_up(configuration.storage):
        from django.db import connection

        connection.ensure_connection()
        if not _is_migrated():
            from django.core.management import call_command

            call_command("migrate", interactive=False, verbosity=0)


def _is_migrated() -> bool:
    """Whether every migration on disk is in the table; far quicker than asking Django."""
    from django.apps import apps
    from django.db import DatabaseError

    from paddlecloud.server.database import fetch

    wanted = set()
    for app in apps.get_app_configs():
        folder = Path(app.path) / "migrations"
        if folder.is_dir():
            names = (name for name in os.listdir(folder) if name[:4].isdigit())
            wanted |= {(app.label, name[:-3]) for name in names if name.endswith(".py")}
    try:
        return wanted <= set(fetch("SELECT app, name FROM django_migrations"))
    except DatabaseError:
        return False


def bootstrap_account(name: str, *, renew_token: bool = False) -> Path | None:
    """The first administrator. Its token is left in secrets/bootstrap-token for `up` to take.

    Does nothing when anybody has a token already, unless asked for a new one.
    """
    from paddlecloud.server.accounts.models import Account, ApiToken
    from paddlecloud.server.process import here
    from paddlecloud.server.secretfiles import secrets_dir, write_secret
    from paddlecloud.server.services import accounts, tokens

    if ApiToken.objects.filter(scope=ApiToken.USER).exists() and not renew_token:
        return None
    account = Account.objects.filter(username=name).first()
    if account is None:
        account = accounts.add(name, is_admin=True)
    elif renew_token:
        # Who owns the state directory owns the platform, whatever other administrators did.
        Account.objects.filter(pk=account.pk).update(is_staff=True, is_active=True)
    path = secrets_dir(here().state_dir) / "bootstrap-token"
    write_secret(path, tokens.make(account.pk).encode())
    return path


def begin_process(configuration: Configuration) -> None:
    """Engines and services, ready to be started."""
    from paddlecloud.engines.registry import Registry, make_engine
    from paddlecloud.server import process
    from paddlecloud.server.services.feeding import Feeder
    from paddlecloud.server.services.runtimes import Runtimes

    state_dir = configuration.storage.state_dir
    runtimes = Runtimes(state_dir, Path(sys.prefix))
    chosen = configuration.engines
    engine = make_engine(
        chosen.kind, chosen.cluster, state_dir, runtimes, _for_kubernetes(configuration)
    )
    process.begin(process.Process(configuration, Registry(engine), runtimes, Feeder()))


def _for_kubernetes(configuration: Configuration) -> dict[str, object]:
    """Fields of the engine's configuration; what was not said keeps the engine's own default."""
    chosen = configuration.kubernetes
    said: dict[str, object] = {
        "kubeconfig": chosen.kubeconfig,
        "context": chosen.context,
        "image": chosen.image,
        "pfs_volume": chosen.pfs_volume,
        "namespace_prefix": chosen.namespace_prefix,
        "gpu_resource": chosen.gpu_resource,
        "kubectl_user": chosen.kubectl_user,
    }
    return {
        **{name: value for name, value in said.items() if value},
        "pod_security": chosen.pod_security,
        "archive_logs": chosen.archives_logs,
    }


def write_run_file(path: Path, facts: dict[str, object]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(facts), encoding="utf-8")
    os.replace(part, path)
