"""`paddlecloud pfs sync`: makes one folder like another; only what differs travels.

With `--delete` what the source lacks is removed from the target, after all the rest has arrived.
"""

from __future__ import annotations

from paddlecloud.cli.everywhere import output_flag
from paddlecloud.cli.pfs import paths, transfer
from paddlecloud.cli.session import Session
from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.go_flags import Flag, Kind
from paddlecloud.sdk.transfers.events import FileDone

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.sdk.transfers.events import OnEvent, Summary

USAGE = "paddlecloud pfs sync [--delete] [--dry-run] [-p] [-v] SOURCE TARGET"
HELP = """
SRC/ is what is in the folder and SRC the folder itself: `sync ./data/ '~/copy'` makes the two
alike, `sync ./data '~/copy'` makes ~/copy/data; only a TARGET of the same name, '~/data', is the
folder itself. --delete removes what the source lacks, only once everything else went well;
--dry-run shows what would be done.

Examples:
  paddlecloud pfs sync ./data/ '~/data'
  paddlecloud pfs sync --delete --dry-run ./data/ '~/data'
  paddlecloud pfs sync '~/jobs/wide-deep/output/' ./output
"""
FLAGS = (
    Flag(("--delete",), Kind.BOOL, meaning="remove from TARGET what SOURCE lacks"),
    Flag(("--dry-run",), Kind.BOOL, meaning="only show what would be done"),
    Flag(("-p", "--preserve"), Kind.BOOL, meaning="keep the times of the last change"),
    Flag(("-v", "--verbose"), Kind.BOOL, meaning="one line per file"),
    output_flag("json", "yaml"),
)


def run(session: Session) -> int:
    words = session.parsed.positionals
    if len(words) != 2:
        raise InvalidInput("sync needs two folders: from, and to", hint=f"usage: {USAGE}")
    source, target = paths.resolve(session, words)
    way = transfer.direction([source], target, "sync")
    is_dry, is_data = session.parsed.switch("dry-run"), "o" in session.parsed
    is_told = session.parsed.switch("v")
    kept: list[FileDone] = []

    def tell(done: FileDone) -> str | None:
        if is_data:
            kept.append(done)
            return None
        is_shown = is_told or is_dry or done.action == "removed"
        return way.file_line(done) if is_shown else None

    teller = transfer.Teller(session, way, [source], told=tell)

    def start(on_event: OnEvent) -> Summary:
        return session.client.files.sync(
            source,
            target,
            delete=session.parsed.switch("delete"),
            dry_run=is_dry,
            preserve_times=session.parsed.switch("p"),
            tell_same=is_told,
            on_event=on_event,
        )

    summary = transfer.carry_out(session, teller, start)
    if is_data and summary is not None:
        from paddlecloud.cli.output import print_object

        items = kept if is_told or is_dry else ()
        print_object(session, transfer.as_data(summary, items), session.parsed.text("o"))
    return transfer.finish(session, way, summary, dry_run=is_dry)
