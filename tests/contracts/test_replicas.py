"""What every `Replicas` promises, run on each implementation with real programs.

The suite speaks only of keys, launches and observations. How processes are confined, adopted and
killed is tested in tests/engines/local.
"""

from __future__ import annotations

import signal

import pytest

from paddlecloud.core.observed import EndCause, ReplicaKey, ReplicaState
from tests.engines.local.bench import EVERY_WAY, Bench
from tests.engines.local.conftest import make_bench  # noqa: F401  (a fixture)


@pytest.fixture(params=EVERY_WAY)
def bench(request: pytest.FixtureRequest, make_bench) -> Bench:  # noqa: F811
    return make_bench(request.param)


def test_a_program_that_ends_well_is_reported_as_ok(bench: Bench):
    key = bench.start("echo hello")
    seen = bench.ended(key)
    assert seen.state == ReplicaState.ENDED
    assert seen.exit is not None
    assert seen.exit.ok
    assert seen.started_at is not None
    assert seen.ended_at is not None
    assert seen.started_at <= seen.ended_at
    assert seen.address == "127.0.0.2"
    assert bench.log(key) == "hello\n"


@pytest.mark.parametrize("code", [1, 2, 77, 126, 127, 255])
def test_the_exit_code_is_exact(bench: Bench, code: int):
    end = bench.exit_of(bench.start(f"exit {code}"))
    assert (end.cause, end.code, end.signal) == (EndCause.EXITED, code, 0)


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGTERM, signal.SIGHUP]
)
def test_the_signal_is_exact(bench: Bench, number: signal.Signals):
    end = bench.exit_of(bench.start(f"kill -{number.value} $$"))
    assert (end.cause, end.signal, end.code) == (EndCause.SIGNALED, number, 128 + number)


def test_a_command_that_does_not_exist_is_the_shells_127_not_a_failed_start(bench: Bench):
    end = bench.exit_of(bench.start("no-such-program-anywhere"))
    assert (end.cause, end.code) == (EndCause.EXITED, 127)


def test_a_missing_working_directory_is_a_failed_start(bench: Bench):
    key = bench.start("true", workdir="/pfs/local/home/ann/jobs/gone")
    seen = bench.ended(key)
    assert seen.exit is not None
    assert seen.exit.cause == EndCause.START_FAILED
    assert "/pfs/local/home/ann/jobs/gone does not exist" in seen.exit.message
    assert seen.started_at is None


def test_a_missing_runtime_is_a_failed_start(bench: Bench):
    end = bench.exit_of(bench.start("true", runtime="paddle-9"))
    assert end.cause == EndCause.START_FAILED
    assert "no runtime called paddle-9" in end.message


def test_creating_twice_makes_one_replica(bench: Bench):
    launch = bench.launch("echo once; sleep 600")
    bench.processes.create(launch)
    bench.processes.create(launch)
    bench.says(launch.key, "once")
    bench.processes.create(launch)
    assert len(bench.processes.observe(launch.key.job_id, 1)) == 1
    assert bench.log(launch.key) == "once\n"


def test_creating_again_after_the_end_changes_nothing(bench: Bench):
    launch = bench.launch("echo once; exit 4")
    bench.processes.create(launch)
    before = bench.ended(launch.key)
    bench.processes.create(launch)
    assert bench.look(launch.key) == before
    assert bench.log(launch.key) == "once\n"


def test_attempts_are_kept_apart(bench: Bench):
    first = bench.launch("echo first; exit 1")
    bench.processes.create(first)
    bench.ended(first.key)
    again = ReplicaKey(first.key.job_id, 1, first.key.role, 0, 2)
    second = bench.launch("echo second", key=again)
    bench.processes.create(second)
    bench.ended(second.key)
    seen = bench.processes.observe(first.key.job_id, 1)
    assert [(one.key.attempt, one.exit and one.exit.code) for one in seen] == [(1, 1), (2, 0)]
    assert (bench.log(first.key), bench.log(second.key)) == ("first\n", "second\n")


def test_every_change_is_told(bench: Bench):
    key = bench.start("read line || true; sleep 600")
    bench.running(key)
    bench.processes.stop(key, 0)
    bench.ended(key)
    assert bench.told.count(key.job_id) == 2


