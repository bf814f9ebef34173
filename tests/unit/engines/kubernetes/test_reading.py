"""What objects and pods say, in the words of the platform."""

from __future__ import annotations

import pytest

from paddlecloud.core.actions import Status
from paddlecloud.core.jobspec import JobSpec, Mode, RestartRule, Role, RoleSpec
from paddlecloud.core.observed import EndCause, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import Resources
from paddlecloud.engines.kubernetes import reading
from paddlecloud.engines.kubernetes.reading import Look, read
from paddlecloud.kube.causes import cause_of

SPEC = JobSpec(
    "job", Mode.COLLECTIVE, (RoleSpec(Role.TRAINER, 2, Resources(100, 2**20)),),
    restart=RestartRule(max_restarts=1),
)  # fmt: skip
NODES = (
    "0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu. preemption: 0/3"
)


def at(second: int) -> str:
    return f"2026-11-16T18:00:{second:02d}Z"


def a_pod(index: int = 0, attempt: int = 1, *, phase: str = "Running", **more) -> dict:
    metadata = {
        "name": f"job-worker-{index}",
        "namespace": "ns",
        "uid": f"p{index}{attempt}",
        "labels": {
            "paddle-res-type": "worker",
            "paddlepaddle.org/job": "job",
            "paddlepaddle.org/index": str(index),
            "paddlepaddle.org/attempt": str(attempt),
        },
        **more.pop("metadata", {}),
    }
    state = more.pop("state", {"running": {"startedAt": at(5)}} if phase == "Running" else {})
    container = {"name": "trainer", "image": "hub/x:1", "ready": True, "state": state}
    limits = {"limits": {"memory": "1Gi"}}
    return {
        "metadata": metadata,
        "spec": {"nodeName": "n1", "containers": [{"name": "trainer", "resources": limits}]},
        "status": {"phase": phase, "podIP": "10.0.0.1", "containerStatuses": [container], **more},
    }


def ended(code: int, **more) -> dict:
    return {"terminated": {"exitCode": code, "startedAt": at(5), "finishedAt": at(9), **more}}


def failed(index: int = 0, attempt: int = 1, code: int = 1, **more) -> dict:
    return a_pod(index, attempt, phase="Failed", state=ended(code, **more.pop("why", {})), **more)


def waiting(reason: str, message: str = "") -> dict:
    return a_pod(phase="Pending", state={"waiting": {"reason": reason, "message": message}})


def look(*pods: dict, before=(), notes=None, lost=(), **status) -> Look:
    metadata = {"name": "job", "uid": "u", "annotations": notes or {}}
    body = {"kind": "PaddleJob", "metadata": metadata, "status": status}
    return Look("job-1", 1, SPEC, body, pods, before, frozenset(lost))


def only(seen: reading.Seen):
    (found,) = seen.replicas
    return found


# --- how an attempt ended ----------------------------------------------------------------------


def test_gives_the_exit_code_and_the_programs_own_words():
    found = only(read(look(failed(code=7, why={"message": "no space\n"}))))
    assert (found.exit.cause, found.exit.code, found.exit.message) == ("exited", 7, "no space")
    assert (found.state, found.node) == (ReplicaState.ENDED, "n1")


def test_says_which_memory_limit_was_exceeded():
    found = only(read(look(failed(code=137, why={"reason": "OOMKilled"}))))
    assert found.exit.cause == EndCause.OUT_OF_MEMORY
    assert found.exit.message == (
        "killed for exceeding its memory limit of 1Gi; ask for more memory"
    )


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Evicted", "evicted from n1: The node was low on resource: memory."),
        ("NodeLost", "n1 went away: The node was low on resource: memory."),
    ],
)
def test_says_why_the_node_gave_it_up(reason, words):
    pod = failed(code=137, reason=reason, message="The node was low on resource: memory.")
    assert only(read(look(pod))).exit.message == words


