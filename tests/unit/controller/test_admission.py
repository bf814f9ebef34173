"""Who is granted what and when, by the operator's memory and its turns; no thread, no cluster."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from paddlecloud.controller import admission as admitting
from paddlecloud.controller.admission import GROUP_LATE_S, Admission
from paddlecloud.controller.allotments import Allotted
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes.allocations import Allocation, read, write
from paddlecloud.engines.kubernetes.inventory import NodeSeen, PodSeen
from paddlecloud.engines.kubernetes.shares import Shares, read_group, read_namespace
from paddlecloud.kube.kinds import PADDLE_JOB, Kind

START = 1_800_000_000.0


class World:
    """A cluster of one node in memory, and the operator's admission to it."""

    def __init__(self, cpu: int = 8) -> None:
        self.now = START
        self.jobs: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}
        self.node = NodeSeen("n0", Resources(cpu * 1000, 0, 0), {})
        self.others: list[PodSeen] = []
        self.found = Shares()
        self.woken: list[str] = []
        self.versions = itertools.count(1)
        self.admission = self.start()

    def start(self) -> Admission:
        """A new operator."""
        self.admission = Admission(
            self,  # type: ignore[arg-type]
            lambda: [(PADDLE_JOB, body) for body in self.jobs.values()],
            lambda: self.pods.values(),
            self.wake,
            lambda: self.now,
        )
        self.admission.turn()
        return self.admission

    def wake(self, kind: Kind, body: Mapping[str, Any]) -> None:
        self.woken.append(body["metadata"]["name"])

    # --- the inventory ---------------------------------------------------------------------------

    def nodes(self) -> list[NodeSeen]:
        return [self.node]

    def strangers(self) -> list[PodSeen]:
        return self.others

    def shares(self) -> Shares:
        return self.found

    # --- what users and the operator do ----------------------------------------------------------

    def submit(self, name: str, workers: int = 1, cpu: str = "1", **more: Any) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
        template = {"spec": {"containers": [container]}}
        self.now += 1
        self.jobs[name] = {
            "metadata": {
                "name": name,
                "namespace": more.pop("namespace", "ns"),
                "uid": f"u-{name}",
                "generation": 1,
                "creationTimestamp": _written(self.now),
            },
            "spec": {"worker": {"replicas": workers, "template": template}, **more},
        }

    def change(self, name: str, **spec: Any) -> None:
        body = self.jobs[name]
        workers = spec.pop("workers", None)
        body["spec"] |= spec
        if workers is not None:
            body["spec"]["worker"]["replicas"] = workers
        body["metadata"]["generation"] += 1

    def ask(self, name: str) -> Allotted | None:
        """As a reconcile does, which also writes what it hears."""
        body = self.jobs[name]
        mine = [pod for pod in self.pods.values() if _owner(pod) == f"u-{name}"]
        found = self.admission.answer(PADDLE_JOB, body, mine)
        if found is not None:
            status = body.setdefault("status", {})
            status["allocation"] = write(found.allocation)
        return found

    def reconcile(self, name: str) -> Allocation:
        """Until it is decided; with the pods that follow from it."""
        found = self.ask(name)
        if found is None:
            self.admission.turn()
            found = self.ask(name)
        assert found is not None
        size = found.allocation.workers
        have = [key for key, pod in self.pods.items() if _owner(pod) == f"u-{name}"]
        for index in range(size):
            if f"{name}-{index}" not in self.pods:
                self.pods[f"{name}-{index}"] = self._pod(name, index)
        for key in have[size:]:
            del self.pods[key]
        return found.allocation

    def _pod(self, name: str, index: int) -> dict[str, Any]:
        return {
            "metadata": {
                "name": f"{name}-{index}",
                "namespace": "ns",
                "resourceVersion": str(next(self.versions)),
                "creationTimestamp": _written(self.now),
                "labels": {
                    "paddlepaddle.org/job": name,
                    "paddle-res-type": "worker",
                    "paddlepaddle.org/index": str(index),
                },
                "ownerReferences": [{"uid": f"u-{name}", "controller": True}],
            },
            "spec": {"nodeName": "n0", **self.jobs[name]["spec"]["worker"]["template"]["spec"]},
            "status": {"phase": "Running"},
        }

    def end(self, name: str) -> None:
        self.jobs[name]["status"]["phase"] = "Completed"
        self.pods = {key: pod for key, pod in self.pods.items() if _owner(pod) != f"u-{name}"}
        self.admission.forget(f"u-{name}")

    def groups(self, **specs: Any) -> None:
        seen = [
            read_group({"metadata": {"name": name}, "spec": spec}) for name, spec in specs.items()
        ]
        self.found = Shares({one.group.name: one for one in seen}, self.found.namespaces)


