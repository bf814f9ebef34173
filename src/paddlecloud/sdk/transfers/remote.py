"""The file service's small calls: listing, asking, making, removing, comparing.

It promises: each call is repeated over cuts as `persist` says, which is safe with all of them: what
an attempt has done whose answer was lost is no error of the next; a list of any length comes in
pages. `sdk.pfs` and the transfers call it. It moves no file's bytes.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator, Sequence

from paddlecloud.core.errors import NotFound
from paddlecloud.sdk.http import query
from paddlecloud.sdk.transfers.connections import Lane, may_be_done
from paddlecloud.sdk.transfers.planning import comparable, path_groups, under
from paddlecloud.wire import routes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")

PAGE_ENTRIES = 10_000
NO_DIGEST = "0" * 64  # asks whether anything is there: no file has it
NO_SIZE = 2**62
_MAGIC = "*?["


class Compared:
    """Positions of the files, and of the folders, that were asked about."""

    def __init__(self) -> None:
        self.missing: set[int] = set()
        self.different: set[int] = set()
        self.blocked: set[int] = set()
        self.folders: set[int] = set()  # whose files have to be asked about one by one

    def add(self, told: Compared, positions: Sequence[int], first_folder: int = 0) -> None:
        """What was told about some, which stand at `positions` here."""
        self.missing.update(positions[i] for i in told.missing)
        self.different.update(positions[i] for i in told.different)
        self.blocked.update(positions[i] for i in told.blocked)
        self.folders.update(first_folder + i for i in told.folders)

    def same(self, asked: Sequence[int]) -> set[int]:
        """Which of those asked about, as the caller calls them, are there with the same bytes."""
        other = self.missing | self.different | self.blocked
        return {name for position, name in enumerate(asked) if position not in other}


class Remote:
    def __init__(self, lane: Lane, persist: Callable[[Callable[[], Any]], Any]) -> None:
        self._lane = lane
        self._persist = persist

    def call(self, method: str, path: str, body: object = None) -> Any:
        return self._persist(lambda: self._lane.call(method, path, body))

    # --- looking ---------------------------------------------------------------------------

    def entry(
        self, path: str, *, digest: bool = False, leaves: bool = False, verify: bool = False
    ) -> dict[str, Any]:
        asked = {"path": path, "digest": _flag(digest), "leaves": _flag(leaves)}
        found: dict[str, Any] = self.call(
            "GET", routes.PFS_ENTRY + query({**asked, "verify": _flag(verify)})
        )
        return found

    def kind(self, path: str) -> str:
        """`file`, `directory`, or empty when there is nothing."""
        try:
            return str(self.entry(path)["type"])
        except NotFound:
            return ""

    def entries(
        self, path: str, *, recursive: bool = False, digests: bool = False
    ) -> Iterator[dict[str, Any]]:
        for page in self.pages(path, recursive=recursive, digests=digests):
            yield from page["entries"]

    def pages(
        self, path: str, *, recursive: bool = False, digests: bool = False
    ) -> Iterator[dict[str, Any]]:
        """`entries`, and in `left_out` how many links and special files stand between them."""
        after: str | None = None
        while True:
            asked = {"path": path, "recursive": _flag(recursive), "digests": _flag(digests)}
            page = self.call(
                "GET",
                routes.PFS_ENTRIES + query({**asked, "after": after, "limit": PAGE_ENTRIES}),
            )
            yield page
            after = page["next"]
            if not after:
                return

    def compare(
        self,
        base: str,
        rows: Sequence[tuple[str, int, str]],
        folders: Sequence[tuple[str, int, str]] = (),
    ) -> Compared:
        """Rows of (name, size, digest) against what is stored under `base`; positions in rows.

        `folders`: rows of (name, number of files, digest of the folder).
        """
        answer = Compared()
        if folders:
            body: dict[str, Any] = {"path": base, "files": [], "folders": folders}
            answer.folders.update(self.call("POST", routes.PFS_COMPARE, body)["folders"])
        sizes = [0 if row[1] == NO_SIZE else row[1] for row in rows]
        for run in comparable(rows, sizes):
            start = run.start
            body = {"path": base, "files": rows[start : run.stop]}
            told = self.call("POST", routes.PFS_COMPARE, body)
            answer.missing.update(start + int(i) for i in told["missing"])
            answer.different.update(start + int(i) for i in told["different"])
            answer.blocked.update(start + int(i) for i in told["blocked"])
        return answer

    def expand(self, pattern: str) -> list[str]:
        fixed, parts = _split_pattern(pattern)
        found = [fixed]
        for number, part in enumerate(parts):
            is_last = number == len(parts) - 1
            found = [path for base in found for path in self._matching(base, part, is_last)]
        return sorted(found)

    def _matching(self, base: str, part: str, is_last: bool) -> Iterator[str]:
        if not any(sign in part for sign in _MAGIC):
            if not is_last or self.kind(under(base, part)):
                yield under(base, part)
            return
        try:
            for entry in self.entries(base):
                name = str(entry["name"])
                if name.startswith(".") and not part.startswith("."):
                    continue
                if not is_last and entry["type"] != "directory":
                    continue
                if fnmatch.fnmatchcase(name, part):
                    yield under(base, name)
        except NotFound:
            return

    # --- changing --------------------------------------------------------------------------

    def make_directories(self, paths: Sequence[str]) -> list[str]:
        made: list[str] = []
        for some in path_groups(paths, PAGE_ENTRIES):
            made += self.call("POST", routes.PFS_DIRECTORIES, {"paths": some})["made"]
        return made

    def remove(
        self, paths: Sequence[str], *, recursive: bool, missing_ok: bool
    ) -> list[dict[str, Any]]:
        """`{"path", "files", "bytes"}` of each. What an attempt removed whose answer was lost
        counts 0 files: nobody knows any more."""
        body = {"paths": list(paths), "recursive": recursive, "missing_ok": missing_ok}

        def ask(asked: dict[str, Any]) -> list[dict[str, Any]]:
            removed: list[dict[str, Any]] = self._lane.call("POST", routes.PFS_REMOVE, asked)[
                "removed"
            ]
            return removed

        def attempt(is_again: bool) -> list[dict[str, Any]]:
            try:
                return ask(body)
            except NotFound:
                if not is_again:
                    raise
            rows = {str(row["path"]): row for row in ask({**body, "missing_ok": True})}
            return [
                rows.get(path.rstrip("/"), {"path": path, "files": 0, "bytes": 0}) for path in paths
            ]

        return self._attempts(attempt)

    def move(self, source: str, target: str, *, replace: bool) -> dict[str, Any]:
        body = {"from": source, "to": target, "replace": replace}

        def look(path: str) -> dict[str, Any] | None:
            try:
                entry: dict[str, Any] = self._lane.call(
                    "GET", routes.PFS_ENTRY + query({"path": path})
                )
            except NotFound:
                return None
            return entry

        def attempt(is_again: bool) -> dict[str, Any]:
            try:
                entry: dict[str, Any] = self._lane.call("POST", routes.PFS_MOVE, body)
                return entry
            except NotFound:
                if not is_again or look(source) is not None or (moved := look(target)) is None:
                    raise
                return moved

        return self._attempts(attempt)

    def _attempts(self, attempt: Callable[[bool], T]) -> T:
        """For what cannot be done twice: `attempt` is told if one before may have done it."""
        is_again = False

        def once() -> T:
            nonlocal is_again
            try:
                return attempt(is_again)
            except OSError as cut:
                is_again = is_again or may_be_done(cut)
                raise

        done: T = self._persist(once)
        return done


def has_pattern(text: str) -> bool:
    return any(sign in text for sign in _MAGIC)


def _split_pattern(pattern: str) -> tuple[str, list[str]]:
    """What comes before the first part with a sign in it, and the rest in parts."""
    parts = pattern.split("/")
    first = next((i for i, part in enumerate(parts) if has_pattern(part)), len(parts))
    return "/".join(parts[:first]), parts[first:]


def _flag(value: bool) -> str:
    return "1" if value else "0"
