"""`Files`, reached as `Client.files`: the files under `/pfs`, and moving them in both directions.

It promises: what it says is stored is stored whole; running the same call again goes on where the
last one was cut; errors are `core.errors` classes. Scripts and `paddlecloud pfs` call it. It never
prints, never follows a link, and never writes outside the target it was given.

    files = Client().files
    files.copy(["./data"], "/pfs/local/home/alice/", recursive=True)     # .../alice/data/...
    files.copy(["./data/"], "/pfs/local/home/alice/d", recursive=True)   # .../alice/d/...
    files.sync("/pfs/local/home/alice/d/", "./d", delete=True)

Each side is local or `/pfs/...`. As with rsync, `src` is the folder and `src/` what is in it: a
folder always goes *into* the target, whether that exists or not, so that running the same call
again means the same. A single file becomes the target itself unless the target ends in `/`, is a
directory, or there are several sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddlecloud.sdk.transfers.events import OnEvent, Summary, ignore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from paddlecloud.sdk.transport import Transport

    Replace = Literal["changed", "always", "never"]

CONNECTIONS = 2  # more than two writers per file were never faster


class Files:
    """The file calls of one client. Safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    # --- looking ---------------------------------------------------------------------------

    def entries(
        self, path: str, recursive: bool = False, digests: bool = False
    ) -> Iterator[dict[str, Any]]:
        """What is in a directory (or the one file), sorted; pages come as needed.

        `{"name", "type": "file"|"directory", "size", "mtime_ns", "executable", "digest"}`; names
        are relative to `path`, depth first.
        """
        raise NotImplementedError

    def entry(
        self, path: str, verify: bool = False, leaves: bool = False, digest: bool = False
    ) -> dict[str, Any]:
        """One file or directory. `verify` reads all its bytes again and finds bit rot."""
        raise NotImplementedError

    def usage(self, path: str) -> dict[str, Any]:
        raise NotImplementedError

    def expand(self, pattern: str) -> list[str]:
        """The paths a pattern under /pfs means (`*`, `?`, `[...]` within a name), sorted.

        A path without these signs is itself, whether it exists or not.
        """
        raise NotImplementedError

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes of a file, as they come; over cuts, never of two versions of it."""
        raise NotImplementedError

    # --- changing --------------------------------------------------------------------------

    def make_directories(self, paths: Sequence[str]) -> list[str]:
        """Make them and their parents; returns those that were not there."""
        raise NotImplementedError

    def remove(
        self, paths: Sequence[str], recursive: bool = False, missing_ok: bool = False
    ) -> list[dict[str, Any]]:
        """All or none: `{"path", "files", "bytes"}` of each."""
        raise NotImplementedError

    def move(self, source: str, target: str, replace: bool = False) -> dict[str, Any]:
        raise NotImplementedError

    def uploads(self) -> list[dict[str, Any]]:
        """Unfinished uploads: `{"id", "path", "size", "received_bytes", "age_s"}`."""
        raise NotImplementedError

    def abandon(self, upload_id: str) -> None:
        raise NotImplementedError

    # --- moving many -----------------------------------------------------------------------

    def copy(
        self,
        sources: Sequence[str],
        target: str,
        *,
        recursive: bool = False,
        replace: Replace = "changed",
        preserve_times: bool = False,
        chunk_bytes: int | None = None,
        connections: int = CONNECTIONS,
        dry_run: bool = False,
        tell_same: bool = False,
        on_event: OnEvent = ignore,
    ) -> Summary:
        """Send, fetch, or copy within /pfs; only what differs travels.

        A file that cannot be moved is a failure in the summary; the others still go. What stops
        everything (no server, no space, not logged in, a source that is not there) is raised.
        Folders need `recursive`. `replace="always"` sends what is the same too; `"never"` leaves
        every existing file alone. `chunk_bytes`: the most one request carries of a large file.
        Symbolic links and special files are left out and noted.
        """
        raise NotImplementedError

    def sync(
        self,
        source: str,
        target: str,
        *,
        delete: bool = False,
        dry_run: bool = False,
        preserve_times: bool = True,
        chunk_bytes: int | None = None,
        connections: int = CONNECTIONS,
        tell_same: bool = False,
        on_event: OnEvent = ignore,
    ) -> Summary:
        """`copy` of one source with everything in it; `delete` makes the target exactly that.

        What the source lacks is removed only after everything else was moved without a failure.
        """
        raise NotImplementedError
