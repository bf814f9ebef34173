"""The engine's memory: which run is which object, and what was told of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.core.actions import Event, Status
from paddlecloud.core.jobspec import Role
from paddlecloud.core.observed import ReplicaKey, ReplicaObserved, ReplicaState
from paddlecloud.core.phases import Phase
from paddlecloud.engines.kubernetes.journal import Entry, Journal
from paddlecloud.engines.kubernetes.reading import Seen

PLACE = ("PaddleJob", "ns", "job")
RUNS = ReplicaObserved(ReplicaKey("job-1", 1, Role.TRAINER, 0, 1), ReplicaState.RUNNING)


def a_journal(folder: Path) -> Journal:
    return Journal(folder / "engine.db")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return a_journal(tmp_path)


def seen(phase: Phase, *replicas: ReplicaObserved, granted: int = 0) -> Seen:
    return Seen(Status(phase), replicas, granted)


def test_tells_a_change_once_and_an_event_once(journal):
    entry = journal.add(Entry("job-1", 1, PLACE, "u"))
    event = Event("Running", "it runs")
    for _ in range(2):
        journal.save(entry, seen(Phase.RUNNING, RUNS, granted=1), [event])
    told = journal.changes(0, 0)
    assert [(c.event, c.status and c.status.phase) for c in told] == [
        (event, None),
        (None, Phase.RUNNING),
    ]
    assert (told[1].replicas, told[1].trainers_granted) == ((RUNS,), 1)


def test_a_run_that_is_over_is_told_nothing_more_of(journal):
    entry = journal.add(Entry("job-1", 1, PLACE, "u"))
    assert journal.save(entry, seen(Phase.SUCCEEDED))
    assert not journal.save(entry, seen(Phase.RUNNING))
    assert [c.status.phase for c in journal.changes(0, 0)] == [Phase.SUCCEEDED]
    assert journal.at(PLACE) is None
    assert journal.by_uid("u").job_id == "job-1"


def test_remembers_after_a_restart_what_it_told_and_where_its_cursor_stood(journal, tmp_path):
    entry = journal.add(Entry("job-1", 1, PLACE))
    journal.made(entry, "u")
    journal.save(entry, seen(Phase.RUNNING, RUNS))
    history = journal.history()
    journal.close()
    again = a_journal(tmp_path)
    assert again.history() == history
    assert again.at(PLACE).uid == "u"
    assert again.known(entry) == (Status(Phase.RUNNING), [RUNS])
    again.save(entry, seen(Phase.RUNNING, RUNS))
    assert again.history() == history  # nothing new
    again.save(entry, seen(Phase.SUCCEEDED))
    assert again.changes(history.last, 0)[0].cursor > history.last


def test_adding_a_run_again_changes_nothing(journal):
    first = journal.add(Entry("job-1", 1, PLACE, "u"))
    assert journal.add(Entry("job-1", 1, ("PaddleJob", "ns", "other"))) == first


def test_the_next_object_of_a_name_is_another_run(journal):
    first = journal.add(Entry("job-1", 1, PLACE, "u", is_ours=False))
    journal.save(first, seen(Phase.KILLED))
    journal.add(Entry("job-2", 1, PLACE, "v", is_ours=False))
    assert journal.at(PLACE).job_id == "job-2"


def test_forgets_all_of_a_job(journal, tmp_path):
    for run in (1, 2):
        entry = journal.add(Entry("job-1", run, ("PaddleJob", "ns", f"job-{run}"), f"u{run}"))
        journal.save(entry, seen(Phase.RUNNING))
    journal.forget_when_ended("job-1")
    journal.close()
    again = a_journal(tmp_path)
    assert again.is_to_forget("job-1")
    again.forget("job-1")
    assert again.of_job("job-1") == again.live() == again.changes(0, 0) == []
    assert not again.is_to_forget("job-1")


def test_knows_who_uses_which_group(journal):
    assert journal.join("nlp", "b")
    assert not journal.join("nlp", "b")
    journal.join("nlp", "a")
    assert journal.members() == {"nlp": ["a", "b"]}