def _written(at: float) -> str:
    import datetime

    return datetime.datetime.fromtimestamp(at, datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _owner(pod: dict[str, Any]) -> str:
    owner: str = pod["metadata"]["ownerReferences"][0]["uid"]
    return owner


def test_lets_through_what_fits_without_a_plan():
    world = World()
    turns = world.admission.turns
    for name in ("a", "b"):
        world.submit(name, 4)
        found = world.ask(name)
        assert found is not None
        assert found.allocation == Allocation(4, 1)
    assert world.admission.turns == turns


def test_does_not_give_the_same_room_twice():
    """The second is asked about before the first has a pod."""
    world = World(cpu=4)
    world.submit("a", 3)
    world.submit("b", 3)
    assert world.ask("a") is not None
    assert world.ask("b") is None
    world.admission.turn()
    assert world.reconcile("b").cause == "NoRoom"


def test_says_why_a_job_waits_and_wakes_it():
    world = World(cpu=4)
    world.submit("a", 3)
    world.submit("b", 3)
    world.reconcile("a")
    waits = world.reconcile("b")
    assert world.woken[-1] == "b"
    assert (waits.workers, waits.cause) == (0, "NoRoom")
    assert waits.reason == "waits for 3 cpu: 1 free; a (ns) holds 3"
    world.end("a")
    world.admission.turn()
    assert world.reconcile("b").workers == 3


def test_lets_nobody_pass_who_would_delay_the_first():
    world = World(cpu=4)
    world.submit("runs", 2)
    world.submit("big", 4)
    for name in ("runs", "big"):
        world.reconcile(name)
    world.submit("small", 1)
    found = world.reconcile("small")
    assert (found.workers, found.cause) == (0, "Behind")


def test_lets_others_pass_one_that_never_fits():
    world = World(cpu=4)
    world.submit("huge", 99)
    assert world.reconcile("huge").cause == "TooBig"
    turns = world.admission.turns
    world.submit("small", 1)
    found = world.ask("small")
    assert found is not None
    assert found.allocation.workers == 1
    assert world.admission.turns == turns


def test_goes_on_with_what_the_last_operator_had_granted():
    world = World(cpu=4)
    for name in ("a", "b", "c"):
        world.submit(name, 3)
        world.reconcile(name)
    before = {name: read(body["status"]) for name, body in world.jobs.items()}
    world.start()
    after = {name: world.reconcile(name) for name in world.jobs}
    assert after == before
    assert [after[name].workers for name in "abc"] == [3, 0, 0]


def test_takes_over_pods_whose_grant_was_never_written():
    """Its operator died after it had made a pod and before it could write the status."""
    world = World(cpu=4)
    world.submit("a", 3)
    world.submit("b", 3, priority="high")
    world.pods["a-0"] = world._pod("a", 0)
    world.start()
    assert world.reconcile("a").workers == 3
    assert world.reconcile("b").workers == 0


def test_believes_what_another_operator_has_written_meanwhile():
    """It had lost the lead and has it again."""
    world = World(cpu=4)
    for name in ("a", "b"):
        world.submit(name, 3)
        world.reconcile(name)
    world.end("a")
    world.jobs["b"]["status"]["allocation"] = write(Allocation(3, 1))
    world.pods["b-0"] = world._pod("b", 0)
    world.submit("c", 3, priority="high")
    world.admission.begin_anew()
    assert world.reconcile("b").workers == 3
    assert world.reconcile("c").workers == 0


def test_takes_less_at_once_and_applies_for_more():
    world = World(cpu=6)
    world.submit("a", 4)
    world.submit("b", 2)
    for name in ("a", "b"):
        world.reconcile(name)
    world.change("b", workers=3)
    grows = world.reconcile("b")
    assert grows.workers == 2
    world.admission.turn()
    assert world.reconcile("b").reason.startswith("has 2 of 3 workers: waits for 1 cpu: 0 free")
    world.change("a", workers=3)
    assert world.reconcile("a").workers == 3
    world.admission.turn()
    grown = world.reconcile("b")
    assert (grown.workers, grown.reason) == (3, "")


def test_gives_back_what_a_suspended_job_had():
    world = World(cpu=4)
    world.submit("a", 4)
    world.submit("b", 4)
    for name in ("a", "b"):
        world.reconcile(name)
    world.change("a", suspend=True)
    assert world.reconcile("a").cause == "Suspended"
    world.admission.turn()
    assert world.reconcile("b").workers == 4
    world.change("a", suspend=False)
    again = world.reconcile("a")
    assert (again.workers, again.cause) == (0, "NoRoom")


def test_stops_a_borrower_for_the_owner_and_lets_it_go_on():
    world = World(cpu=4)
    world.groups(
        owners={"guarantee": {"cpu": 4}, "namespaces": ["theirs"]}, others={"namespaces": ["ns"]}
    )
    world.submit("borrows", 4, schedulingPolicy={"mayBorrow": True})
    assert world.reconcile("borrows").workers == 4
    world.submit("owns", 2, namespace="theirs")
    waits = world.reconcile("owns")
    assert (waits.workers, waits.cause) == (0, "Reclaiming")
    assert "a job of another account" in waits.reason
    stopped = world.reconcile("borrows")
    assert (stopped.workers, stopped.cause, stopped.preemptions) == (0, "Preempted", 1)
    assert stopped.preempted_at == world.now
    assert "owns" not in stopped.reason
    world.admission.turn()
    assert world.reconcile("owns").workers == 2
    world.end("owns")
    world.admission.turn()
    again = world.reconcile("borrows")
    assert (again.workers, again.preemptions, again.revision) == (4, 1, 3)


def test_keeps_the_reason_of_a_preemption_until_it_is_told():
    world = World(cpu=4)
    world.groups(owners={"guarantee": {"cpu": 4}, "namespaces": ["theirs"]})
    world.submit("borrows", 4, schedulingPolicy={"mayBorrow": True})
    world.reconcile("borrows")
    world.submit("owns", 2, namespace="theirs")
    world.ask("owns")
    world.admission.turn()
    world.admission.turn()  # before anybody could tell
    found = world.ask("borrows")
    assert found is not None
    assert found.allocation.reason.startswith("preempted: group owners takes its guarantee back")
    world.admission.turn()
    found = world.ask("borrows")
    assert found is not None
    assert found.allocation.reason == "was preempted; its replicas are stopping"


def test_holds_a_namespace_to_its_quota():
    world = World()
    notes = {"paddlepaddle.org/quota": '{"cpu": 3}'}
    seen = read_namespace({"metadata": {"name": "ns", "annotations": notes}})
    world.found = Shares({}, {"ns": seen})
    world.submit("a", 2)
    world.submit("b", 2)
    assert world.reconcile("a").workers == 2
    assert world.reconcile("b").cause == "OverQuota"


def test_warns_of_a_group_that_is_not_open_to_the_namespace():
    world = World()
    world.groups(nlp={"namespaces": ["theirs"]})
    world.submit("a", schedulingPolicy={"group": "nlp"})
    world.now += GROUP_LATE_S
    world.reconcile("a")
    found = world.ask("a")
    assert found is not None
    assert str(found.warnings[0]) == (
        "spec.schedulingPolicy.group: nlp does not list this namespace; "
        "the namespace's own share is used"
    )


def test_lets_a_refused_job_stand_aside():
    world = World(cpu=4)
    world.submit("a", 4)
    world.submit("b", 4)
    world.reconcile("a")
    world.pods.clear()
    world.admission.give_back(PADDLE_JOB, world.jobs["a"], "exceeded quota")
    aside = world.reconcile("a")
    assert (aside.workers, aside.cause, aside.reason) == (0, "Refused", "exceeded quota")
    assert world.reconcile("b").workers == 4
    world.end("b")
    world.admission.turn()
    assert world.reconcile("a").workers == 0
    world.now += admitting.FIRST_BAR_S + 1
    world.admission.turn()
    assert world.reconcile("a").workers == 4


def test_lets_a_refused_job_stand_aside_longer_each_time():
    world = World(cpu=4)
    world.submit("a", 4)
    for times in range(3):
        assert world.reconcile("a").workers == 4
        world.pods.clear()
        world.admission.give_back(PADDLE_JOB, world.jobs["a"], "exceeded quota")
        world.now += admitting.FIRST_BAR_S * 2**times - 1
        world.admission.turn()
        assert world.reconcile("a").workers == 0
        world.now += 2
        world.admission.turn()


def test_takes_back_a_gang_that_finds_no_place_while_others_wait():
    """The planner does not see all that keeps pods off nodes."""
    world = World(cpu=4)
    world.submit("stuck", 3)
    world.reconcile("stuck")
    for pod in world.pods.values():
        pod["spec"].pop("nodeName")
    world.pods["stuck-0"]["spec"]["nodeName"] = "n0"
    world.now += admitting.UNPLACED_S + 5
    world.admission.turn()
    assert world.reconcile("stuck").workers == 3  # nobody waits: it may stay
    world.submit("waits", 3)
    world.reconcile("waits")
    world.admission.turn()
    aside = world.reconcile("stuck")
    assert (aside.workers, aside.cause) == (0, "Unplaced")
    assert aside.reason == "stuck-1 found no node for 60 s; others may go first"
    world.admission.turn()
    assert world.reconcile("waits").workers == 3


def test_leaves_a_job_alone_that_has_run():
    world = World(cpu=4)
    world.submit("runs", 3)
    world.reconcile("runs")
    world.jobs["runs"]["status"]["startTime"] = "2027-01-15T08:00:00Z"
    world.pods["runs-1"]["spec"].pop("nodeName")
    world.submit("waits", 3)
    world.reconcile("waits")
    world.now += admitting.UNPLACED_S + 5
    world.admission.turn()
    assert world.reconcile("runs").workers == 3


def test_renews_sentences_at_the_head_now_and_then():
    world = World(cpu=2)
    for name in ("a", "b", "c"):
        world.submit(name, 1)
        world.reconcile(name)
    before = world.reconcile("c")
    assert before.reason == "waits for 1 cpu: 0 free; a (ns) holds 1, b (ns) holds 1"
    world.end("b")
    world.submit("d", 1, priority="high")
    world.reconcile("d")
    assert world.reconcile("c").reason == before.reason  # told a moment ago
    world.now += admitting.RETELL_S
    world.admission.turn()
    assert world.reconcile("c").reason.endswith("a (ns) holds 1, d (ns) holds 1")


def test_plans_again_when_a_waiting_job_asks_for_less():
    world = World(cpu=2)
    world.submit("a", 3)
    assert world.reconcile("a").workers == 0
    world.admission._changed.clear()
    world.change("a", workers=2)
    world.ask("a")
    assert world.admission._changed.is_set()


def test_waits_for_pods_of_jobs_that_have_ended():
    world = World(cpu=4)
    world.submit("a", 4)
    world.reconcile("a")
    world.jobs["a"]["status"]["phase"] = "Completed"  # its pods are still there
    world.admission.forget("u-a")
    world.submit("b", 4)
    assert world.reconcile("b").cause == "NoRoom"
    world.pods.clear()
    world.admission.turn()
    assert world.reconcile("b").workers == 4


def test_waits_for_a_group_that_is_told_of_after_the_job():
    world = World(cpu=10)
    for name in ("a", "b"):
        world.submit(name, schedulingPolicy={"group": "g"})
        assert world.ask(name) is None
    world.admission.turn()
    assert world.ask("a") is None
    world.groups(g={"limit": {"replicas": 1}, "namespaces": ["ns"]})
    assert [world.reconcile(name).workers for name in ("a", "b")] == [1, 0]


def test_does_not_wait_long_for_a_group_that_there_is_not():
    world = World(cpu=10)
    world.submit("a", schedulingPolicy={"group": "g"})
    assert world.ask("a") is None
    world.now += GROUP_LATE_S
    found = world.reconcile("a")
    assert found.workers == 1
