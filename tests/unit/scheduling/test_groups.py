"""Guarantees, limits, weights and borrowing: named cases on small clusters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from paddlecloud.scheduling.explain import explain
from paddlecloud.scheduling.plan import Plan, never_fits_limit, never_fits_pool, plan
from paddlecloud.scheduling.snapshot import Group, JobView, Snapshot
from paddlecloud.testing.builders import (
    make_group,
    make_job,
    make_node,
    make_quota,
    make_snapshot,
    make_spec,
)

NLP = make_group("nlp", guarantee=make_quota(cpu="4"))
CV = make_group("cv")


def sizes(decided: Plan) -> dict[str, int]:
    return {job_id: grant.trainers for job_id, grant in decided.grants.items()}


def stopping(view: JobView) -> JobView:
    """As an engine shows a job that was preempted and has not ended yet."""
    return replace(view, granted=0, used=view.spec.resources_at(view.granted))


# --- the guarantee ----------------------------------------------------------------------------


def test_a_job_within_its_guarantee_goes_before_an_older_one_of_a_higher_priority() -> None:
    own = make_job("own", group="nlp", cpu="4", age_s=1)
    other = make_job("other", group="cv", cpu="8", age_s=100, priority="very_high")
    snapshot = make_snapshot(other, own, groups=[NLP, CV])
    assert sizes(plan(snapshot)) == {"own": 1, "other": 0}


def test_an_ordinary_job_leaves_alone_what_another_group_is_guaranteed() -> None:
    job = make_job("big", group="cv", trainers=5)
    decided = plan(make_snapshot(job, make_job("runs", group="cv", granted=1), groups=[NLP, CV]))
    assert sizes(decided)["big"] == 0
    assert decided.grants["big"].reason == (
        "can never start: needs 5 cpu: its group is guaranteed 0, no group is guaranteed 4, "
        "and the rest is only for jobs that may be preempted (--may-borrow)"
    )


def test_an_ordinary_job_uses_what_nobody_is_guaranteed() -> None:
    first = make_job("first", group="cv", trainers=3, age_s=9)
    second = make_job("second", group="cv", trainers=2, age_s=8)
    decided = plan(make_snapshot(first, second, groups=[NLP, CV]))
    assert sizes(decided) == {"first": 3, "second": 0}
    assert decided.grants["second"].reason == (
        "waits for 2 cpu that no group is guaranteed: 1 left; kept for group nlp (4)"
    )


def test_a_group_goes_on_in_the_pool_beyond_its_guarantee() -> None:
    job = make_job("big", group="nlp", trainers=8)
    assert sizes(plan(make_snapshot(job, groups=[NLP, CV]))) == {"big": 8}


def test_small_jobs_do_not_pass_the_first_that_waits_for_the_pool() -> None:
    runs = make_job("runs", group="cv", trainers=3, granted=3)
    first = make_job("first", group="cv", trainers=4, age_s=9)
    small = make_job("small", group="cv", age_s=8)
    late = make_job("late", group="rec", priority="low")
    decided = plan(make_snapshot(runs, first, small, late, groups=[NLP, CV]))
    assert sizes(decided) == {"runs": 3, "first": 0, "small": 0, "late": 0}
    assert decided.grants["small"].reason == "waits behind first (submitted earlier)"
    assert decided.grants["late"].reason == "waits behind first (priority normal)"
    soft = make_job("soft", group="cv", may_borrow=True, age_s=7)
    assert sizes(plan(make_snapshot(runs, first, soft, groups=[NLP, CV])))["soft"] == 1


def test_what_a_guarantee_does_not_name_comes_from_the_pool() -> None:
    cards = make_group("cards", guarantee=make_quota(gpu=2))
    holds = make_job("holds", group="cv", gpu=2, may_borrow=True, granted=1)
    own = make_job("own", group="cards", gpu=2, cpu="4")
    decided = plan(make_snapshot(holds, own, gpu=2, groups=[cards, CV]))
    assert decided.preempted == {"holds": "own"}
    plain = make_job("plain", group="cards", cpu="8")
    decided = plan(make_snapshot(holds, plain, gpu=2, groups=[cards, CV]))
    assert decided.preempted == {}, "a cpu job has no part in a guarantee of cards"


# --- borrowing --------------------------------------------------------------------------------


def test_a_job_that_may_be_preempted_borrows_what_is_idle() -> None:
    job = make_job("big", group="cv", trainers=8, may_borrow=True)
    assert sizes(plan(make_snapshot(job, groups=[NLP, CV]))) == {"big": 8}


def test_borrows_no_more_than_the_limit_of_its_group() -> None:
    small = make_group("cv", limit=make_quota(cpu="6"))
    job = make_job("big", group="cv", least=1, most=8, may_borrow=True)
    assert sizes(plan(make_snapshot(job, groups=[NLP, small]))) == {"big": 6}


def test_a_guarantee_is_taken_back_from_borrowers() -> None:
    borrower = make_job("borrower", group="cv", trainers=8, granted=8, may_borrow=True)
    own = make_job("own", account="bob", group="nlp", cpu="4")
    first = plan(make_snapshot(borrower, own, groups=[NLP, CV]))
    assert sizes(first) == {"borrower": 0, "own": 0}
    assert first.preempted == {"borrower": "own"}
    assert first.grants["borrower"].reason == (
        "preempted: group nlp takes its guarantee back for own (bob)"
    )
    assert first.grants["own"].reason == (
        "within the guarantee of group nlp: starts when borrower has stopped"
    )
    second = plan(make_snapshot(stopping(borrower), own, groups=[NLP, CV]))
    assert sizes(second) == {"borrower": 0, "own": 0}, "nobody starts before the room is there"
    assert second.preempted == {}
    assert second.grants["borrower"].reason == "was preempted; its replicas are stopping"
    assert second.order == ("own", "borrower")
    third = plan(make_snapshot(replace(borrower, granted=0), own, groups=[NLP, CV]))
    assert sizes(third) == {"borrower": 0, "own": 1}


def test_what_borrowers_leave_is_kept_for_the_owner() -> None:
    borrower = make_job("borrower", group="cv", trainers=6, granted=6, may_borrow=True)
    own = make_job("own", group="nlp", cpu="4")
    quick = make_job("quick", group="cv", trainers=2, may_borrow=True, age_s=999)
    assert sizes(plan(make_snapshot(borrower, own, quick, groups=[NLP, CV])))["quick"] == 2
    # Four are due to the owner when four have left; two more are free for anybody.
    four = make_job("four", group="cv", trainers=4, granted=4, may_borrow=True)
    firm = make_job("firm", group="cv", trainers=4, granted=4)
    decided = plan(make_snapshot(four, firm, own, quick, groups=[NLP, CV]))
    assert decided.preempted == {"four": "own"}
    assert sizes(decided)["quick"] == 0


def test_a_job_that_may_not_be_preempted_never_is() -> None:
    firm = make_job("firm", group="cv", trainers=8, granted=8)
    own = make_job("own", group="nlp", cpu="4")
    decided = plan(make_snapshot(firm, own, groups=[NLP, CV]))
    assert sizes(decided) == {"firm": 8, "own": 0}
    assert decided.preempted == {}


def test_nobody_is_stopped_in_vain() -> None:
    firm = make_job("firm", group="cv", trainers=5, granted=5)
    soft = make_job("soft", group="cv", trainers=3, granted=3, may_borrow=True)
    own = make_job("own", group="nlp", cpu="4")
    assert plan(make_snapshot(firm, soft, own, groups=[NLP, CV])).preempted == {}


def test_a_job_beyond_its_guarantee_stops_nobody() -> None:
    soft = make_job("soft", group="cv", trainers=8, granted=8, may_borrow=True)
    beyond = make_job("beyond", group="nlp", trainers=5)
    assert plan(make_snapshot(soft, beyond, groups=[NLP, CV])).preempted == {}


def test_as_few_as_will_do_stop_and_those_that_lose_least() -> None:
    old = make_job("old", group="cv", trainers=4, granted=4, ran_s=900, may_borrow=True)
    new = make_job("new", group="cv", trainers=4, granted=4, ran_s=9, may_borrow=True)
    own = make_job("own", group="nlp", cpu="4")
    assert plan(make_snapshot(old, new, own, groups=[NLP, CV])).preempted == {"new": "own"}


def test_the_group_that_borrows_most_for_its_weight_gives_back_first() -> None:
    heavy = make_group("heavy", weight=4)
    one = make_job("one", group="heavy", trainers=4, granted=4, ran_s=1, may_borrow=True)
    two = make_job("two", group="cv", trainers=4, granted=4, ran_s=900, may_borrow=True)
    own = make_job("own", group="nlp", cpu="4")
    assert plan(make_snapshot(one, two, own, groups=[NLP, CV, heavy])).preempted == {"two": "own"}


def test_a_borrower_within_its_own_guarantee_is_left_alone() -> None:
    cv = make_group("cv", guarantee=make_quota(cpu="4"))
    soft = make_job("soft", group="cv", trainers=4, granted=4, may_borrow=True)
    more = make_job("more", group="cv", trainers=4, granted=4, ran_s=1, may_borrow=True)
    own = make_job("own", group="nlp", cpu="4")
    assert plan(make_snapshot(soft, more, own, groups=[NLP, cv])).preempted == {"more": "own"}


def test_an_ordinary_job_comes_before_its_own_groups_borrowers() -> None:
    soft = make_job("soft", group="nlp", trainers=4, granted=4, may_borrow=True)
    other = make_job("other", group="cv", trainers=4, granted=4)
    own = make_job("own", group="nlp", cpu="4")
    assert plan(make_snapshot(soft, other, own, groups=[NLP, CV])).preempted == {"soft": "own"}


def test_two_groups_take_back_at_the_same_time() -> None:
    cv = make_group("cv", guarantee=make_quota(cpu="4"))
    softs = [
        make_job(f"soft-{index}", group="rec", trainers=4, granted=4, may_borrow=True)
        for index in range(2)
    ]
    owners = [make_job("a", group="nlp", cpu="4"), make_job("b", group="cv", trainers=4)]
    decided = plan(make_snapshot(*softs, *owners, groups=[NLP, cv]))
    assert sorted(decided.preempted) == ["soft-0", "soft-1"]
    assert sorted(decided.preempted.values()) == ["a", "b"]


def test_a_gang_is_freed_whole_on_the_nodes_it_needs() -> None:
    nodes = [make_node("4", name="a"), make_node("4", name="b")]
    soft = make_job("soft", group="cv", cpu="3", granted=1, placed={"a": 1}, may_borrow=True)
    firm = make_job("firm", group="cv", cpu="4", granted=1, placed={"b": 1})
    own = make_job("own", group="nlp", trainers=2, cpu="2")
    decided = plan(make_snapshot(soft, firm, own, nodes=nodes, groups=[NLP, CV]))
    assert decided.preempted == {"soft": "own"}
    assert decided.victims == {"soft": ("a",)}


# --- the limit and the quota ------------------------------------------------------------------


def test_a_group_never_holds_more_than_its_limit() -> None:
    limited = make_group("cv", limit=make_quota(cpu="5", replicas=3))
    jobs = [make_job(f"job-{i}", group="cv", account=f"u{i}", cpu="2", age_s=9 - i) for i in (1, 2)]
    third = make_job("third", group="cv", account="u3", cpu="2", age_s=1)
    decided = plan(make_snapshot(*jobs, third, groups=[limited]))
    assert sizes(decided) == {"job-1": 1, "job-2": 1, "third": 0}
    assert decided.grants["third"].reason == (
        "needs 2 cpu: group cv has 1 left of its limit of 5 cpu"
    )


def test_the_quota_of_the_account_holds_besides() -> None:
    jobs = [make_job(f"job-{i}", group="nlp", cpu="2", age_s=9 - i) for i in (1, 2)]
    quotas = {"alice": make_quota(cpu="3")}
    assert sizes(plan(make_snapshot(*jobs, quotas=quotas, groups=[NLP]))) == {
        "job-1": 1,
        "job-2": 0,
    }


def test_a_group_over_its_limit_delays_nobody_else() -> None:
    limited = make_group("cv", limit=make_quota(cpu="2"))
    runs = make_job("runs", group="cv", cpu="2", granted=1)
    waits = make_job("waits", group="cv", cpu="2", age_s=99)
    other = make_job("other", group="rec", trainers=6)
    assert sizes(plan(make_snapshot(runs, waits, other, groups=[limited])))["other"] == 6


def test_says_at_submit_what_the_limit_could_never_hold() -> None:
    limited = make_group("cv", limit=make_quota(gpu=2))
    faults = never_fits_limit(make_spec(gpu=4, group="cv"), limited)
    assert [fault.problem for fault in faults] == [
        "1 trainer together need 4 gpu, the limit of group cv is 2"
    ]
    assert never_fits_limit(make_spec(gpu=2, group="cv"), limited) == []


def test_says_at_submit_that_everything_is_guaranteed_to_others() -> None:
    groups = {"nlp": make_group("nlp", guarantee=make_quota(cpu="8"))}
    nodes = [make_node("8")]
    assert never_fits_pool(make_spec(group="cv"), groups, nodes)
    assert never_fits_pool(make_spec(group="cv", may_borrow=True), groups, nodes) == []
    assert never_fits_pool(make_spec(group="nlp", trainers=8), groups, nodes) == []


# --- taking turns -----------------------------------------------------------------------------


def _contest(weights: dict[str, int]) -> Snapshot:
    jobs = [
        make_job(f"{name}-{index}", group=name, age_s=100 - index)
        for name in weights
        for index in range(9)
    ]
    groups = [make_group(name, weight=weight) for name, weight in weights.items()]
    return make_snapshot(*jobs, cpu="9", groups=groups)


@pytest.mark.parametrize(
    ("weights", "won"),
    [({"a": 1, "b": 2}, {"a": 3, "b": 6}), ({"a": 1, "b": 1, "c": 1}, {"a": 3, "b": 3, "c": 3})],
)
def test_the_pool_is_shared_by_weight(weights: dict[str, int], won: dict[str, int]) -> None:
    decided = plan(_contest(weights))
    started = [job_id.split("-")[0] for job_id, size in sizes(decided).items() if size]
    assert {name: started.count(name) for name in weights} == won


def test_a_group_that_holds_less_goes_before_an_older_job() -> None:
    runs = make_job("runs", group="a", trainers=4, granted=4)
    old = make_job("old", group="a", trainers=4, age_s=99)
    young = make_job("young", group="b", trainers=4, age_s=1)
    decided = plan(make_snapshot(runs, old, young, groups=[make_group("a")]))
    assert sizes(decided) == {"runs": 4, "old": 0, "young": 4}


def test_priority_comes_before_the_share() -> None:
    runs = make_job("runs", group="a", trainers=4, granted=4)
    urgent = make_job("urgent", group="a", trainers=4, priority="high")
    young = make_job("young", group="b", trainers=4)
    decided = plan(make_snapshot(runs, urgent, young, groups=[make_group("a")]))
    assert sizes(decided) == {"runs": 4, "urgent": 4, "young": 0}


def test_a_groups_own_small_jobs_do_not_pass_its_first_for_ever() -> None:
    """`head` of another group has the reservation of all; `big` has one that binds its group."""
    runs = [
        make_job("long", group="a", trainers=4, granted=4, ran_s=500),
        make_job("short", group="a", trainers=2, granted=2, ran_s=5),
    ]
    head = make_job("head", group="b", trainers=3, age_s=50)
    big = make_job("big", group="a", trainers=5, age_s=40)
    small = make_job("small", group="a", trainers=1, age_s=30)
    decided = plan(make_snapshot(*runs, head, big, small, groups=[make_group("a")]))
    assert decided.order[:2] == ("head", "big")
    assert sizes(decided)["small"] == 1
    bigger = make_job("big", group="a", trainers=8, age_s=40)
    decided = plan(make_snapshot(*runs, head, bigger, small, groups=[make_group("a")]))
    assert sizes(decided)["small"] == 0


# --- explain ----------------------------------------------------------------------------------


def _told(snapshot: Snapshot, job_id: str) -> tuple[str, str, list[tuple[str, str]]]:
    found = explain(snapshot, job_id)
    assert found is not None
    offers = [(remedy.change, remedy.effect) for remedy in found.remedies]
    return found.rule, found.group_stands, offers


def test_explains_that_the_rest_is_guaranteed_and_offers_to_borrow() -> None:
    first = make_job("first", group="cv", trainers=3, granted=3)
    job = make_job("job", group="cv", trainers=2)
    rule, stands, offers = _told(make_snapshot(first, job, groups=[NLP, CV]), "job")
    assert rule == (
        "what other groups are guaranteed is kept for them; only jobs that may be preempted "
        "borrow it"
    )
    assert stands == ""
    assert offers[0] == ("--may-borrow", "starts now, and may be preempted")
    assert ("--parallelism 1", "starts now") in offers


def test_explains_the_limit_with_the_number_that_would_do() -> None:
    limited = make_group("cv", limit=make_quota(cpu="4"), weight=2)
    runs = make_job("runs", account="bob", group="cv", trainers=3, granted=3)
    job = make_job("job", group="cv", trainers=2)
    snapshot = make_snapshot(runs, job, groups=[limited])
    rule, stands, offers = _told(snapshot, "job")
    assert rule == "a group's running jobs stay within its limit"
    assert stands == "3 cpu held, at most 4; weight 2"
    assert ("paddlecloud group quota cv --limit-cpu 5", "starts now") in offers
    found = explain(snapshot, "job")
    assert found is not None
    assert found.blockers[0].resource == "limit of group cv: cpu"
    assert [holder.job for holder in found.blockers[0].holders] == ["runs"]


def test_explains_who_is_ahead_by_its_guarantee() -> None:
    firm = make_job("firm", group="cv", trainers=6, granted=6)
    own = make_job("own", account="bob", group="nlp", trainers=4)
    job = make_job("job", group="cv", trainers=3, may_borrow=True, age_s=500)
    found = explain(make_snapshot(firm, own, job, groups=[NLP, CV]), "job")
    assert found is not None
    assert found.ahead == ("own (bob, guaranteed to group nlp, needs 4 cpu)",)


def test_groups_that_say_nothing_change_nothing_for_one_group() -> None:
    jobs = [make_job(f"j{i}", trainers=3, group="a", age_s=9 - i) for i in range(4)]
    with_group = plan(make_snapshot(*jobs, groups=[Group("a")]))
    without = plan(make_snapshot(*jobs))
    assert sizes(with_group) == sizes(without)
    assert with_group.order == without.order
