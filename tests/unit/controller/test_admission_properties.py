"""Whatever users, kubelets and operators do in whatever order: the promises of admission hold."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.unit.controller.test_admission import World

CPU = 8
SIZES = st.integers(1, 5)


class Cluster(RuleBasedStateMachine):
    """One node of eight cores; jobs come, grow, pause, end; operators die and follow."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(cpu=CPU)
        self.count = 0

    def _live(self) -> list[str]:
        jobs = self.world.jobs.items()
        return [name for name, job in jobs if job.get("status", {}).get("phase") != "Completed"]

    @rule(workers=SIZES, cpu=st.integers(1, 3), priority=st.sampled_from(["low", "normal", "high"]))
    def submit(self, workers: int, cpu: int, priority: str) -> None:
        self.count += 1
        self.world.submit(f"job{self.count}", workers, str(cpu), priority=priority)

    @precondition(lambda self: self._live())
    @rule(data=st.data())
    def reconcile(self, data: st.DataObject) -> None:
        """Some look may come before a turn, some after."""
        name = data.draw(st.sampled_from(self._live()))
        if data.draw(st.booleans()):
            self.world.reconcile(name)
        else:
            self.world.ask(name)

    @precondition(lambda self: self._live())
    @rule(data=st.data(), workers=SIZES)
    def scale(self, data: st.DataObject, workers: int) -> None:
        self.world.change(data.draw(st.sampled_from(self._live())), workers=workers)

    @precondition(lambda self: self._live())
    @rule(data=st.data(), suspend=st.booleans())
    def suspend(self, data: st.DataObject, suspend: bool) -> None:
        self.world.change(data.draw(st.sampled_from(self._live())), suspend=suspend)

    @precondition(lambda self: self.world.pods)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        """A job that runs ends, as its operator would notice."""
        running = {pod.rsplit("-", 1)[0] for pod in self.world.pods} & set(self._live())
        if running:
            self.world.end(data.draw(st.sampled_from(sorted(running))))

    @rule()
    def turn(self) -> None:
        self.world.admission.turn()

    @rule(passed_s=st.sampled_from([0.5, 3.0, 100.0]))
    def pass_time(self, passed_s: float) -> None:
        self.world.now += passed_s

    @rule()
    def kill_the_operator(self) -> None:
        self.world.start()

    @invariant()
    def never_holds_more_than_there_is(self) -> None:
        held = 0
        for name in self._live():
            allocation = self.world.jobs[name].get("status", {}).get("allocation", {})
            pods = sum(pod.rsplit("-", 1)[0] == name for pod in self.world.pods)
            worker = self.world.jobs[name]["spec"]["worker"]
            asked = worker["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
            held += max(allocation.get("workers", 0), pods) * int(asked)
        assert held <= CPU

    def teardown(self) -> None:
        """In the end everybody who can has run: nobody starves."""
        for name in self._live():
            self.world.change(name, suspend=False)
        for _ in range(3 * len(self.world.jobs) + 3):
            self.world.now += 10
            for name in self._live():
                self.world.reconcile(name)
            self.world.admission.turn()
            for name in self._live():
                if self.world.reconcile(name).workers:
                    self.world.end(name)
                    break
        for name in self._live():
            assert self.world.reconcile(name).cause == "TooBig", name


Cluster.TestCase.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)
TestCluster = Cluster.TestCase
