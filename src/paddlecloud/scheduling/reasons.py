"""One sentence for every job that waits, and who holds what it waits for.

`plan` writes the sentences into its grants, `explain` shows the parts. A sentence says nothing
about the current time, so that it changes only when the state of the queue does. Where names are
private (`Snapshot.private`) another account's jobs are counted but not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paddlecloud.scheduling.admission import Admission, Applicant, Cause, Verdict
from paddlecloud.scheduling.amounts import amount, quantity
from paddlecloud.scheduling.explanation import Blocker, Holder
from paddlecloud.scheduling.fitting import misfits, quota_misfits
from paddlecloud.scheduling.placement import RESOURCES, Vector, placeable, total_of
from paddlecloud.scheduling.quotas import LIMITS
from paddlecloud.scheduling.reservations import Release
from paddlecloud.scheduling.snapshot import JobView, Snapshot

_NAMED = 3  # holders named in a sentence


class Words:
    """Says things about one admission; what many sentences share is worked out once."""

    def __init__(self, snapshot: Snapshot, outcome: Admission) -> None:
        self._snapshot = snapshot
        self._desk = outcome.desk
        self._clauses: dict[tuple[str, int | None], str] = {}

    def reason(self, job: Applicant, verdict: Verdict) -> str:
        match verdict.cause:
            case Cause.TOO_BIG:
                return self._too_big(job.view)
            case Cause.QUOTA_TOO_SMALL:
                quota = self._snapshot.quotas[job.view.account_id]
                return f"can never start: {quota_misfits(job.view.spec, quota)[0].sentence}"
            case Cause.OVER_QUOTA:
                return self._over_quota(job)
            case Cause.BEHIND:
                assert verdict.behind is not None
                return self._behind(job.view, verdict.behind)
            case _:
                return self._no_room(job)

    def _too_big(self, view: JobView) -> str:
        found = misfits(view.spec, self._snapshot.nodes)
        together = next((each for each in found if each.sentence.startswith("needs")), found[0])
        return f"can never start: {together.sentence}"

    def _over_quota(self, job: Applicant) -> str:
        name, need, left, limit = self.quota_shortages(job)[0]
        if left <= 0:
            used = amount(name, limit - left)
            return f"your quota of {quantity(name, limit)} is used: {used} of {amount(name, limit)}"
        return (
            f"needs {quantity(name, need, up=True)}: your quota of {quantity(name, limit)} "
            f"has {amount(name, left)} left"
        )

    def _behind(self, view: JobView, first: JobView) -> str:
        named = self.name(first, view)
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
                said.append(f"{len(holders) - _NAMED} more the rest")
            self._clauses[key] = f"; {', '.join(said)}" if said else ""
        return self._clauses[key]

    # --- the parts, for `explain` too -----------------------------------------------------------

    def shortages(self, job: Applicant) -> list[tuple[str, int, int]]:
        """(resource, needed, free) of what the cluster as a whole has too little of."""
        rows = zip(RESOURCES, job.need, self._desk.free, strict=True)
        return [row for row in rows if row[1] > row[2]]

    def quota_shortages(self, job: Applicant) -> list[tuple[str, int, int, int]]:
        """(limit's name, needed, left, limit) of what the account has too little of."""
        account = job.view.account_id
        if account not in self._desk.purses:
            return []
        left, limits = self._desk.purses[account], self._desk.limits[account]
        rows = zip(LIMITS, job.claim, left, limits, strict=True)
        return [row for row in rows if row[1] > max(0, row[2])]

    def blockers(self, job: Applicant, verdict: Verdict) -> tuple[Blocker, ...]:
        if verdict.cause == Cause.OVER_QUOTA:
            return tuple(
                Blocker(
                    f"quota {name}",
                    amount(name, need, up=True),
                    amount(name, left),
                    self.quota_holders(name, job.view),
                )
                for name, need, left, _ in self.quota_shortages(job)
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

    def quota_holders(self, limit: str, reader: JobView) -> tuple[Holder, ...]:
        index = LIMITS.index(limit)
        own = [row for row in self._desk.running if row.view.account_id == reader.account_id]
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


def _held(release: Release) -> Vector:
    return total_of(release.held.values())


def holder_words(holder: Holder) -> str:
    """`wide-deep (bob) holds 4`."""
    if not holder.account:
        return f"{holder.job} hold {holder.amount}"
    return f"{holder.job} ({holder.account}) holds {holder.amount}"