def test_a_program_that_never_ran_is_a_start_failure():
    said = {"message": "cannot start: the working directory /pfs/x does not exist"}
    for pod in (
        failed(code=127, why=said),
        failed(code=128, why={"reason": "StartError", "message": "exec: sh: not found"}),
    ):
        found = only(read(look(pod)))
        assert found.exit.cause == EndCause.START_FAILED
        assert not found.exit.message.startswith("cannot start")


def test_an_attempt_that_was_told_to_go_has_not_failed():
    order = {"deletionTimestamp": at(30), "deletionGracePeriodSeconds": 25}
    assert only(read(look(failed(code=143, metadata=order)))).stopping
    late = {"deletionTimestamp": at(59), "deletionGracePeriodSeconds": 25}
    assert not only(read(look(failed(code=1, metadata=late)))).stopping  # it had ended before


def test_a_pod_that_a_finalizer_holds_was_still_told_to_go():
    """When its kubelet is done with it, the API server writes the time of its deletion anew."""
    order = {"deletionTimestamp": at(30), "deletionGracePeriodSeconds": 0, "finalizers": ["x"]}
    assert only(read(look(failed(code=3, metadata=order)))).stopping  # it ended at 9


# --- attempts whose pods are gone --------------------------------------------------------------


def test_what_has_ended_stays_as_it_was_told():
    first = read(look(failed(code=7, why={"message": "no space"}))).replicas
    gone = read(look(before=first)).replicas
    assert gone == first


def test_a_vanished_pod_was_lost_or_did_what_it_was_told():
    running = read(look(a_pod())).replicas
    assert only(read(look(before=running))).state == ReplicaState.LOST
    stopped = read(
        look(a_pod(metadata={"deletionTimestamp": at(40), "deletionGracePeriodSeconds": 1}))
    ).replicas
    found = only(read(look(before=stopped)))
    assert (found.state, found.stopping) == (ReplicaState.ENDED, True)


def test_knows_failures_of_before_it_looked_by_the_objects_own_record():
    row = {
        "role": "worker", "index": 1, "attempt": 1, "cause": "exited", "code": 9,
        "startedAt": at(1), "endedAt": at(2), "node": "n2",
    }  # fmt: skip
    seen = read(look(a_pod(0, 2), a_pod(1, 2), failures=[row], restarts=1, phase="Running"))
    assert [(one.key.index, one.key.attempt, one.alive) for one in seen.replicas] == [
        (0, 2, True),
        (1, 1, False),
        (1, 2, True),
    ]
    assert (seen.status.phase, seen.status.restarts) == (Phase.RUNNING, 1)


def test_knows_who_was_moved_and_passes_over_rows_that_make_no_sense():
    row = {"role": "worker", "index": 0, "attempt": 1, "cause": "signaled", "code": 143}
    bad = [{"role": "worker"}, {"role": 7}, 3, {**row, "cause": "?"}, {**row, "endedAt": "soon"}]
    seen = read(look(a_pod(0, 2), moved=[row], failures=bad, phase="Running"))
    assert [(one.key.attempt, one.stopping) for one in seen.replicas] == [(1, True), (2, False)]


def test_names_the_failure_that_ended_the_run():
    rows = [{"role": "worker", "index": 1, "attempt": 1, "cause": "exited", "code": 9}]
    pods = [failed(1, 2, code=9), failed(0, 2, code=1)]
    seen = read(look(*pods, failures=rows, phase="Failed", reason="exit 9 in trainer-1"))
    assert seen.status.phase == Phase.FAILED
    assert (seen.status.failure.replica, seen.status.failure.exit.code) == ("trainer-0", 1)


# --- phases ------------------------------------------------------------------------------------


def test_takes_the_operators_own_word_for_the_phase():
    assert read(look(phase="Pending", lifecycle="Preempted")).status.phase == Phase.PREEMPTED
    assert read(look(phase="Failed", lifecycle="TimedOut")).status.phase == Phase.TIMED_OUT


def test_a_killed_run_says_who_asked():
    notes = {"paddlepaddle.org/cancel": "by alice"}
    seen = read(look(phase="Terminated", reason="killed: by alice", notes=notes))
    assert (seen.status.phase, seen.status.reason) == (Phase.KILLED, "by alice")


