from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import Any

import pytest

from paddlecloud.kube.informers import Informer, Watched
from paddlecloud.kube.refusals import Refused
from tests.patience import PATIENCE_S


def thing(name: str, version: int, **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    return {"metadata": metadata, **more}


def event(kind: str, name: str, version: int, **more: Any) -> dict[str, Any]:
    return {"type": kind, "object": thing(name, version, **more)}


def page(version: int, *things: dict[str, Any], token: str = "") -> dict[str, Any]:
    return {"metadata": {"resourceVersion": str(version), "continue": token}, "items": things}


class Scripted:
    """A client that answers lists and watches from a script, then says that it is over."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, str]] = []
        self.over = threading.Event()
        self.held = threading.Event()

    def _next(self, query: dict[str, str]) -> Any:
        self.asked.append(query)
        if not self.answers:
            self.over.set()
            self.held.wait(PATIENCE_S)
            return []
        return self.answers.pop(0)

    def get(self, path: str, **query: str) -> Any:
        answer = self._next(query)
        if isinstance(answer, Exception):
            raise answer
        return answer

    @contextmanager
    def stream(self, path: str, query: dict[str, str], silence_s: float):
        client = self

        class Stream:
            answer = client._next(query)

            def lines(self):
                if isinstance(self.answer, Exception):
                    raise self.answer
                yield from self.answer

            def interrupt(self) -> None:
                client.held.set()

        yield Stream()


def follow(*answers: Any) -> tuple[Informer, Scripted, list[str]]:
    client, told = Scripted(*answers), list[str]()
    what = Watched("/api/v1/pods", "app=x")
    informer = Informer(client, what, lambda body: told.append(body["metadata"]["name"]))
    informer.start()
    assert client.over.wait(PATIENCE_S)
    informer.stop()
    client.held.set()
    informer.join(PATIENCE_S)
    return informer, client, told


def names(informer: Informer) -> list[str]:
    return sorted(body["metadata"]["name"] for body in informer.all())


def test_lists_page_by_page_then_watches_from_there():
    informer, client, told = follow(
        page(5, thing("a", 1), token="more"),
        page(5, thing("b", 2)),
        [event("ADDED", "c", 6), event("DELETED", "a", 7)],
    )
    assert names(informer) == ["b", "c"]
    assert told == ["a", "b", "c", "a"]
    assert client.asked[1]["continue"] == "more"
    assert client.asked[2]["resourceVersion"] == "5"
    assert all(query["labelSelector"] == "app=x" for query in client.asked)


def test_watches_again_from_the_last_version_or_bookmark():
    _, client, _ = follow(
        page(5),
        [event("ADDED", "a", 8)],
        [{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "20"}}}],
    )
    assert [query.get("resourceVersion") for query in client.asked[1:]] == ["5", "8", "20"]


@pytest.mark.parametrize(
    "gone",
    [
        Refused(410, "Expired", "too old"),
        [{"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}],
    ],
    ids=["in the answer", "in the stream"],
)
def test_lists_again_when_the_server_has_forgotten(gone):
    informer, _, told = follow(
        page(5, thing("a", 1), thing("b", 2)),
        gone,
        page(90, thing("b", 2), thing("c", 80)),
        [],
    )
    assert names(informer) == ["b", "c"]
    assert told == ["a", "b", "a", "c"]  # b is not news
    assert informer.relists == 2


@pytest.mark.parametrize(
    "trouble",
    [
        Refused(0, "Unreachable", "reset"),
        Refused(500, "InternalError", ""),
        Refused(429, "TooManyRequests", "", retry_after_s=0.01),
        [],
    ],
)
def test_goes_on_after_trouble(trouble):
    informer, client, _ = follow(page(5), trouble, [event("ADDED", "a", 6)])
    assert names(informer) == ["a"]
    assert client.asked[2]["resourceVersion"] == "5"


def test_lists_until_it_can():
    informer, _, _ = follow(Refused(503, "", "not yet"), page(5, thing("a", 1)), [])
    assert names(informer) == ["a"]
    assert informer.listed.is_set()


def test_drops_events_that_come_twice_or_late():
    informer, _, told = follow(
        page(5),
        [
            event("ADDED", "a", 6, n=1),
            event("MODIFIED", "a", 8, n=2),
            event("MODIFIED", "a", 7, n=3),
            event("MODIFIED", "a", 8, n=4),
            event("ADDED", "b", 9),
            event("DELETED", "b", 11),
            event("MODIFIED", "b", 10),
        ],
    )
    assert informer.find(("ns", "a"))["n"] == 2
    assert names(informer) == ["a"]
    assert told == ["a", "a", "b", "b"]


def test_sees_its_own_writes_at_once():
    informer, _, _ = follow(page(5, thing("a", 1)), [])
    informer.learn(thing("a", 9, n=1))
    informer.learn(thing("a", 8, n=2))
    assert informer.find(("ns", "a"))["n"] == 1


def test_does_not_bring_back_what_was_gone_when_it_listed_again():
    informer, _, _ = follow(
        page(5, thing("a", 1)),
        [event("ADDED", "b", 6)],
        Refused(410, "Expired", ""),
        page(90),
        [],
    )
    informer.learn(thing("b", 7))  # an answer that was long on its way
    assert names(informer) == []
    informer.learn(thing("c", 91))
    assert names(informer) == ["c"]


def test_does_not_keep_who_wrote_which_field():
    body = thing("a", 1)
    body["metadata"]["managedFields"] = [{"manager": "kubectl"}]
    informer, _, _ = follow(page(5, body), [])
    assert informer.find(("ns", "a")) == thing("a", 1)


def test_does_not_go_back_when_an_old_event_comes_again():
    _, client, _ = follow(
        page(5), [event("ADDED", "a", 8), event("ADDED", "b", 9), event("ADDED", "a", 8)], []
    )
    assert client.asked[2]["resourceVersion"] == "9"


@pytest.mark.parametrize(
    "answers",
    [
        [page(5), *[[]] * 5],
        [one for _ in range(5) for one in (page(5), Refused(410, "Expired", ""))],
        [Refused(500, "InternalError", "")] * 5,
    ],
    ids=["watches that end at once", "history forgotten at once", "no list"],
)
def test_asks_with_growing_pauses(answers, monkeypatch):
    waits: list[float] = []
    event_wait = threading.Event.wait

    def wait(self, timeout=None):
        if threading.current_thread().name.startswith("watch") and timeout and timeout < 10:
            waits.append(timeout)
            return self.is_set()
        return event_wait(self, timeout)

    monkeypatch.setattr(threading.Event, "wait", wait)
    follow(*answers)
    assert len(waits) >= 4
    assert waits[3] > 2 * waits[0]


def test_obeys_when_told_how_long_to_wait():
    began = time.monotonic()
    follow(page(5), Refused(429, "TooManyRequests", "", retry_after_s=0.3), [])
    assert time.monotonic() - began >= 0.3
