from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.controller import planning
from paddlecloud.controller.plans import Create
from tests.unit.controller.pretended import Namespace, role, running

# --- strangers and faults ----------------------------------------------------------------------


def test_never_adopts_the_pods_of_an_earlier_job_of_the_name():
    old = running(worker=role(2))
    new = Namespace(uid="u-2", worker=role(2))
    new.stored = {key: body for key, body in old.stored.items() if key[0] == "pods"}
    new.settle()
    assert "exists and is not of this job" in new.status["reason"]
    assert all(pod["metadata"]["ownerReferences"][0]["uid"] == "u-1" for pod in new.pods().values())
    new.stored.clear()
    new.settle()
    assert len(new.pods()) == 2


def test_leaves_alone_what_is_being_deleted():
    world = running(worker=role(2))
    world.body["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    world.stored.clear()
    assert world.look() == planning.Plan()


def test_makes_a_condition_of_a_spec_that_can_never_work():
    world = Namespace(worker=role(2, requests=3, limits=2))
    world.settle()
    assert world.pods() == {}
    valid = next(one for one in world.status["conditions"] if one["type"] == "Valid")
    assert (valid["status"], valid["reason"]) == ("False", "InvalidSpec")
    assert "spec.worker.requests" in valid["message"]
    world.body["spec"]["worker"] = role(2)
    world.settle()
    assert len(world.pods()) == 2
    assert world.status["conditions"][0]["status"] == "True"


def test_lets_a_running_job_run_when_its_spec_becomes_wrong():
    world = running(worker=role(2))
    world.body["spec"]["worker"] = role(0)
    world.settle()
    assert (len(world.pods()), world.status["phase"]) == (2, "Running")


# --- killed at any moment ------------------------------------------------------------------------

moves = st.lists(
    st.sampled_from(["look", "half", "run", "leave", "fail", "vanish"]), min_size=1, max_size=40
)


@given(moves, st.integers(1, 4), st.booleans(), st.randoms(use_true_random=False))
def test_converges_whenever_it_is_killed(order, workers, with_servers, random):
    spec = {"worker": role(workers), "backoffLimit": 1000}
    if with_servers:
        spec["ps"] = role(2)
    world = Namespace(**spec)
    wanted = {f"job-worker-{i}" for i in range(workers)}
    wanted |= {"job-ps-0", "job-ps-1"} if with_servers else set()
    for move in order:
        alive = [name for name in sorted(world.pods()) if world.is_alive(name)]
        if move == "look":
            world.step()
        elif move == "half":  # killed between two writes, or before the status is written
            actions = world.look().actions
            for action in actions[: random.randint(0, len(actions))]:
                world.apply(action)
        elif move == "run":
            world.run()
        elif move == "leave":
            world.leave()
        elif move == "fail" and alive:
            world.run()
            world.end(random.choice(alive), 1)
        elif move == "vanish" and alive:
            del world.stored["pods", random.choice(alive)]
        assert set(world.pods()) <= wanted
    for _ in range(8):
        world.settle()
        world.run()
    assert world.status["phase"] == "Running"
    assert set(world.pods()) == wanted
    assert world.most_pods <= len(wanted)
    rows = [(row["role"], row["index"], row["attempt"]) for row in world.status.get("failures", ())]
    assert len(rows) == len(set(rows))


def test_creates_with_the_owner_in_the_first_write():
    creations = [one for one in Namespace(worker=role(1)).look().actions if isinstance(one, Create)]
    assert creations[0].body["metadata"]["ownerReferences"][0]["uid"] == "u-1"
