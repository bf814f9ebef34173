"""One sentence for every job that waits, and who holds what it waits for.

`plan` writes the sentences into its grants, `explain` shows the parts. A sentence says nothing
about the current time, so that it changes only when the state of the queue does. Where names are
private (`Snapshot.private`) another account's jobs are counted but not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paddlecloud.scheduling.admission import Admission
from paddlecloud.scheduling.amounts import amount, quantity
from paddlecloud.scheduling.explanation import Blocker, Holder
from paddlecloud.scheduling.fitting import limit_misfits, misfits, pool_misfits, quota_misfits
from paddlecloud.scheduling.placement import RESOURCES, UNBOUNDED, Vector, placeable, total_of
from paddlecloud.scheduling.quotas import LIMITS
from paddlecloud.scheduling.reservations import Release
from paddlecloud.scheduling.snapshot import Group, JobView, Snapshot
from paddlecloud.scheduling.verdicts import Applicant, Cause, Purse, Verdict

_NAMED = 3  # holders named in a sentence
_RULES = {
    Cause.OVER_QUOTA: "an account's running jobs stay within its quota",
    Cause.OVER_LIMIT: "a group's running jobs stay within its limit",
    Cause.GUARANTEED: "what other groups are guaranteed is kept for them; only jobs that may be"
    " preempted borrow it",
    Cause.RECLAIMING: "a group gets its guarantee back: jobs that borrow it stop",
    Cause.STOPPING: "a group gets its guarantee back: jobs that borrow it stop",
    Cause.BEHIND: "a job may pass earlier ones only if it delays none of them",
}
_ORDER = "served by guarantee first, then priority, then the group's share by weight, then age"


class Words:
    """Says things about one admission; what many sentences share is worked out once."""

    def __init__(self, snapshot: Snapshot, outcome: Admission) -> None:
        self._snapshot = snapshot
        self._desk = outcome.desk
        self._clauses: dict[tuple[str, int | None], str] = {}
        self._idle: dict[int, list[tuple[str, str]]] = {}
        self._guaranteed = {job.view.job_id for job in outcome.queue if job.is_guaranteed}

    def reason(self, job: Applicant, verdict: Verdict) -> str:
        match verdict.cause:
            case Cause.TOO_BIG:
                return self._too_big(job.view)
            case Cause.QUOTA_TOO_SMALL:
                quota = self._snapshot.quotas[job.view.account_id]
                return f"can never start: {quota_misfits(job.view.spec, quota)[0].sentence}"
            case Cause.LIMIT_TOO_SMALL:
                group = self._snapshot.groups[job.view.group]
                return f"can never start: {limit_misfits(job.view.spec, group)[0].sentence}"
            case Cause.ALL_GUARANTEED:
                found = pool_misfits(job.view.spec, self._snapshot.groups, self._snapshot.nodes)
                return f"can never start: {found[0].sentence}"
            case Cause.OVER_QUOTA:
                return self._over_quota(job)
            case Cause.OVER_LIMIT:
                return self._over_limit(job)
            case Cause.GUARANTEED:
                return self._guaranteed_to_others(job)
            case Cause.RECLAIMING:
                return self._reclaiming(job)
            case Cause.STOPPING:
                return "was preempted; its replicas are stopping"
            case Cause.BEHIND:
                assert verdict.behind is not None
                return self._behind(job.view, verdict.behind)
            case _:
                return self._no_room(job)

    def _too_big(self, view: JobView) -> str:
        found = misfits(view.spec, self._snapshot.nodes)
        if not found:  # only its choice of nodes stands in the way
            return "can never start: the nodes it may run on could not hold all its replicas"
        together = next((each for each in found if each.sentence.startswith("needs")), found[0])
        return f"can never start: {together.sentence}"

    def _over_quota(self, job: Applicant) -> str:
        name, need, left, limit = self.quota_shortages(job, job.view.account_id)[0]
        if left <= 0:
            used = amount(name, limit - left)
            return f"your quota of {quantity(name, limit)} is used: {used} of {amount(name, limit)}"
        return (
            f"needs {quantity(name, need, up=True)}: your quota of {quantity(name, limit)} "
            f"has {amount(name, left)} left"
        )

    def _over_limit(self, job: Applicant) -> str:
        group = job.view.group
        name, need, left, limit = self.quota_shortages(job, group)[0]
        if left <= 0:
            used = amount(name, limit - left)
            return (
                f"the limit of group {group}, {quantity(name, limit)}, is used: "
                f"{used} of {amount(name, limit)}"
            )
        return (
            f"needs {quantity(name, need, up=True)}: group {group} has {amount(name, left)} left "
            f"of its limit of {quantity(name, limit)}"
        )

    def _guaranteed_to_others(self, job: Applicant) -> str:
        books = self._desk.groups
        short = books.pool_shortage(job.view, job.claim)
        index = next(index for index, amount_ in enumerate(short) if amount_)
        resource = RESOURCES[index]
        wanted = books.from_pool(job.view, job.claim)[index]
        words = (
            f"waits for {quantity(resource, wanted, up=True)} that no group is guaranteed: "
            f"{amount(resource, books.pool[index])} left"
        )
        idle = [name for group, name in self._idle_guarantees(index) if group != job.view.group]
        idle = idle[:_NAMED]
        return f"{words}; kept for group {', '.join(idle)}" if idle else words

    def _idle_guarantees(self, index: int) -> list[tuple[str, str]]:
        """(group, `nlp (4)`): who leaves how much of a guarantee idle, most first."""
        if index not in self._idle:
            books = self._desk.groups
            rows = []
            for name in self._snapshot.groups:
                idle = books.guarantee(name)[index] - books.held(name)[index]
                if idle > 0:
                    rows.append((-idle, name))
            rows.sort()
            self._idle[index] = [
                (name, f"{name} ({amount(RESOURCES[index], -idle)})") for idle, name in rows
            ]
        return self._idle[index]

    def _reclaiming(self, job: Applicant) -> str:
        stopping = [
            self.name(release.view, job.view)
            for release in self._desk.running
            if self._desk.victims.get(release.view.job_id) is job.view
        ]
        stopping = stopping or [
            self.name(release.view, job.view)
            for release in self._desk.running
            if release.view.is_leaving
        ]
        listed = ", ".join(stopping[:_NAMED]) + (" and others" if len(stopping) > _NAMED else "")
        who = f"{listed} {'has' if len(stopping) == 1 else 'have'} stopped"
        return f"within the guarantee of group {job.view.group}: starts when {who}"

    def preempted(self, view: JobView, owner: JobView) -> str:
        """To the one that stops: who takes back what it ran on."""
        return (
            f"preempted: group {owner.group} takes its guarantee back for "
            f"{self.name(owner, view)}{self._by(owner, view)}"
        )

    def _by(self, view: JobView, reader: JobView) -> str:
        return f" ({view.account})" if view.account and self.may_name(view, reader) else ""

    def _behind(self, view: JobView, first: JobView) -> str:
        named = self.name(first, view)
        if first.job_id in self._guaranteed:
            return f"waits behind {named} (within the guarantee of group {first.group})"
        if first.submitted_at > view.submitted_at and first.spec.priority == view.spec.priority:
            return f"waits behind {named} (group {first.group} has the smaller share)"
        if first.spec.priority > view.spec.priority:
            return f"waits behind {named} (priority {first.spec.priority.word})"
        return f"waits behind {named} (submitted earlier)"

    def _no_room(self, job: Applicant) -> str:
        short = self.shortages(job)
        if not short:
            return f"waits for nodes with room for all its {job.claim[-1]} replicas at once"
        name, need, free = short[0]
        words = f"waits for {quantity(name, need, up=True)}: {amount(name, free)} free"
        words += self._clause(name, job.view)
        for name, need, free in short[1:]:
            words += f"; and for {quantity(name, need, up=True)}: {amount(name, free)} free"
        return words

    def _clause(self, resource: str, reader: JobView) -> str:
        key = (resource, reader.account_id if self._snapshot.private else None)
        if key not in self._clauses:
            holders = self.holders(resource, reader)
            said = [holder_words(holder) for holder in holders[:_NAMED]]
            if len(holders) > _NAMED:
                more = len(holders) - _NAMED
                said.append(f"{more} more hold{'s' if more == 1 else ''} the rest")
            self._clauses[key] = f"; {', '.join(said)}" if said else ""
        return self._clauses[key]

    # --- the parts, for `explain` too -----------------------------------------------------------

    def shortages(self, job: Applicant) -> list[tuple[str, int, int]]:
        """(resource, needed, free) of what the cluster as a whole has too little of."""
        rows = zip(RESOURCES, job.need, self._desk.free, strict=True)
        return [row for row in rows if row[1] > row[2]]

    def quota_shortages(self, job: Applicant, purse: Purse) -> list[tuple[str, int, int, int]]:
        """(limit's name, needed, left, limit) of what the account or group has too little of."""
        if purse not in self._desk.purses:
            return []
        left, limits = self._desk.purses[purse], self._desk.limits[purse]
        rows = zip(LIMITS, job.claim, left, limits, strict=True)
        return [row for row in rows if row[1] > max(0, row[2])]

    def blockers(self, job: Applicant, verdict: Verdict) -> tuple[Blocker, ...]:
        if verdict.cause in (Cause.OVER_QUOTA, Cause.OVER_LIMIT):
            is_group = verdict.cause == Cause.OVER_LIMIT
            purse: Purse = job.view.group if is_group else job.view.account_id
            return tuple(
                Blocker(
                    f"limit of group {purse}: {name}" if is_group else f"quota {name}",
                    amount(name, need, up=True),
                    amount(name, left),
                    self.quota_holders(name, job.view, purse),
                )
                for name, need, left, _ in self.quota_shortages(job, purse)
            )
        if verdict.cause != Cause.NO_ROOM:
            return ()
        short = self.shortages(job)
        if not short:
            fitting = str(placeable(job.least, self._desk.room))
            return (Blocker("nodes", f"room for {job.claim[-1]} replicas", fitting),)
        return tuple(
            Blocker(
                name,
                amount(name, need, up=True),
                amount(name, free),
                self.holders(name, job.view),
            )
            for name, need, free in short
        )

    def holders(self, resource: str, reader: JobView) -> tuple[Holder, ...]:
        index = RESOURCES.index(resource)
        return self._holders(
            resource, reader, self._desk.running, lambda release: _held(release)[index]
        )

    def quota_holders(self, limit: str, reader: JobView, purse: Purse) -> tuple[Holder, ...]:
        index = LIMITS.index(limit)
        own = [row for row in self._desk.running if purse in (row.view.account_id, row.view.group)]
        return self._holders(limit, reader, own, lambda release: release.claim[index])

    def _holders(
        self,
        resource: str,
        reader: JobView,
        releases: Iterable[Release],
        share: Callable[[Release], int],
    ) -> tuple[Holder, ...]:
        rows = [(share(release), release.view) for release in releases if share(release) > 0]
        rows.sort(key=lambda row: (-row[0], row[1].spec.name, row[1].job_id))
        named = [
            Holder(view.spec.name, view.account, amount(resource, held))
            for held, view in rows
            if self.may_name(view, reader)
        ]
        unnamed = sum(held for held, view in rows if not self.may_name(view, reader))
        if unnamed:
            named.append(Holder("jobs of other accounts", "", amount(resource, unnamed)))
        return tuple(named)

    def may_name(self, view: JobView, reader: JobView) -> bool:
        return not self._snapshot.private or view.account_id == reader.account_id

    def name(self, view: JobView, reader: JobView) -> str:
        return view.spec.name if self.may_name(view, reader) else "a job of another account"

    # --- the group --------------------------------------------------------------------------

    def rule(self, job: Applicant, verdict: Verdict) -> str:
        """Which rule makes it wait; empty where nothing is decided about any group."""
        groups = self._snapshot.groups.values()
        if verdict.cause is None or all(group == Group(group.name) for group in groups):
            return ""
        return _RULES.get(verdict.cause, _ORDER if verdict.cause == Cause.NO_ROOM else "")

    def group_stands(self, view: JobView) -> str:
        """`6 cpu held, 4 guaranteed, at most 8; weight 2`; empty where nothing is decided."""
        group = self._snapshot.groups.get(view.group)
        if group is None or group == Group(view.group):
            return ""
        books = self._desk.groups
        guarantee, held = books.guarantee(view.group), books.held(view.group)
        limit = self._desk.limits.get(view.group, (UNBOUNDED,) * len(LIMITS))
        parts = []
        for index, name in enumerate(LIMITS):
            words = []
            if guarantee[index]:
                words.append(f"{amount(name, guarantee[index])} guaranteed")
            if limit[index] < UNBOUNDED:
                words.append(f"at most {amount(name, limit[index])}")
            if words:
                parts.append(f"{quantity(name, held[index])} held, {', '.join(words)}")
        return "; ".join([*parts, f"weight {group.weight}"])


def _held(release: Release) -> Vector:
    return total_of(release.held.values())


def holder_words(holder: Holder) -> str:
    """`wide-deep (bob) holds 4`."""
    if not holder.account:
        return f"{holder.job} hold {holder.amount}"
    return f"{holder.job} ({holder.account}) holds {holder.amount}"
