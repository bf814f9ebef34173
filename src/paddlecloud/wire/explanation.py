"""The answer of `GET /jobs/{ref}/explain`, laid out for a terminal.

    big is Queued (position 2 of 3) since 4m.
      needs      8 cpu for 4 trainers + 2 pservers, all at once
      blocked by cpu: 8 needed, 3 free. wide-deep (bob) holds 4, resnet (alice) holds 1.
      ahead      nightly (bob, priority high, needs 6 cpu)
      start      between 12m and 25m (wide-deep reports 11m left)
      sooner     --parallelism 2      starts now
                 --priority high      starts in 12m (before nightly)

The command line prints these lines. Nothing is decided here: the words come from the planner.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paddlecloud.core.durations import format_duration
from paddlecloud.wire.shapes import BlockerShape, ExplainShape, HolderShape

_LABEL_WIDTH = len("blocked by ")
_HOLDERS_SHOWN = 4
_AHEAD_SHOWN = 5


def explanation_lines(answer: ExplainShape, since_s: float) -> list[str]:
    """The lines, without colour; `since_s` is how long the job has been in its phase."""
    subject, since = f"{answer['name']} is {answer['phase']}", format_duration(since_s)
    if not answer["waiting"]:
        because = _rows("because", [answer.get("reason", "")])
        return [f"{subject} since {since}; it does not wait for room.", *because]
    if "position" not in answer:  # the planner could not be asked; only the stored reason is known
        return [f"{subject} since {since}.", *_rows("because", [answer.get("reason", "")])]
    place = f"position {answer['position']} of {answer.get('queue_length', 0)}"
    lines = [f"{subject} ({place}) since {since}."]
    blockers = answer.get("blockers", [])
    lines += _rows("needs", [answer.get("needs", "")])
    lines += _rows("blocked by", [_blocker(blocker) for blocker in blockers])
    if not blockers:
        lines += _rows("because", [answer.get("reason", "")])
    lines += _rows("rule", [answer.get("rule", "")])
    if stands := answer.get("group_stands", ""):
        lines += _rows("group", [f"{answer.get('group', '')}: {stands}"])
    lines += _rows("ahead", _ahead(answer))
    lines += _rows("start", [_start(answer)])
    lines += _rows("sooner", _remedies(answer))
    return lines


def _rows(label: str, rows: Iterable[str]) -> Iterator[str]:
    for row in rows:
        if row:
            yield f"  {label:{_LABEL_WIDTH}}{row}"
            label = ""


def _blocker(blocker: BlockerShape) -> str:
    resource, needed, free = blocker["resource"], blocker["needed"], blocker["free"]
    if resource.startswith("quota "):
        words = f"your quota of {resource.removeprefix('quota ')}: {needed} needed, {free} left."
    elif resource.startswith("limit "):
        words = f"{resource}: {needed} needed, {free} left."
    else:
        words = f"{resource}: {needed} needed, {free} free."
    holders = [_holder(holder) for holder in blocker["holders"][:_HOLDERS_SHOWN]]
    more = len(blocker["holders"]) - len(holders)
    if more > 0:
        holders.append(f"{more} more hold{'s' if more == 1 else ''} the rest")
    return f"{words} {', '.join(holders)}." if holders else words


def _holder(holder: HolderShape) -> str:
    if not holder["account"]:  # several jobs that may not be named
        return f"{holder['job']} hold {holder['amount']}"
    return f"{holder['job']} ({holder['account']}) holds {holder['amount']}"


def _ahead(answer: ExplainShape) -> list[str]:
    ahead = answer.get("ahead", [])[:_AHEAD_SHOWN]
    more = answer.get("position", 1) - 1 - len(ahead)
    return [*ahead, f"and {more} more"] if ahead and more > 0 else ahead


def _start(answer: ExplainShape) -> str:
    earliest_s, latest_s = answer.get("start_earliest_s"), answer.get("start_latest_s")
    basis = answer.get("start_basis", "")
    if earliest_s is None:
        return basis if basis.startswith("never") else f"unknown: {basis}"
    first = "any moment" if earliest_s < 1 else f"in {format_duration(earliest_s, up=True)}"
    if latest_s is None:
        words = f"{first} or later"
    else:
        last = format_duration(latest_s, up=True)
        is_span = last != format_duration(earliest_s, up=True)
        words = f"between {first.removeprefix('in ')} and {last}" if is_span else first
        words = words.replace("between any moment", "between now")
    return f"{words} ({basis})" if basis else words


def _remedies(answer: ExplainShape) -> list[str]:
    remedies = answer.get("remedies", [])
    width = max((len(remedy["change"]) for remedy in remedies), default=0) + 6
    return [f"{remedy['change']:{width}}{remedy['effect']}" for remedy in remedies]
