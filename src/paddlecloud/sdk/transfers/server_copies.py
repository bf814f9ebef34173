"""From /pfs to /pfs: the server copies, no byte comes here.

It promises the same rules as every copy (only what differs, `replace`, failures by name). Called
by `copying`.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud.core.errors import NotFound, PaddleCloudError
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane
from paddlecloud.sdk.transfers.planning import Wanted, under
from paddlecloud.sdk.transfers.remote import NO_DIGEST, NO_SIZE
from paddlecloud.sdk.transfers.sessions import Session, Task
from paddlecloud.wire import routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.pfs import Replace
    from paddlecloud.sdk.transfers.events import Action


class ServerCopy:
    def __init__(
        self,
        session: Session,
        wanted: list[Wanted],
        folders: list[str],
        base: str,
        replace: Replace,
    ) -> None:
        self._session = session
        self._wanted = sorted(wanted)
        self._folders = folders
        self._base = base
        self._replace = replace

    def run(self) -> None:
        session, wanted = self._session, self._wanted
        copy, same, skipped = self._decide()
        session.planned(
            len(wanted),
            sum(file.size_bytes for file in wanted),
            len(same),
            sum(wanted[i].size_bytes for i in same),
        )
        if session.is_telling_same():
            self._tell(same, "same")
        self._tell(skipped, "skipped")
        if session.dry_run:
            self._tell(copy, "would send")
            return
        folders = [under(self._base, name) for name in self._folders if name]
        session.remote.make_directories(folders or [self._base])
        session.run(self._task(wanted[i]) for i in copy)

    def _tell(self, indices: Sequence[int], action: Action) -> None:
        for index in indices:
            file = self._wanted[index]
            target = under(self._base, file.name)
            self._session.done(file.source, target, file.size_bytes, 0, action)

    def _decide(self) -> tuple[list[int], list[int], list[int]]:
        everything = list(range(len(self._wanted)))
        if self._replace == "always" or not everything:
            return everything, [], []
        is_never = self._replace == "never"
        rows = [
            (
                file.name,
                NO_SIZE if is_never else file.size_bytes,
                NO_DIGEST if is_never or file.digest is None else file.digest,
            )
            for file in self._wanted
        ]
        told = self._session.remote.compare(self._base, rows)
        if is_never:
            return sorted(told.missing), [], [i for i in everything if i not in told.missing]
        different = told.different - self._same_after_all(
            [i for i in sorted(told.different) if self._wanted[i].digest is None]
        )
        copied = told.missing | different | told.blocked
        return sorted(copied), [i for i in everything if i not in copied], []

    def _same_after_all(self, unsure: list[int]) -> set[int]:
        """Files with something in their place, whose own digest the server did not know yet."""
        digests: dict[int, str] = {}

        def task(index: int) -> Task:
            asked = query({"path": self._wanted[index].source, "digest": "1"})

            def ask(lane: Lane) -> None:
                try:
                    entry = self._session.persist(
                        lambda: lane.call("GET", routes.PFS_ENTRY + asked)
                    )
                except NotFound:
                    return  # the copy will say so
                digests[index] = str(entry["digest"])

            return ask

        if unsure:
            self._session.run(task(index) for index in unsure)
        asked = sorted(digests)
        rows = [(self._wanted[i].name, self._wanted[i].size_bytes, digests[i]) for i in asked]
        return self._session.remote.compare(self._base, rows).same(asked)

    def _task(self, file: Wanted) -> Task:
        target = under(self._base, file.name)
        body = {"from": file.source, "to": target, "recursive": False, "replace": True}

        def copy(lane: Lane) -> None:
            try:
                self._session.persist(lambda: lane.call("POST", routes.PFS_COPY, body))
            except PaddleCloudError as error:
                self._session.fail(file.source, error)
                return
            self._session.copied(file.size_bytes)
            self._session.done(file.source, target, file.size_bytes, 0, "sent")

        return copy
