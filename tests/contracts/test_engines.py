"""What every `Engine` promises, run on each implementation with real programs.

An engine under test comes with a `Bench`: how to make a working directory for a job on it. The
suite says nothing of processes or pods; faults particular to one kind are tested beside it.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from paddlecloud.core.jobspec import Mode, Priority, RestartRule, Role
from paddlecloud.core.observed import ReplicaKey, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.core.resources import Resources
from paddlecloud.scheduling.snapshot import Quota
from tests.contracts.at_once import running
from tests.engine_bench import EMBEDDED, KINDS, SMALL, TIMEOUT_S, Bench, a_job

# As real parameter servers do: on a cluster trainers wait for it.
SERVES = (
    'test "$TRAINING_ROLE" = PSERVER && exec python3 -m http.server --bind "$POD_IP" $PADDLE_PORT; '
)


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    with running(request, tmp_path) as made:
        yield made


def test_runs_a_job_through_its_phases(bench):
    job = bench.put("echo hello")
    assert bench.end(job).status.phase == Phase.SUCCEEDED
    assert bench.phases(job)[-1] == Phase.SUCCEEDED
    assert "hello" in bench.log_text(job)
    assert {"Admitted", "Succeeded"} <= set(bench.events(job))


def test_tells_every_change_again_to_a_watcher_that_starts_over(bench):
    job = bench.put("true")
    bench.end(job)
    cursors = [c.cursor for c in bench.engine.watch(0, 0)]
    assert cursors == sorted(set(cursors))
    assert len(cursors) >= len(bench.told)


def test_putting_a_run_twice_runs_it_once(bench):
    job = bench.put("echo x >> count")
    bench.engine.put(job)
    bench.end(job)
    bench.engine.put(job)
    other = bench.put("wc -l < count")
    bench.end(other)
    assert bench.log_text(other).strip() == "1"


def test_reports_exit_code_and_message_of_the_first_to_fail(bench):
    entry = 'echo "no space" > "${PADDLECLOUD_TERMINATION_LOG:-/dev/termination-log}"; exit 7'
    end = bench.end(bench.put(entry)).status
    assert end.phase == Phase.FAILED
    assert (end.failure.exit.code, end.failure.exit.message) == (7, "no space")


def test_stops_parameter_servers_when_trainers_are_done(bench):
    job = bench.put(f"{SERVES}true", mode=Mode.PS, trainers=2, pservers=2)
    change = bench.end(job)
    assert change.status.phase == Phase.SUCCEEDED
    assert all(not seen.alive for seen in change.replicas)
    assert len({seen.address for seen in change.replicas}) == 4


def test_gives_each_replica_its_rank_and_peers(bench):
    job = bench.put(
        "echo $RANK $WORLD_SIZE $PADDLE_TRAINER_ENDPOINTS", mode=Mode.COLLECTIVE, trainers=2
    )
    bench.end(job)
    first, second = (bench.log_text(job, index=i).split() for i in (0, 1))
    assert (first[:2], second[:2]) == (["0", "2"], ["1", "2"])
    assert first[2] == second[2]
    assert len(set(first[2].split(","))) == 2


def test_gives_programs_a_library_that_answers_who_they_are(bench):
    asked = "import paddlecloud_runtime as r; print(r.role(), r.rank(), r.world_size(), *r.peers())"
    entry = f"python3 -c '{asked}'; echo $PADDLE_TRAINER_ENDPOINTS"
    job = bench.put(entry, mode=Mode.COLLECTIVE, trainers=2)
    assert bench.end(job).status.phase == Phase.SUCCEEDED
    for index in (0, 1):
        answered, told = bench.log_text(job, index=index).splitlines()
        assert answered.split() == ["trainer", str(index), "2", *told.split(",")]


def test_restarts_a_gang_together_and_only_within_the_budget(bench):
    rule = RestartRule(max_restarts=1, backoff_s=0.01)
    entry = 'test "$RANK" = 0 && exec sleep 1000; exit 9'
    job = bench.put(entry, mode=Mode.COLLECTIVE, trainers=2, restart=rule)
    end = bench.end(job)
    assert (end.status.phase, end.status.restarts) == (Phase.FAILED, 1)
    assert sorted((r.key.index, r.key.attempt) for r in end.replicas) == [
        (0, 1),
        (0, 2),
        (1, 1),
        (1, 2),
    ]
    said = [c.event for c in bench.told if c.job_id == job.job_id and c.event]
    restarting = [event for event in said if event.reason == "Restarting"]
    assert [(event.replica, event.message) for event in restarting] == [
        (
            "trainer-1",
            "exit 9 in trainer-1; all replicas start again, attempt 2 (restart 1 of at most 1)",
        )
    ]


def test_restarts_a_failed_trainer_alone_beside_parameter_servers(bench):
    rule = RestartRule(max_restarts=1, backoff_s=0.01)
    entry = f'{SERVES}test "$PADDLECLOUD_ATTEMPT$RANK" = 11 && exit 5; echo "mode $TEST_MODE"'
    job = bench.put(entry, mode=Mode.PS, trainers=2, pservers=1, restart=rule)
    end = bench.end(job)
    assert end.status.phase == Phase.SUCCEEDED
    attempts = {r.key.short: r.key.attempt for r in end.replicas}
    assert attempts == {"trainer-0": 1, "trainer-1": 2, "pserver-0": 1}


def test_trainer_0_that_comes_back_does_not_reset_the_servers(bench):
    rule = RestartRule(max_restarts=1, backoff_s=0.01)
    entry = f'{SERVES}test "$PADDLECLOUD_ATTEMPT" = 1 && exit 5; echo "mode $TEST_MODE"'
    job = bench.put(entry, mode=Mode.PS, trainers=1, pservers=1, restart=rule)
    bench.end(job)
    assert bench.log_text(job, attempt=2).strip() == "mode 1"


def test_kill_ends_everything(bench):
    job = bench.put("sleep 1000", mode=Mode.COLLECTIVE, trainers=2)
    bench.until(job, Phase.RUNNING)
    bench.engine.cancel(job.job_id, 1, "by alice")
    end = bench.end(job)
    assert (end.status.phase, end.status.reason) == (Phase.KILLED, "by alice")
    assert all(not seen.alive for seen in end.replicas)


@pytest.mark.alone
def test_killing_a_waiting_job_needs_no_room(bench):
    everything = replace(SMALL, cpu_milli=bench.engine.capacity().total.cpu_milli)
    holder = bench.put("sleep 1000", each=everything)
    bench.until(holder, Phase.RUNNING)
    waiter = bench.put("true")
    bench.until(waiter, Phase.QUEUED)
    bench.engine.cancel(waiter.job_id, 1, "enough")
    assert bench.end(waiter).status.phase == Phase.KILLED
    bench.engine.cancel(holder.job_id, 1, "enough")


def test_wall_time_ends_a_job(bench):
    assert bench.end(bench.put("sleep 1000", wall_time_s=1)).status.phase == Phase.TIMED_OUT


@pytest.mark.alone
def test_a_waiting_job_has_a_reason_and_starts_when_there_is_room(bench):
    everything = replace(SMALL, cpu_milli=bench.engine.capacity().total.cpu_milli)
    holder = bench.put("sleep 1000", each=everything)
    bench.until(holder, Phase.RUNNING)
    waiter = bench.put("true")
    told = bench.until(waiter, Phase.QUEUED)
    assert holder.spec.name in told.status.reason
    assert bench.engine.explain(waiter.job_id).position == 1
    bench.engine.cancel(holder.job_id, 1, "make room")
    assert bench.end(waiter).status.phase == Phase.SUCCEEDED


@pytest.mark.alone
def test_higher_priority_goes_first(bench):
    everything = replace(SMALL, cpu_milli=bench.engine.capacity().total.cpu_milli)
    holder = bench.put("sleep 1000", each=everything)
    bench.until(holder, Phase.RUNNING)
    low = bench.put("true", each=everything)
    high = bench.put("true", each=everything, priority=Priority.HIGH)
    bench.until(high, Phase.QUEUED)
    bench.engine.cancel(holder.job_id, 1, "make room")
    low_start = bench.end(low).status.started_at
    assert bench.end(high).status.started_at < low_start


# The operator's planner knows one size of a job; others come with elastic training.
@pytest.mark.parametrize("bench", EMBEDDED, indirect=True)
def test_an_elastic_job_starts_at_the_largest_size_that_fits(bench):
    total = bench.engine.capacity().total
    half = replace(SMALL, cpu_milli=total.cpu_milli // 2)
    holder = bench.put("sleep 1000", each=half)
    bench.until(holder, Phase.RUNNING)
    quarter = replace(SMALL, cpu_milli=total.cpu_milli // 4)
    job = bench.put(
        "echo $WORLD_SIZE", mode=Mode.COLLECTIVE, trainers=4, least=1, most=4, each=quarter
    )
    bench.end(job)
    assert bench.log_text(job).strip() == "2"


# On a cluster the vendor's device plug-in numbers the cards.
@pytest.mark.parametrize("bench", EMBEDDED, indirect=True)
def test_gives_cards_to_one_replica_only(bench):
    each = replace(SMALL, gpu=2)
    job = bench.put("echo $CUDA_VISIBLE_DEVICES", mode=Mode.COLLECTIVE, trainers=2, each=each)
    bench.end(job)
    given = [bench.log_text(job, index=i).strip().split(",") for i in (0, 1)]
    assert sorted(itertools.chain(*given)) == ["0", "1", "2", "3"]


@pytest.mark.alone
def test_cards_of_an_ended_job_are_free_again(bench):
    each = replace(SMALL, gpu=4)
    first, second = (bench.put("true", each=each) for _ in range(2))
    assert bench.end(first).status.phase == Phase.SUCCEEDED
    assert bench.end(second).status.phase == Phase.SUCCEEDED


def test_refuses_what_can_never_fit_with_the_number(bench):
    job = a_job(bench.workdir, "true", each=replace(SMALL, gpu=5))
    faults = bench.engine.check(job.spec)
    assert faults
    assert "5" in faults[0].problem
    assert "4" in faults[0].problem


def test_refuses_more_replicas_than_their_list_of_peers_may_hold(bench):
    job = a_job(bench.workdir, "true", each=Resources(), trainers=10_000)
    fault = bench.engine.check(job.spec)[0]
    assert (fault.field, fault.value) == ("parallelism", "10000")
    assert "at most" in fault.problem


@pytest.mark.alone  # every test's account has the same number, and quotas go by numbers
def test_holds_an_account_to_its_quota(bench):
    bench.engine.set_quota({1: Quota(replicas=1)})
    first = bench.put("sleep 1000")
    bench.until(first, Phase.RUNNING)
    second = bench.put("true")
    assert "quota" in bench.until(second, Phase.QUEUED).status.reason
    other = bench.put("true", account_id=2)
    assert bench.end(other).status.phase == Phase.SUCCEEDED
    bench.engine.set_quota({})
    assert bench.end(second).status.phase == Phase.SUCCEEDED


def test_a_rerun_is_a_run_of_its_own(bench):
    job = bench.put("echo run $PADDLECLOUD_RUN")
    bench.end(job)
    again = replace(job, run=2)
    bench.engine.put(again)
    bench.end(again)
    assert bench.log_text(job).strip() == "run 1"
    assert bench.log_text(again).strip() == "run 2"


def test_a_restarted_engine_goes_on_where_it_was(bench):
    go = f"{bench.workdir}/go"
    job = bench.put(f'while ! test -e "{go}" -o -e go; do sleep 0.05; done; exit 3')
    running = bench.until(job, Phase.RUNNING)
    bench.restart()
    ender = bench.put("touch go")
    bench.end(ender)
    end = bench.end(job)
    assert (end.status.phase, end.status.failure.exit.code) == (Phase.FAILED, 3)
    assert end.status.started_at == running.status.started_at


def test_a_deleted_job_is_gone_with_its_log(bench):
    job = bench.put("echo secret")
    bench.end(job)
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 0, 1)
    bench.engine.delete(job.job_id)
    assert bench.engine.log(key, 0, 100).data == b""
    assert all(c.job_id != job.job_id for c in bench.engine.watch(0, 0))


def test_deleting_a_live_job_kills_it_first(bench):
    job = bench.put("sleep 1000")
    bench.until(job, Phase.RUNNING)
    bench.engine.delete(job.job_id)
    deadline = time.monotonic() + TIMEOUT_S
    while bench.live() and time.monotonic() < deadline:
        bench.engine.watch(0, 0.05)
    assert not bench.live()


def test_reads_a_log_by_byte_cursor(bench):
    job = bench.put("printf 0123456789")
    bench.end(job)
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 0, 1)
    first = bench.engine.log(key, 0, 4)
    assert (first.data, first.next, first.size) == (b"0123", 4, 10)
    rest = bench.engine.log(key, first.next, 100)
    assert (rest.data, rest.next, rest.ended) == (b"456789", 10, True)
    assert bench.engine.log(key, -3, 100).data == b"789"


def test_a_log_is_there_whole_although_the_engine_was_restarted_meanwhile(bench):
    entry = "for n in $(seq 60); do echo line $n; sleep 0.05; done"
    job = bench.put(entry)
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 0, 1)
    bench.until(job, Phase.RUNNING, Phase.SUCCEEDED)
    bench.engine.log_wait(key, 0, TIMEOUT_S)
    bench.restart()
    bench.engine.log_wait(key, bench.engine.log(key, 0, 1).size, 5.0)
    bench.end(job)
    bench.restart()
    assert bench.log_text(job) == "".join(f"line {n}\n" for n in range(1, 61))


def test_a_line_that_python_prints_is_in_the_log_at_once(bench):
    job = bench.put("""python3 -c "import time; print('epoch 1'); time.sleep(1000)" """)
    bench.until(job, Phase.RUNNING)
    key = ReplicaKey(job.job_id, 1, Role.TRAINER, 0, 1)
    deadline = time.monotonic() + TIMEOUT_S
    while (data := bench.engine.log(key, 0, 100).data) != b"epoch 1\n":
        assert time.monotonic() < deadline
        bench.engine.log_wait(key, len(data), 1.0)


def test_a_user_may_have_python_buffer(bench):
    job = bench.put('echo "<$PYTHONUNBUFFERED>"', env={"PYTHONUNBUFFERED": ""})
    bench.end(job)
    assert bench.log_text(job) == "<>\n"


def test_a_missing_working_directory_is_a_start_failure(bench):
    job = bench.put(package=f"{bench.home}/nowhere")
    end = bench.end(job)
    assert end.status.phase == Phase.FAILED
    assert end.status.failure.exit.cause == "start_failed"
    assert "nowhere" in end.status.failure.exit.message
    assert end.replicas[0].state == ReplicaState.ENDED


def test_the_contract_is_run_for_real(bench):
    """A control: the programs of this suite are processes of their own."""
    job = bench.put("echo $$")
    bench.end(job)
    assert int(bench.log_text(job)) != os.getpid()
