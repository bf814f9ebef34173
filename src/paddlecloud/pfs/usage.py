"""How much an account keeps, and whether more fits: exact for everything that passes through us.

Bytes are reserved under a lock before the first of them lands, so any number of parallel uploads
together never exceed the limit; what is unfinished counts. A file that is replaced is subtracted
when its successor takes the name. What jobs write is seen by a walk: the first when it is first
needed, then whenever `sweep` is called. Only one process may use a root.

Two locks per account, taken in this order: `names` while names change, and for a whole walk when
nothing may change meanwhile; `lock` for the numbers, always for a moment only, because the threads
that move everybody's bytes take it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from paddlecloud.core.errors import QuotaExceeded
from paddlecloud.localfs.trees import Totals
from paddlecloud.pfs.owners import Owner

_WALKS_WITHOUT_LOCK = 2
_REST = 20


@dataclass
class _Account:
    names: threading.RLock = field(default_factory=threading.RLock)
    lock: threading.RLock = field(default_factory=threading.RLock)
    owner: Owner | None = None
    walked: bool = False
    walked_at_s: float = 0.0
    walk_s: float = 0.0
    walks: int = 0  # a removal that began before a walk must not be subtracted after it
    changes: int = 0
    used_bytes: int = 0
    used_files: int = 0
    held_bytes: int = 0
    held_files: int = 0


class Reservation:
    """Room for bytes and files that are not yet visible. Released or spent, once."""

    def __init__(self, account: _Account, size_bytes: int, files: int) -> None:
        self._account = account
        self._size_bytes = size_bytes
        self._files = files
        account.held_bytes += size_bytes
        account.held_files += files

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    def release(self) -> None:
        self.shrink(self._size_bytes, self._files)

    def shrink(self, size_bytes: int, files: int) -> None:
        """Give back a part of it."""
        with self._account.lock:
            self._account.held_bytes -= size_bytes
            self._account.held_files -= files
            self._size_bytes -= size_bytes
            self._files -= files

    def absorb(self, other: Reservation) -> None:
        """Hold what `other` held as well."""
        with self._account.lock:
            self._size_bytes += other._size_bytes
            self._files += other._files
            other._size_bytes = other._files = 0


class Usage:
    def __init__(self, count: Callable[[Owner], Totals]) -> None:
        self._count = count
        self._lock = threading.Lock()
        self._accounts: dict[int, _Account] = {}

    def _account(self, account_id: int, owner: Owner | None = None) -> _Account:
        with self._lock:
            account = self._accounts.setdefault(account_id, _Account())
        if owner is not None:
            account.owner = owner
        return account

    def reserve(self, owner: Owner, size_bytes: int, files: int) -> Reservation:
        account = self._account(owner.account_id, owner)
        if owner.limit_bytes is not None or owner.limit_files is not None:
            self._walk_once(account, owner)
            try:
                return self._reserve(account, owner, size_bytes, files)
            except QuotaExceeded:
                pass
            with account.names:  # what takes its name just now is counted twice for a moment
                return self._reserve(account, owner, size_bytes, files)
        with account.lock:
            return Reservation(account, size_bytes, files)

    def _reserve(self, account: _Account, owner: Owner, size_bytes: int, files: int) -> Reservation:
        with account.lock:
            _check(owner.limit_bytes, account.used_bytes + account.held_bytes, size_bytes)
            _check_files(owner.limit_files, account.used_files + account.held_files, files)
            return Reservation(account, size_bytes, files)

    def reserve_about(self, owner: Owner, least_bytes: int, wanted_bytes: int) -> Reservation:
        """Room for `wanted_bytes` if there is so much, else for `least_bytes`."""
        try:
            return self.reserve(owner, max(least_bytes, wanted_bytes), 0)
        except QuotaExceeded:
            return self.reserve(owner, least_bytes, 0)

    def nothing(self, owner: Owner) -> Reservation:
        """For what was reserved elsewhere."""
        account = self._account(owner.account_id, owner)
        with account.lock:
            return Reservation(account, 0, 0)

    def readopt(self, account_id: int, size_bytes: int, files: int) -> Reservation:
        """Hold again what an earlier process held; it fitted then."""
        account = self._account(account_id)
        with account.lock:
            return Reservation(account, size_bytes, files)

    @contextmanager
    def publishing(self, owner: Owner) -> Iterator[Callable[[int, int], None]]:
        """While names change: gives a function that counts (bytes, files) more or less."""
        account = self._account(owner.account_id, owner)

        def count(size_bytes: int, files: int) -> None:
            with account.lock:
                account.used_bytes = max(0, account.used_bytes + size_bytes)
                account.used_files = max(0, account.used_files + files)

        with account.names:
            account.changes += 1
            yield count

    def walks(self, owner: Owner) -> int:
        return self._account(owner.account_id).walks

    def removed(self, owner: Owner, size_bytes: int, files: int, walks_before: int) -> None:
        """Subtract what was deleted, unless a walk has meanwhile counted without it."""
        account = self._account(owner.account_id)
        with account.names, account.lock:
            if account.walks == walks_before:
                account.changes += 1
                account.used_bytes = max(0, account.used_bytes - size_bytes)
                account.used_files = max(0, account.used_files - files)

    def totals(self, owner: Owner) -> tuple[Totals, int]:
        """(what is used, the unfinished included; the unfinished bytes alone)."""
        account = self._account(owner.account_id, owner)
        self._walk_once(account, owner)
        with account.lock:
            used = Totals(
                account.used_files + account.held_files, account.used_bytes + account.held_bytes
            )
            return used, account.held_bytes

    def _walk_once(self, account: _Account, owner: Owner) -> None:
        if account.walked:
            return
        with account.names:
            if not account.walked:
                self._take(account, self._walk(account, owner))

    def _walk(self, account: _Account, owner: Owner) -> Totals:
        begun_s = time.monotonic()
        totals = self._count(owner)
        account.walked_at_s = time.monotonic()
        account.walk_s = account.walked_at_s - begun_s
        return totals

    def _take(self, account: _Account, totals: Totals) -> None:
        with account.lock:
            account.used_bytes, account.used_files = totals.size_bytes, totals.files
            account.walked = True
            account.walks += 1

    def sweep(self, *, may_rest: bool = False) -> None:
        """Walk the accounts that were walked before, to see what their jobs wrote.

        `may_rest`: spend a twentieth of the time on it at most; a large home is walked less often.
        """
        rest = _REST if may_rest else 0
        now_s = time.monotonic()
        with self._lock:
            accounts = [
                one
                for one in self._accounts.values()
                if one.walked and one.owner and now_s - one.walked_at_s >= rest * one.walk_s
            ]
        for account in accounts:
            self._sweep(account)

    def _sweep(self, account: _Account) -> None:
        owner = account.owner
        assert owner is not None
        for _ in range(_WALKS_WITHOUT_LOCK):
            with account.names:
                changes = account.changes
            totals = self._walk(account, owner)
            with account.names:
                if account.changes == changes:
                    self._take(account, totals)
                    return
        with account.names:  # it changes all the time: hold the changes for one walk
            self._take(account, self._walk(account, owner))


def _check(limit: int | None, used: int, more: int) -> None:
    if limit is not None and more > 0 and used + more > limit:
        raise QuotaExceeded(
            f"{more} bytes do not fit: {used} of {limit} bytes are used",
            hint="remove files (paddlecloud pfs rm), or ask the administrator for more",
            field="path",
        )


def _check_files(limit: int | None, used: int, more: int) -> None:
    if limit is not None and more > 0 and used + more > limit:
        raise QuotaExceeded(
            f"{more} files do not fit: {used} of {limit} files are used",
            hint="remove files (paddlecloud pfs rm), or ask the administrator for more",
            field="path",
        )
