"""Logs of pods: read from our disk, filled by followers while somebody waits, archived at the end.

`read` answers from the spool, after a quick look at the pod where nobody follows it. `wait` has the
pod followed: one connection and one thread per log, only so many at once, given up a minute after
the last who waited. `pod_changed` archives the whole log of a pod that has ended or is being
deleted, and then takes its finalizer away. Other platforms' pods on the same cluster are theirs.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from paddlecloud.core.observed import ReplicaKey
from paddlecloud.engines.kubernetes.config import KubernetesConfig
from paddlecloud.engines.kubernetes.spooling import Spool, folder_of
from paddlecloud.engines.protocols import LogSlice
from paddlecloud.kube.client import Client, member
from paddlecloud.kube.pods import container_status, training_container
from paddlecloud.kube.refusals import Refused
from paddlecloud.kube.words import LOG_FINALIZER

log = logging.getLogger(__name__)

Json = dict[str, Any]

_INTEREST_S = 60.0  # how long a log is followed after the last who waited for it
_SILENCE_S = 20.0  # a quiet follower looks this often whether anybody is still interested
_AGAIN_S = 0.3  # between two looks at the same pod when nobody follows it
_LAST_WORDS_S = 3.0
_ARCHIVERS = 8
_SPOOLS_REMEMBERED = 2_000
_FIRST_RETRY_S, _LONGEST_RETRY_S = 0.3, 5.0

PodOf = Callable[[ReplicaKey], Json | None]
KeyOf = Callable[[Json], ReplicaKey | None]


def has_started(pod: Json) -> bool:
    """Whether there was a container that could have written something."""
    row = container_status(pod)
    states = [row.get("state") or {}, row.get("lastState") or {}]
    ended = [state["terminated"] for state in states if state.get("terminated")]
    return bool(states[0].get("running")) or any(one.get("containerID") for one in ended)


def has_ended(pod: Json) -> bool:
    """Nothing will be added to its log."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


