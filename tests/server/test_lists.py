"""Lists: filters, pages that stay right while jobs come, limits."""

from __future__ import annotations

import pytest

from tests.server.running import Caller


def _names(page: dict) -> list[str]:
    return [job["name"] for job in page["items"]]


def test_lists_live_jobs_unless_told_otherwise(user: Caller) -> None:
    user.submit("ends")
    user.wait("ends")
    user.submit("fails", "fake exit=1")
    user.wait("fails")
    user.submit("runs", "fake hold=1")
    user.wait("runs", "running")
    get = user.get
    assert _names(get("/api/v2/jobs").json) == ["runs"]
    assert _names(get("/api/v2/jobs?phase=all").json) == ["runs", "fails", "ends"]
    assert _names(get("/api/v2/jobs?phase=Failed").json) == ["fails"]
    assert _names(get("/api/v2/jobs?phase=all&name=ends").json) == ["ends"]
    assert get("/api/v2/jobs?phase=failed").status == 400


def test_pages_stay_right_while_jobs_are_added_and_deleted(user: Caller) -> None:
    for number in range(7):
        user.submit(f"j{number}")
    first = user.get("/api/v2/jobs?phase=all&limit=3").json
    assert _names(first) == ["j6", "j5", "j4"]
    user.submit("new")
    user.wait("j3")
    user.call("DELETE", "/api/v2/jobs/j3")
    second = user.get(f"/api/v2/jobs?phase=all&limit=3&cursor={first['next']}").json
    assert _names(second) == ["j2", "j1", "j0"]
    assert second["next"] is None


def test_a_page_that_holds_exactly_all_has_no_next(user: Caller) -> None:
    user.submit("a")
    user.submit("b")
    assert user.get("/api/v2/jobs?phase=all&limit=2").json["next"] is None


@pytest.mark.parametrize(
    "query",
    [
        "cursor=nonsense",
        "cursor=!!!",
        "limit=0",
        "limit=1001",
        "limit=x",
        "limt=3",
        "phase=x",
        "name=%00",
    ],
)
def test_refuses_bad_parameters_by_name(user: Caller, query: str) -> None:
    answer = user.get(f"/api/v2/jobs?{query}")
    assert answer.status == 400
    assert answer.json["field"] == query.partition("=")[0]


def test_events_come_in_pages(user: Caller) -> None:
    user.submit("e")
    user.wait("e")
    first = user.get("/api/v2/jobs/e/events?limit=1").json
    assert len(first["items"]) == 1
    rest = user.get(f"/api/v2/jobs/e/events?after={first['next']}").json
    assert [event["reason"] for event in rest["items"]] == ["Started", "Succeeded"]
    assert rest["next"] is None


def test_a_job_whose_name_holds_nul_is_not_there(user: Caller) -> None:
    assert user.get("/api/v2/jobs/%00").status == 404
    assert user.get("/api/v2/jobs/a%00b/events").status == 404


def test_what_no_database_keeps_is_refused_or_kept_never_a_mistake(user: Caller) -> None:
    user.submit("told", "fake hold=1")
    for reason in ("with \0 in it", "x" * 100_000):
        answer = user.post("/api/v2/jobs/told/cancel", {"reason": reason})
        assert answer.status in (202, 400), answer.body
