"""The folder a job works in: filled from its pinned package, without ever losing an output.

`jobs/<name>` in the account's home. If an ended run left its folder there, that folder is first
moved to `jobs/.ended/<name>-<job id>` (`-run<n>` for a re-run of the same job) and the rows
follow it. Everything here can be interrupted anywhere and done again: the row's `prepared` flag
is set last.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import msgspec

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.core.phases import Phase
from paddlecloud.pfs.diskstore import Tree
from paddlecloud.pfs.snapshots import NoLongerWanted
from paddlecloud.server.database import rows_only, writing
from paddlecloud.server.exchange import encode
from paddlecloud.server.jobs.models import Job, Run
from paddlecloud.server.services import locating, mirroring, packages
from paddlecloud.wire.pfspath import PUBLIC, PfsPath

log = logging.getLogger(__name__)

OUTPUT = "output"
ENDED = ".ended"
_lock = threading.Lock()
_busy: set[str] = set()  # jobs a request thread is preparing right now


def prepare(job: Job, is_wanted: Callable[[], bool] = lambda: True) -> bool:
    """Fill the folder and mark the row. False: it could not be, and the job has been failed, or
    it was no longer wanted."""
    rows_only("filling a job's folder")
    with _lock:
        if job.id in _busy:
            return False  # whoever is at it tells the feeder when it is done
        _busy.add(job.id)
    try:
        _fill(job, is_wanted)
    except NoLongerWanted:
        return False
    except (OSError, PaddleCloudError) as error:
        log.warning("the folder of %s could not be filled: %s", job.id, error)
        mirroring.record_end(job, Phase.FAILED, f"its folder could not be filled: {_words(error)}")
        return False
    finally:
        with _lock:
            _busy.discard(job.id)
    with writing():
        Job.objects.filter(pk=job.id).update(prepared=True)
    job.prepared = True
    return True


def _words(error: Exception) -> str:
    if isinstance(error, PaddleCloudError):
        return error.message
    return getattr(error, "strerror", None) or str(error)


def _fill(job: Job, is_wanted: Callable[[], bool]) -> None:
    if not job.package:
        return  # its pods work where their templates say
    path = PfsPath.parse(job.package)
    account = job.account
    tree = locating.tree_of(account.pk, account.username, path)
    if job.package_digest:
        _put_aside(tree, path, job)
        packages.fill(account.pk, job.package_digest, tree, path.parts, is_wanted)
    if path.area != PUBLIC:
        tree.make_directory([*path.parts, OUTPUT])


def _put_aside(tree: Tree, path: PfsPath, job: Job) -> None:
    """Move what an earlier run left in the folder; what nobody's run made stays (uploaded data)."""
    text = locating.text(path)
    earlier = (
        Run.objects.filter(package=text, ended_at__isnull=False)
        .exclude(job_id=job.id, run=job.run)
        .order_by("-ended_at")
        .first()
    )
    if earlier is None or not tree.is_directory(path.parts):
        return
    name = f"{path.name}-{earlier.job_id}"
    if earlier.job_id == job.id:
        name += f"-run{earlier.run}"
    aside = path.parent.child(ENDED).child(name)
    # Rows first: after a crash in between they point to where the next attempt moves the folder.
    with writing():
        if not tree.is_directory(aside.parts):
            tree.move(path.parts, aside.parts)
        _follow(text, locating.text(aside), job)


def _follow(old: str, new: str, job: Job) -> None:
    """Ended runs that worked in `old` are found at `new` from now on."""
    Run.objects.filter(package=old, ended_at__isnull=False).exclude(
        job_id=job.id, run=job.run
    ).update(package=new)
    for other in Job.objects.filter(package=old, live=False).exclude(pk=job.id):
        wish = msgspec.json.decode(other.wish_v1)
        wish["job_package"] = new
        Job.objects.filter(pk=other.pk).update(package=new, wish_v1=encode(wish).decode())