def test_an_end_is_not_believed_while_a_pod_of_it_runs():
    assert not read(look(a_pod(), phase="Completed")).is_settled
    assert read(look(phase="Completed")).is_settled


def test_a_run_whose_object_was_deleted_ends_when_its_pods_are_gone():
    before = read(look(a_pod())).replicas
    known = Status(Phase.RUNNING)
    ending = reading.read_vanished(known, before, [a_pod()], "it was deleted", 1.0)
    assert (ending.status.phase, ending.status.reason) == (Phase.RUNNING, "ending: it was deleted")
    over = reading.read_vanished(known, before, [], "it was deleted", 1.0)
    assert (over.status.phase, over.status.reason) == (Phase.KILLED, "it was deleted")
    assert not any(one.alive for one in over.replicas)


# --- causes ------------------------------------------------------------------------------------


def test_says_what_is_missing_where_a_pod_cannot_be_placed():
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = a_pod(phase="Pending", state={}, conditions=[{**condition, "message": NODES}])
    seen = read(look(pod, phase="Pending", lifecycle="Starting"))
    assert seen.status.reason == (
        "trainer-0 cannot be placed: not enough cpu on 1 node, nvidia.com/gpu on 2 nodes "
        "(0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient nvidia.com/gpu)"
    )
    assert [(event.reason, event.replica) for event in seen.events] == [
        ("Unschedulable", "trainer-0")
    ]


def test_leaves_out_what_the_scheduler_tried_besides():
    tail = ". no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not"
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    words = "0/1 nodes are available: 1 Insufficient example.com/fpga"
    pod = a_pod(phase="Pending", state={}, conditions=[{**condition, "message": words + tail}])
    assert cause_of(pod).words == (
        f"cannot be placed: not enough example.com/fpga on 1 node ({words})"
    )


@pytest.mark.parametrize("reason", ["ErrImagePull", "ImagePullBackOff", "InvalidImageName"])
def test_says_which_image_cannot_be_pulled(reason):
    cause = cause_of(waiting(reason, "not found"))
    assert (cause.reason, cause.words) == (
        reason,
        "the image hub/x:1 cannot be pulled: not found",
    )


@pytest.mark.parametrize(
    "pod",
    [
        waiting("ContainerCreating"),
        waiting("CreateContainerConfigError", 'configmap "job" not found'),
        waiting("CreateContainerConfigError", 'configmap "job.servers" not found'),
        a_pod(),
        failed(),
    ],
)
def test_says_nothing_of_a_pod_that_is_on_its_way(pod):
    assert cause_of(pod) is None


def test_says_what_configuration_is_missing():
    cause = cause_of(waiting("CreateContainerConfigError", 'secret "mine" not found'))
    assert cause.words == 'cannot start: secret "mine" not found'


def test_says_that_a_node_does_not_answer():
    assert cause_of(a_pod(), {"n1"}).words == "its node n1 does not answer"


def test_a_running_job_says_that_a_node_does_not_answer_unless_the_operator_says_more():
    seen = read(look(a_pod(1), lost=["n1"], phase="Running"))
    assert seen.status.reason == "trainer-1 its node n1 does not answer"
    assert [(event.reason, event.replica) for event in seen.events] == [("NodeLost", "trainer-1")]
    assert read(look(a_pod(1), lost=["n1"], phase="Running", reason="x")).status.reason == "x"
    assert read(look(a_pod(1), phase="Running")).status.reason == ""


# --- orders ------------------------------------------------------------------------------------


def test_reads_orders_to_move_and_passes_over_what_is_none():
    text = '[{"role":"worker","index":1,"attempt":2,"host":"h","at":3.5},{"role":"x"},7]'
    body = {"metadata": {"annotations": {"paddlepaddle.org/moves": text}}}
    (move,) = reading.moves_of(body)
    assert (move.role, move.index, move.attempt, move.host, move.at) == ("trainer", 1, 2, "h", 3.5)
    assert reading.moves_of({"metadata": {"annotations": {"paddlepaddle.org/moves": "{"}}}) == ()