def test_stopping_sends_term_and_reports_how_the_program_answered(bench: Bench):
    key = bench.start("trap 'echo saving; exit 7' TERM; echo ready; while :; do sleep 0.1; done")
    bench.says(key, "ready")
    bench.processes.stop(key, 600)
    seen = bench.ended(key)
    assert seen.stopping
    assert seen.exit is not None
    assert (seen.exit.cause, seen.exit.code) == (EndCause.EXITED, 7)
    assert "saving" in bench.log(key)


def test_a_program_that_ignores_term_is_killed_after_the_grace(bench: Bench):
    key = bench.start("trap '' TERM; echo ready; while :; do sleep 0.1; done")
    bench.says(key, "ready")
    bench.processes.stop(key, 0.3)
    end = bench.exit_of(key)
    assert (end.cause, end.signal) == (EndCause.SIGNALED, signal.SIGKILL)


def test_stopping_twice_or_after_the_end_changes_nothing(bench: Bench):
    key = bench.start("sleep 600")
    bench.running(key)
    bench.processes.stop(key, 600)
    bench.processes.stop(key, 600)
    before = bench.ended(key)
    bench.processes.stop(key, 0)
    assert bench.look(key) == before


def test_stopping_right_after_creating_leaves_nothing_running(bench: Bench):
    key = bench.start("sleep 600")
    bench.processes.stop(key, 0.5)
    assert bench.ended(key).stopping


def test_stopping_what_never_existed_is_quiet(bench: Bench):
    bench.processes.stop(bench.launch("true").key, 0)


def test_removing_keeps_the_log_and_the_result(bench: Bench):
    key = bench.start("echo kept; touch $TMPDIR/scrap; exit 5")
    before = bench.ended(key)
    bench.processes.remove(key)
    assert bench.look(key) == before
    assert bench.log(key) == "kept\n"
    assert not list(bench.attempt_dir(key).rglob("scrap"))


def test_a_live_replica_is_not_removed(bench: Bench):
    key = bench.start("echo ready; sleep 600")
    bench.says(key, "ready")
    bench.processes.remove(key)
    assert bench.running(key).alive


def test_the_last_words_come_from_the_termination_log(bench: Bench):
    end = bench.exit_of(bench.start('echo "lost the data" > $PADDLECLOUD_TERMINATION_LOG; exit 1'))
    assert end.message == "lost the data"


@pytest.mark.parametrize(
    ("code", "message"), [(1, "General Error"), (139, "Segmentation Fault"), (42, "")]
)
def test_without_last_words_the_exit_code_speaks(bench: Bench, code: int, message: str):
    assert bench.exit_of(bench.start(f"exit {code}")).message == message


def test_last_words_are_cut_and_made_readable(bench: Bench):
    key = bench.start(
        r"head -c 10000 /dev/zero | tr '\0' x > $PADDLECLOUD_TERMINATION_LOG;"
        r"printf '\377\376' | dd of=$PADDLECLOUD_TERMINATION_LOG conv=notrunc status=none; exit 1"
    )
    message = bench.exit_of(key).message
    assert message.startswith("\ufffd\ufffdxxx")
    assert len(message) == 4096


def test_the_environment_is_the_launchs_and_not_the_platforms(bench: Bench, monkeypatch):
    monkeypatch.setenv("PLATFORM_SECRET", "do-not-tell")
    text = bench.output_of("env", env={"PADDLE_TRAINER_ID": "0", "WORDS": "a b\n'c'"})
    assert "PADDLE_TRAINER_ID=0\n" in text
    assert "WORDS=a b\n'c'\n" in text
    assert "do-not-tell" not in text


def test_standard_input_is_empty_and_both_outputs_are_logged_in_order(bench: Bench):
    assert bench.output_of("cat; echo one; echo two >&2; echo three") == "one\ntwo\nthree\n"


def test_a_variable_that_cannot_be_set_is_a_failed_start(bench: Bench):
    end = bench.exit_of(bench.start("true", env={"A=B": "c"}))
    assert end.cause == EndCause.START_FAILED
    assert "'A=B'" in end.message


def test_the_files_of_the_contract_are_there(bench: Bench):
    text = bench.output_of(
        'cat "$PADDLECLOUD_ROOT_FILES/trainer_id" "$PADDLECLOUD_ROOT_FILES/trainer_count"',
        files={"/trainer_id": "3\n", "/trainer_count": "8\n"},
    )
    assert text == "3\n8\n"
