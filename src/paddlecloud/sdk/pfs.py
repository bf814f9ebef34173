"""`Files`, reached as `Client.files`: the files under `/pfs`, and moving them in both directions.

It promises: what it says is stored is stored whole; running the same call again goes on where the
last one was cut; errors are `core.errors` classes. Scripts and `paddlecloud pfs` call it. It never
prints, never follows a link, and never writes outside the target it was given.

    files = Client().files
    files.copy(["./data"], "/pfs/local/home/alice/", recursive=True)     # .../alice/data/...
    files.copy(["./data/"], "/pfs/local/home/alice/d", recursive=True)   # .../alice/d/...
    files.sync("/pfs/local/home/alice/d/", "./d", delete=True)

Each side is local or `/pfs/...`. As with rsync, `src` is the folder and `src/` what is in it: a
folder goes *into* the target, whether that exists or not, so that running the same call again means
the same; only a target that ends in the folder's own name is the folder (`data` to `.../data`). A
single file becomes the target itself unless the target ends in `/`, is a directory, or there are
several sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paddlecloud.sdk.transfers.events import OnEvent, Summary, ignore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from paddlecloud.sdk.snapshots import Snapshot
    from paddlecloud.sdk.transfers.connections import Plane
    from paddlecloud.sdk.transfers.remote import Remote
    from paddlecloud.sdk.transport import Transport

    Replace = Literal["changed", "always", "never"]

CONNECTIONS = 2  # more than two writers per file were never faster


class Files:
    """The file calls of one client. Safe to use from several threads."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._plane: Plane | None = None

    @property
    def plane(self) -> Plane:
        """The way to the file service."""
        if self._plane is None:
            from paddlecloud.sdk.transfers.connections import Plane

            self._plane = Plane(self._transport)
        return self._plane

    @property
    def _remote(self) -> Remote:
        from paddlecloud.sdk.transfers.connections import Lane, Patience, persist
        from paddlecloud.sdk.transfers.remote import Remote

        plane = self.plane

        def come_through(attempt: Any) -> Any:
            try:
                return persist(Patience(plane.give_up_s), attempt)
            except OSError as cut:
                raise plane.unreachable(cut) from cut

        return Remote(Lane(plane), come_through)

    def close(self) -> None:
        if self._plane is not None:
            self._plane.close()

    # --- looking ---------------------------------------------------------------------------

    def entries(
        self, path: str, recursive: bool = False, digests: bool = False
    ) -> Iterator[dict[str, Any]]:
        """What is in a directory (or the one file), sorted; pages come as needed.

        `{"name", "type": "file"|"directory", "size", "mtime_ns", "executable", "digest"}`; names
        are relative to `path`, depth first.
        """
        return self._remote.entries(path, recursive=recursive, digests=digests)

    def entry(
        self, path: str, verify: bool = False, leaves: bool = False, digest: bool = False
    ) -> dict[str, Any]:
        """One file or directory. `verify` reads all its bytes again and finds bit rot."""
        return self._remote.entry(path, digest=digest, leaves=leaves, verify=verify)

    def usage(self, path: str) -> dict[str, Any]:
        from paddlecloud.sdk.http import query
        from paddlecloud.wire import routes

        usage: dict[str, Any] = self._remote.call("GET", routes.PFS_USAGE + query({"path": path}))
        return usage

    def expand(self, pattern: str) -> list[str]:
        """The paths a pattern under /pfs means (`*`, `?`, `[...]` within a name), sorted.

        A path without these signs is itself, whether it exists or not.
        """
        from paddlecloud.sdk.transfers.remote import has_pattern

        return self._remote.expand(pattern) if has_pattern(pattern) else [pattern]

    def read(self, path: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The bytes of a file, as they come; over cuts, never of two versions of it."""
        from paddlecloud.sdk.transfers.reading import read

        return read(self.plane, path, offset, length)

    # --- changing --------------------------------------------------------------------------

    def make_directories(self, paths: Sequence[str]) -> list[str]:
        """Make them and their parents; returns those that were not there."""
        return self._remote.make_directories(paths)

    def remove(
        self, paths: Sequence[str], recursive: bool = False, missing_ok: bool = False
    ) -> list[dict[str, Any]]:
        """All or none: `{"path", "files", "bytes"}` of each."""
        return self._remote.remove(paths, recursive=recursive, missing_ok=missing_ok)

    def move(self, source: str, target: str, replace: bool = False) -> dict[str, Any]:
        return self._remote.move(source, target, replace=replace)

    def uploads(self) -> list[dict[str, Any]]:
        """Unfinished uploads: `{"id", "path", "size", "received_bytes", "age_s"}`."""
        from paddlecloud.wire import routes

        found: list[dict[str, Any]] = self._remote.call("GET", routes.PFS_UPLOADS)["uploads"]
        return found

    def abandon(self, upload_id: str) -> None:
        from paddlecloud.wire import routes

        self._remote.call("DELETE", routes.fill(routes.PFS_UPLOAD, id=upload_id))

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
        from paddlecloud.sdk.transfers.copying import Wish

        wish = Wish(recursive, replace, preserve_times, chunk_bytes)
        return self._transfer(
            sources,
            target,
            wish,
            on_event=on_event,
            connections=connections,
            dry_run=dry_run,
            tell_same=tell_same,
        )

    def sync(
        self,
        source: str,
        target: str,
        *,
        delete: bool = False,
        dry_run: bool = False,
        preserve_times: bool = False,
        chunk_bytes: int | None = None,
        connections: int = CONNECTIONS,
        tell_same: bool = False,
        on_event: OnEvent = ignore,
    ) -> Summary:
        """`copy` of one source with everything in it; `delete` makes the target exactly that.

        What the source lacks is removed only after everything else was moved without a failure.
        """
        from paddlecloud.sdk.transfers.copying import Wish

        wish = Wish(True, "changed", preserve_times, chunk_bytes, delete)
        return self._transfer(
            [source],
            target,
            wish,
            on_event=on_event,
            connections=connections,
            dry_run=dry_run,
            tell_same=tell_same,
        )

    def _transfer(self, sources: Sequence[str], target: str, wish: Any, **how: Any) -> Summary:
        from paddlecloud.sdk.transfers.copying import Copying
        from paddlecloud.sdk.transfers.digest_cache import DigestCache
        from paddlecloud.sdk.transfers.sessions import Session

        session = Session(self.plane, **how)
        cache = DigestCache(server=self.plane.transport.endpoint.url)
        try:
            Copying(session, wish, cache).run(sources, target)
        except BaseException:
            session.stop()  # no thread of ours goes on behind an error or an interrupt
            raise
        finally:
            cache.close()
        return session.finish()

    # --- snapshots -------------------------------------------------------------------------

    def put_snapshot(self, snapshot: Snapshot, on_event: OnEvent = ignore) -> str:
        """Make the server have a folder collected by `sdk.snapshots`; returns its digest.

        Only contents the server lacks travel, and of the list only what changed since the last
        time.
        """
        from paddlecloud.sdk import snapshots
        from paddlecloud.sdk.transfers.sessions import Session

        return snapshots.put(Session(self.plane, on_event), snapshot)
