"""A copy in memory of what the API server holds of one kind, kept by list and watch.

`Informer(client, path, changed)` runs a thread that lists once, watches from there on, and calls
`changed(object)` for every object that came, changed or went; the caller looks at the copy, never
at the event. Everything that can go wrong with a watch ends in watching again from the last
version seen, or, when the server has forgotten it (410, in the answer or inside the stream), in
listing again, which also finds what was deleted meanwhile. Events that come twice or too late are
recognised by the resource version and dropped. It never writes.

A connection that is open but silent is noticed: a watch is asked for in short turns, the server
tells where it stands before it ends one (a bookmark), and whoever says nothing for `SILENCE_S` is
left. A server that ends every watch at once, or forgets at once, is asked with growing pauses.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.client import Client, Json
from paddlecloud.kube.refusals import GONE, Refused, refusal

log = logging.getLogger(__name__)

PAGE = "500"
WATCH_S = 20  # the server ends a watch after this long at most, with a bookmark shortly before
SILENCE_S = 25.0  # so a longer silence is a dead connection
SHORT_S = 1.0  # a watch that ended sooner has not worked
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 5.0

Key = tuple[str, str]  # namespace, name


def key_of(body: Json) -> Key:
    metadata = body["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def version_of(body: Json) -> int:
    """Opaque by the letter, but a growing number in every API server there is."""
    return _number(body["metadata"].get("resourceVersion") or "0")


def _number(version: str) -> int:
    try:
        return int(version)
    except ValueError:
        return 0


@dataclass(frozen=True, slots=True)
class Watched:
    """What to keep a copy of."""

    path: str  # of the collection
    label_selector: str = ""
    field_selector: str = ""

    def query(self, **more: str) -> dict[str, str]:
        chosen = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {**{key: value for key, value in chosen.items() if value}, **more}


class Informer:
    def __init__(
        self,
        client: Client,
        what: Watched,
        changed: Callable[[Json], None],
        trim: Callable[[Json], Json] | None = None,
    ) -> None:
        """`trim` leaves of an object what the caller needs, where there are many large ones."""
        self._client = client
        self._what = what
        self._changed = changed
        self._trim = trim or (lambda body: body)
        self._lock = threading.Lock()
        self._held: dict[Key, Json] = {}
        self._gone: dict[Key, int] = {}  # versions of deletions, against events that come late
        self._listed_at = -1
        self._version = ""
        self._stream: Any = None
        self._has_heard = False  # in this turn of watching
        self._pause_s = 0.0
        self._stopped = threading.Event()
        self.listed = threading.Event()  # the copy is whole
        self.is_missing = False  # the server knows no such resource, or not yet
        self.relists = 0
        self._thread = threading.Thread(
            target=self._run, name=f"watch {what.path.rsplit('/', 1)[-1]}", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        stream = self._stream
        if stream is not None:
            stream.interrupt()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def find(self, key: Key) -> Json | None:
        with self._lock:
            return self._held.get(key)

    def all(self) -> list[Json]:
        with self._lock:
            return list(self._held.values())

    # --- the thread --------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopped.is_set():
            began = time.monotonic()
            least_s, self._has_heard = 0.0, False
            try:
                if not self._version:
                    self._list()
                self._watch()
            except Refused as error:
                was_missing, self.is_missing = self.is_missing, error.is_missing
                if error.is_gone:
                    self._version = ""
                elif not self._stopped.is_set() and not (was_missing and error.is_missing):
                    log.warning("watching %s: %s", self._what.path, error.message)
                least_s = error.retry_after_s or (0.0 if error.is_gone else FIRST_PAUSE_S)
            except Exception:
                # An answer nobody thought of must not leave the operator blind.
                log.exception("watching %s", self._what.path)
                self._version, least_s = "", LONGEST_PAUSE_S
            self._pause(time.monotonic() - began, least_s)

    def _pause(self, lasted_s: float, least_s: float) -> None:
        """Before the next turn: not at all after a good one, longer each time after a short one."""
        if lasted_s >= SHORT_S or self._has_heard:
            self._pause_s = 0.0
        wait_s = max(least_s, self._pause_s * random.uniform(0.5, 1.0))
        self._pause_s = min(max(2 * self._pause_s, FIRST_PAUSE_S), LONGEST_PAUSE_S)
        if wait_s > 0:
            self._stopped.wait(wait_s)

    def _list(self) -> None:
        found: dict[Key, Json] = {}
        token, version = "", ""
        while True:
            query = self._what.query(limit=PAGE, **({"continue": token} if token else {}))
            page = self._client.get(self._what.path, **query)
            found |= {key_of(body): self._kept(body) for body in page.get("items") or ()}
            version = page["metadata"]["resourceVersion"]
            token = page["metadata"].get("continue") or ""
            if not token:
                break
        with self._lock:
            gone = [body for key, body in self._held.items() if key not in found]
            news = [body for key, body in found.items() if self._is_news(key, body)]
            self._held = found
            self._gone.clear()
            self._listed_at = _number(version)
        self._version = version
        self.relists += 1
        self.is_missing = False
        self.listed.set()
        self._tell([*gone, *news])

    def _kept(self, body: Json) -> Json:
        body["metadata"].pop("managedFields", None)  # half of an object, and nobody asks
        return self._trim(body)

    def _is_news(self, key: Key, body: Json) -> bool:
        held = self._held.get(key)
        return held is None or version_of(held) != version_of(body)

    def _watch(self) -> None:
        query = self._what.query(
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=self._version,
            timeoutSeconds=str(int(WATCH_S * random.uniform(0.8, 1.0))),
        )
        with self._client.stream(self._what.path, query, SILENCE_S) as stream:
            self._stream = stream
            if self._stopped.is_set():
                return
            for event in stream.lines():
                self._take(event)
                self._has_heard = True

    def _take(self, event: Json) -> None:
        kind, body = event.get("type"), event.get("object")
        if not isinstance(body, dict):
            return
        if kind == "ERROR":
            raise refusal(int(body.get("code") or GONE), body)
        if kind != "BOOKMARK":
            body = self._kept(body)
            if self._keep(str(kind), body):
                self._tell([body])
        # An old event that is repeated is no reason to go back.
        if version_of(body) >= _number(self._version):
            self._version = body["metadata"]["resourceVersion"]

    def _keep(self, kind: str, body: Json) -> bool:
        """Put the event into the copy; False for one that is older than what the copy knows."""
        key, version = key_of(body), version_of(body)
        with self._lock:
            held = self._held.get(key)
            # What is not held was not there when we listed, or has gone since.
            known = version_of(held) if held is not None else self._gone.get(key, self._listed_at)
            if version < known or (version == known and kind != "DELETED"):
                return False
            if kind == "DELETED":
                self._held.pop(key, None)
                self._gone[key] = version
                if len(self._gone) > 10_000:
                    self._gone.pop(next(iter(self._gone)))
            else:
                self._held[key] = body
                self._gone.pop(key, None)
            return True

    def _tell(self, bodies: Iterable[Json]) -> None:
        for body in bodies:
            self._changed(body)

    # --- what we did ourselves ---------------------------------------------------------------

    def learn(self, body: Json) -> None:
        """Put the answer to our own write into the copy, so that the next look sees it."""
        self._keep("MODIFIED", self._kept(body))
