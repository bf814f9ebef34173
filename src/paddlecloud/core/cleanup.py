"""What is removed after the end of a run, by the clean-up policy. Logs are never removed here."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.core.actions import Remove
from paddlecloud.core.jobspec import CleanPolicy
from paddlecloud.core.observed import ReplicaObserved
from paddlecloud.core.phases import Phase


def wants_removal(policy: CleanPolicy, phase: Phase) -> bool:
    match policy:
        case CleanPolicy.ALWAYS:
            return True
        case CleanPolicy.NEVER:
            return False
        case CleanPolicy.ON_FAILURE:
            return phase in (Phase.FAILED, Phase.TIMED_OUT)
        case CleanPolicy.ON_COMPLETION:
            return phase == Phase.SUCCEEDED


def removals(
    policy: CleanPolicy, phase: Phase, replicas: Iterable[ReplicaObserved]
) -> tuple[Remove, ...]:
    if not wants_removal(policy, phase):
        return ()
    return tuple(Remove(seen.key) for seen in replicas if not seen.alive)
