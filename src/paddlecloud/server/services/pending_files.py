"""Files that a client of the job service sends one by one before its job (`POST /v1/file`).

They wait for the next job sent with the same key, at most `MOST_FILES` of `MAX_FILE_BYTES` each;
the same name again replaces a file. Their bytes are blobs of the account in the file server,
counted in its storage and gone by themselves when no job came to name them; the rows that name
them go a little earlier.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from paddlecloud import clock
from paddlecloud.core.errors import Conflict, Fault, InvalidInput, TooLarge
from paddlecloud.server.authentication import Principal
from paddlecloud.server.database import writing
from paddlecloud.server.exchange import Request
from paddlecloud.server.job_service.models import PendingFile
from paddlecloud.server.services import file_calls, idempotency
from paddlecloud.wire import job_workspace, snapshots

MOST_FILES = 50
MAX_FILE_BYTES = 1 << 20
KEPT_S = 3000.0  # the file server keeps bytes that nothing names for an hour
_MAX_NAME_BYTES = 255
_KEYS = ("version", "fileName", "type", "content", "encoding")


def _of(caller: Principal) -> Any:
    fresh = clock.now() - KEPT_S
    return PendingFile.objects.filter(
        account_id=caller.account_id, ak=caller.ak, sent_at__gte=fresh
    )


def take(request: Request) -> dict[str, Any]:
    """Store one file; what is answered says how many wait."""
    caller = request.caller
    name, data = _read(request.json())
    if idempotency.find(request) is None:
        _check_room(caller, name)
        digest = file_calls.put_blob(caller, data)
        with writing():
            _check_room(caller, name)
            PendingFile.objects.filter(sent_at__lt=clock.now() - KEPT_S).delete()
            PendingFile.objects.update_or_create(
                account_id=caller.account_id,
                ak=caller.ak,
                name=name,
                defaults={"digest": digest, "size_bytes": len(data), "sent_at": clock.now()},
            )
            if idempotency.find(request) is None:
                idempotency.keep(request, 200)
    return {"fileName": name, "size": len(data)}


def _check_room(caller: Principal, name: str) -> None:
    if _of(caller).exclude(name=name).count() >= MOST_FILES:
        raise TooLarge(
            f"{MOST_FILES} files already wait for a job, and that is the most",
            field="fileName",
            hint="put more into an archive under /pfs and name it with codeUri",
        )


def _read(body: dict[str, Any]) -> tuple[str, bytes]:
    faults = [Fault(key, f"unknown key; allowed are {', '.join(_KEYS)}") for key in body
              if key not in _KEYS]  # fmt: skip
    if body.get("version", 1) not in (1, "1"):
        faults.append(Fault("version", "must be 1"))
    if body.get("type", "new") != "new":
        faults.append(Fault("type", "must be new"))
    name = _name(body.get("fileName"), faults)
    content = body.get("content")
    data = b""
    if not isinstance(content, str):
        faults.append(Fault("content", "is needed: the text of the file"))
    elif body.get("encoding", "text") == "text":
        data = content.encode("utf-8", "surrogatepass")
    elif body["encoding"] == "base64":
        try:
            data = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError):
            faults.append(Fault("content", "is not base64"))
    else:
        faults.append(Fault("encoding", "must be text or base64"))
    if faults:
        raise InvalidInput(faults=faults)
    if len(data) > MAX_FILE_BYTES:
        raise TooLarge(
            f"{name} has {len(data)} bytes; at most {MAX_FILE_BYTES} (1 MiB) are taken this way",
            field="content",
            hint="put it under /pfs (paddlecloud pfs cp) and name it with codeUri",
        )
    return name, data


def _name(given: object, faults: list[Fault]) -> str:
    """The last part of what was sent: files land in the workspace by their base names."""
    if not isinstance(given, str):
        faults.append(Fault("fileName", "is needed: the name of the file"))
        return ""
    name = given.replace("\\", "/").rpartition("/")[2]
    is_fit = name not in ("", ".", "..") and name.isprintable()
    if not is_fit or len(name.encode("utf-8", "replace")) > _MAX_NAME_BYTES:
        problem = f"must be a file name of at most {_MAX_NAME_BYTES} bytes"
        faults.append(Fault("fileName", problem, given[:80]))
    return name


def package(caller: Principal) -> str:
    """The digest of a stored package: what waits, below the start script of such jobs."""
    script = job_workspace.SCRIPT.encode()
    files = [
        snapshots.File(job_workspace.SCRIPT_NAME, len(script), False, file_calls.digest_of(script))
    ]
    names: dict[str, str] = {}
    for name, size_bytes, digest in _of(caller).values_list("name", "size_bytes", "digest"):
        path = f"{job_workspace.FOLDER}/{name}"
        files.append(snapshots.File(path, size_bytes, False, digest))
        names[digest] = name
    folders = () if names else (job_workspace.FOLDER,)
    snapshot = snapshots.make(files, folders)
    digest, missing = file_calls.put_snapshot(caller, snapshot)
    if files[0].digest in missing:
        file_calls.put_blob(caller, script)
        digest, missing = file_calls.put_snapshot(caller, snapshot)
    if missing:
        gone = ", ".join(sorted(names.get(each, each) for each in missing))
        raise Conflict(f"these files are no longer kept: {gone}", hint="send them again")
    return digest


def forget(caller: Principal) -> None:
    """They have become a job's."""
    with writing():
        PendingFile.objects.filter(account_id=caller.account_id, ak=caller.ak).delete()
