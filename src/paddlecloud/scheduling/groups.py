"""Groups: what is guaranteed to each, what it may hold at most, and who shares the rest.

The rules, for every resource (cpu, memory, gpu; of replicas a cluster has no end):

1. A group's **guarantee** is its own. Jobs that may not be preempted fill it first, then the
   others; a job that fits into what is left of it goes before all jobs beyond their guarantees.
2. What is guaranteed to nobody is the **pool**. Any job may use it, up to its group's **limit**.
3. What is guaranteed to another group and idle may be **borrowed**, up to the limit, and only by
   jobs that may be preempted (`may_borrow`). So a guarantee can always be had back. While jobs
   within their guarantee are still to be served, such a job starts at its smallest size.
4. A waiting job within its group's guarantee takes it back: borrowers are stopped for it, as few
   as will do (see `reclaiming`). Nobody else is ever stopped.
5. Beyond guarantees jobs of one priority go in the order of their group's share: what it holds
   beyond its guarantee, of the resource it holds most of, divided by its **weight**.

Quotas of accounts hold besides. A resource that a guarantee does not name is not guaranteed: a job
within the named ones finds the others in the pool. This module counts; it decides nothing else.
Used by the desk of `admission`, `ordering` and `reclaiming`.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.scheduling.placement import UNBOUNDED, Vector, minus, plus
from paddlecloud.scheduling.snapshot import Group, JobView, Quota

NOTHING: Vector = (0, 0, 0, 0)
_CAPACITIES = 3  # of the four that are counted, those a cluster has so much of


def _named(quota: Quota) -> tuple[bool, ...]:
    amounts = (quota.cpu_milli, quota.memory_bytes, quota.gpu, quota.replicas)
    return tuple(amount is not None for amount in amounts)


def _amounts(quota: Quota) -> Vector:
    return (
        quota.cpu_milli or 0,
        quota.memory_bytes or 0,
        quota.gpu or 0,
        quota.replicas or 0,
    )


class _Account:
    """One group while the queue is served."""

    __slots__ = ("firm", "guarantee", "has_guarantee", "named", "promised", "soft", "weight")

    def __init__(self, group: Group) -> None:
        self.guarantee = _amounts(group.guarantee)
        self.named = _named(group.guarantee)
        self.has_guarantee = any(self.guarantee[:_CAPACITIES])
        self.weight = max(1, group.weight)
        self.firm: Vector = NOTHING  # held by jobs that may not be preempted
        self.soft: Vector = NOTHING  # by those that may
        self.promised: Vector = NOTHING  # to jobs that wait for borrowers to stop

    def beyond(self, held: Vector) -> Vector:
        return tuple([max(0, h - g) for h, g in zip(held, self.guarantee, strict=True)])


class Groups:
    """The books of all groups on one cluster; without groups every answer is the plain one."""

    def __init__(self, groups: Mapping[str, Group], cluster: Vector) -> None:
        self.exist = bool(groups)
        self._cluster = cluster
        self._groups = groups
        self._accounts: dict[str, _Account] = {}
        guaranteed = NOTHING
        for group in groups.values():
            guaranteed = plus(guaranteed, _amounts(group.guarantee))
        capacity = (*cluster, UNBOUNDED)
        # More may be guaranteed than there is (a node was lost): then there is no pool.
        self.whole_pool: Vector = tuple(max(0, part) for part in minus(capacity, guaranteed))
        self.pool = self.whole_pool  # what is left of it
        # Of what nobody is guaranteed the pool is all there is: there room alone decides.
        self._kept = tuple(index for index, amount in enumerate(guaranteed) if amount)

    def _account(self, name: str) -> _Account:
        account = self._accounts.get(name)
        if account is None:
            group = self._groups.get(name) or Group(name)
            account = self._accounts[name] = _Account(group)
        return account

    # --- keeping the books ------------------------------------------------------------------

    def occupy(self, view: JobView, claim: Vector) -> None:
        if not self.exist:
            return
        account = self._account(view.group)
        if view.spec.may_borrow:
            account.soft = plus(account.soft, claim)
            return
        self.pool = minus(self.pool, self.from_pool(view, claim))
        account.firm = plus(account.firm, claim)

    def promise(self, name: str, claim: Vector) -> None:
        account = self._account(name)
        account.promised = plus(account.promised, claim)

    def forget_promises(self) -> None:
        for account in self._accounts.values():
            account.promised = NOTHING

    # --- asking -----------------------------------------------------------------------------

    def held(self, name: str) -> Vector:
        account = self._account(name)
        return plus(account.firm, account.soft)

    def firm(self, name: str) -> Vector:
        return self._account(name).firm

    def guarantee(self, name: str) -> Vector:
        return self._account(name).guarantee

    def firm_promised(self, name: str) -> Vector:
        account = self._account(name)
        return plus(account.firm, account.promised)

    def from_pool(self, view: JobView, claim: Vector) -> Vector:
        """What of this claim the group's guarantee does not cover, if the job holds it for good."""
        account = self._account(view.group)
        return self._beside(account, account.firm, claim)

    def _beside(self, account: _Account, held: Vector, claim: Vector) -> Vector:
        wanted = [0, 0, 0, 0]
        for index in self._kept:
            left = account.guarantee[index] - held[index]
            more = claim[index] - left if left > 0 else claim[index]
            if more > 0:
                wanted[index] = more
        return tuple(wanted)

    def pool_shortage(self, view: JobView, claim: Vector, *, when_empty: bool = False) -> Vector:
        """What a job that may not be preempted would take of others' guarantees; nothing for one
        that may be. `when_empty`: even if no other job ran."""
        if not self._kept or view.spec.may_borrow:
            return NOTHING
        account = self._account(view.group)
        held, pool = (NOTHING, self.whole_pool) if when_empty else (account.firm, self.pool)
        short = NOTHING
        for index, want in enumerate(self._beside(account, held, claim)):
            if want and want > pool[index]:
                missing = want - max(0, pool[index])
                short = (*short[:index], missing, *short[index + 1 :])
        return short

    def is_within(self, name: str, held: Vector, claim: Vector, *, strictly: bool) -> bool:
        """Whether a job is covered by its group's guarantee beside what is held of it already.

        `strictly`: also in what the guarantee does not name. Otherwise the job finds that in the
        pool, and must use something that is named.
        """
        account = self._account(name)
        if not account.has_guarantee:
            return False
        uses_named = False
        for index, want in enumerate(claim):
            if not want:
                continue
            if not account.named[index]:
                if strictly and index < _CAPACITIES:
                    return False
                continue
            if held[index] + want > account.guarantee[index]:
                return False
            uses_named = uses_named or index < _CAPACITIES
        return uses_named

    def share(self, name: str, held: Vector) -> float:
        """What a group that held this would hold of the cluster beyond its guarantee, by weight."""
        account = self._account(name)
        beyond = account.beyond(held)
        return (
            max(
                (beyond[index] / have for index, have in enumerate(self._cluster) if have > 0),
                default=0.0,
            )
            / account.weight
        )