class Logs:
    def __init__(
        self,
        client: Client,
        config: KubernetesConfig,
        pod_of: PodOf,
        key_of: KeyOf,
        is_over: Callable[[ReplicaKey], bool],
        is_forgotten: Callable[[Json], bool],
        release: Callable[[Json], None],
    ) -> None:
        self._client, self._config, self._is_over = client, config, is_over
        self._is_forgotten = is_forgotten
        self._root: Path = config.state_dir / "logs"
        self._pod_of, self._key_of, self._release = pod_of, key_of, release
        self._lock = threading.Lock()
        self._spools: dict[ReplicaKey, Spool] = {}
        self._looked: dict[ReplicaKey, float] = {}
        self._followers: dict[ReplicaKey, _Follower] = {}
        self._archiving: set[str] = set()  # uids of pods
        self._leaving: set[str] = set()  # whose logs were fetched when they were told to go
        self._archivers = ThreadPoolExecutor(_ARCHIVERS, thread_name_prefix="archive")
        self._closed = threading.Event()

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            followers = list(self._followers.values())
            spools = list(self._spools.values())
        for follower in followers:
            follower.interrupt()
        for spool in spools:
            spool.wake()
        self._archivers.shutdown(wait=True, cancel_futures=True)

    def discard(self, job_id: str) -> None:
        with self._lock:
            for key in [key for key in self._spools if key.job_id == job_id]:
                del self._spools[key]
                self._looked.pop(key, None)
        shutil.rmtree(self._root / job_id, ignore_errors=True)

    # --- the Engine's two calls --------------------------------------------------------------

    def read(self, key: ReplicaKey, start: int, limit_bytes: int) -> LogSlice:
        spool = self._spool(key)
        if not spool.is_done and key not in self._followers:
            self._look(key, spool)
        return spool.read(start, limit_bytes)

    def wait(self, key: ReplicaKey, size: int, timeout_s: float) -> None:
        spool = self._spool(key)
        deadline = time.monotonic() + timeout_s
        while not spool.is_done and spool.size <= size and not self._closed.is_set():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            if self._follow(key, spool):
                spool.wait(size, min(left_s, _INTEREST_S / 2))
            else:
                spool.wait(size, min(left_s, 2 * _AGAIN_S))
                self._look(key, spool)

    def _spool(self, key: ReplicaKey) -> Spool:
        with self._lock:
            found = self._spools.get(key)
            if found is None:
                for old in list(self._spools)[: len(self._spools) - _SPOOLS_REMEMBERED]:
                    if old not in self._followers and self._spools[old].is_done:
                        del self._spools[old]
                        self._looked.pop(old, None)
                caps = (self._config.log_cap_bytes, self._config.log_head_bytes)
                found = self._spools[key] = Spool(folder_of(self._root, key), *caps)
            return found

    def _look(self, key: ReplicaKey, spool: Spool) -> None:
        """Fetch what is there now; a reader that comes again at once is given what we have."""
        pod = self._pod_of(key)
        if pod is None:
            if self._is_over(key):
                spool.finish()
            return
        with self._lock:
            now = time.monotonic()
            if now - self._looked.get(key, -_AGAIN_S) < _AGAIN_S and not has_ended(pod):
                return
            self._looked[key] = now
        try:
            self._fetch(pod, spool)
        except Refused as error:
            log.info("the log of %s: %s", pod["metadata"]["name"], error.message)

    # --- fetching ----------------------------------------------------------------------------

    def _fetch(self, pod: Json, spool: Spool) -> None:
        """All there is, to the end if it has ended. Raises Refused."""
        # Somebody may be at it: the rest of a log that has ended is worth a moment's wait.
        if not spool.filling.acquire(timeout=_LAST_WORDS_S if has_ended(pod) else 0):
            return
        try:
            if spool.is_done:
                return
            if has_started(pod):
                self._stream(pod, spool, follow=False)
            if has_ended(pod):
                spool.finish()
        finally:
            spool.filling.release()

    def _stream(
        self, pod: Json, spool: Spool, *, follow: bool, opened: Callable[[Any], None] | None = None
    ) -> None:
        metadata = pod["metadata"]
        path = member("v1", "pods", metadata["namespace"], metadata["name"], "log")
        query = {"container": training_container(pod), "timestamps": "true"}
        if follow:
            query["follow"] = "true"
        since = spool.begin()
        if since:
            query["sinceTime"] = since
        silence_s = _SILENCE_S if follow else self._config.patience_s[1]
        with self._client.stream(path, query, silence_s) as stream:
            if opened is not None:
                opened(stream)
            for piece in stream.pieces():
                spool.take(piece)

    # --- following ---------------------------------------------------------------------------

    def _follow(self, key: ReplicaKey, spool: Spool) -> bool:
        """Have it followed, and say that somebody is interested; False: too many are."""
        with self._lock:
            known = self._followers.get(key)
            if known is not None:
                known.wanted_at = time.monotonic()
                return True
            if len(self._followers) >= self._config.followers or self._closed.is_set():
                return False
            made = self._followers[key] = _Follower()
        threading.Thread(
            target=self._run_follower, args=(key, spool, made), name="follow", daemon=True
        ).start()
        return True

    def _run_follower(self, key: ReplicaKey, spool: Spool, me: _Follower) -> None:
        pause_s = _FIRST_RETRY_S
        try:
            while not self._closed.is_set() and not spool.is_done and me.is_wanted():
                pod = self._pod_of(key)
                if pod is None or not has_started(pod):
                    self._closed.wait(_FIRST_RETRY_S)
                    continue
                try:
                    self._follow_once(pod, spool, me)
                    pause_s = _FIRST_RETRY_S
                except Refused as error:
                    log.debug("following %s: %s", pod["metadata"]["name"], error.message)
                    self._closed.wait(pause_s)
                    pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
        finally:
            with self._lock:
                self._followers.pop(key, None)
            spool.wake()

    def _follow_once(self, pod: Json, spool: Spool, me: _Follower) -> None:
        with spool.filling:
            if spool.is_done:
                return
            if has_ended(pod):
                self._stream(pod, spool, follow=False)
                spool.finish()
                return
            self._stream(pod, spool, follow=True, opened=me.opened)
        # The stream ends with the container; the pod says so a moment later.
        self._closed.wait(_FIRST_RETRY_S)

    # --- archiving ---------------------------------------------------------------------------

    def is_unclaimed(self, pod: Json) -> bool:
        """Whether it may go at any time and take a log along that is not stored."""
        metadata, key = pod["metadata"], self._key_of(pod)
        if key is None or metadata.get("deletionTimestamp"):
            return False
        return LOG_FINALIZER not in (metadata.get("finalizers") or ()) and not (
            self._spool(key).is_done
        )

    def pod_changed(self, pod: Json) -> None:
        """Called for every change of a pod, as often as one likes; returns at once."""
        if LOG_FINALIZER not in (pod["metadata"].get("finalizers") or ()):
            return
        key = self._key_of(pod)
        if key is None and not self._is_forgotten(pod):
            return  # somebody else stores it
        if _is_to_archive(pod):
            self._submit_once(self._archiving, pod, self._archive)
        elif key is not None and pod["metadata"].get("deletionTimestamp"):
            # Its node throws the log away when the program has ended: most of it is fetched now.
            self._submit_once(self._leaving, pod, self._fetch_ahead)

    def _submit_once(self, begun: set[str], pod: Json, work: Callable[[Json], None]) -> None:
        with self._lock:
            if pod["metadata"]["uid"] in begun or self._closed.is_set():
                return
            begun.add(pod["metadata"]["uid"])
        self._archivers.submit(work, pod)

    def _fetch_ahead(self, pod: Json) -> None:
        key = self._key_of(pod)
        if key is not None:
            self._look(key, self._spool(key))

    def _archive(self, pod: Json) -> None:
        pause_s, uid = _FIRST_RETRY_S, pod["metadata"]["uid"]
        try:
            while not self._closed.is_set():
                try:
                    if self._archive_once(pod):
                        return
                except Refused as error:
                    if error.is_missing:
                        return self._give_up(pod)
                    log.warning(
                        "the log of %s is not stored yet: %s",
                        pod["metadata"]["name"],
                        error.message,
                    )
                except Exception:
                    # The pod waits for us: whatever it was, it is tried again.
                    log.exception("the log of %s is not stored yet", pod["metadata"]["name"])
                self._closed.wait(pause_s)
                pause_s = min(2 * pause_s, _LONGEST_RETRY_S)
                fresh = self._client_pod(pod)
                if fresh is None:
                    return self._give_up(pod)
                pod = fresh
        finally:
            with self._lock:
                self._archiving.discard(uid)
        return None

    def _archive_once(self, pod: Json) -> bool:
        key = self._key_of(pod)
        if key is not None:
            spool = self._spool(key)
            with self._lock:
                follower = self._followers.get(key)
            if follower is not None and not spool.is_done:
                follower.interrupt()  # what it has is in the spool; the rest is fetched here
            if has_started(pod) and not spool.is_done:
                with spool.filling:
                    self._stream_if_any(pod, spool)
                    spool.finish()
            elif not spool.is_done:
                spool.finish()
        self._release(pod)
        return True

    def _stream_if_any(self, pod: Json, spool: Spool) -> None:
        try:
            self._stream(pod, spool, follow=False)
        except Refused as error:
            if error.status != 400:  # the kubelet's word for a container that has no log
                raise
            log.warning("the log of %s: %s", pod["metadata"]["name"], error.message)

    def _client_pod(self, pod: Json) -> Json | None:
        metadata = pod["metadata"]
        try:
            found = self._client.get(member("v1", "pods", metadata["namespace"], metadata["name"]))
        except Refused as error:
            return None if error.is_missing else pod
        return found if found["metadata"]["uid"] == metadata["uid"] else None

    def _give_up(self, pod: Json) -> None:
        """It is gone: what we have is all there will be."""
        key = self._key_of(pod)
        if key is not None:
            self._spool(key).finish()

    def pod_gone(self, pod: Json) -> None:
        with self._lock:
            self._leaving.discard(pod["metadata"]["uid"])
        key = self._key_of(pod)
        if key is not None:
            spool = self._spool(key)
            if not spool.is_done:
                spool.finish()


def _is_to_archive(pod: Json) -> bool:
    """Ended, or told to go and its program does not run any more."""
    if has_ended(pod):
        return True
    state = container_status(pod).get("state") or {}
    return bool(pod["metadata"].get("deletionTimestamp")) and not state.get("running")


class _Follower:
    """One log being followed."""

    def __init__(self) -> None:
        self.wanted_at = time.monotonic()
        self._stream: Any = None

    def is_wanted(self) -> bool:
        return time.monotonic() - self.wanted_at < _INTEREST_S

    def opened(self, stream: Any) -> None:
        self._stream = stream

    def interrupt(self) -> None:
        if self._stream is not None:
            self._stream.interrupt()
