"""How the text of each field of a job is read, the same for every form.

`READERS` maps a field of `Draft` to a function from text to its value. A reader refuses with a
ValueError whose message is a sentence about the value ("must be a whole number from 1 to 10000"),
to which the form adds the field as the user wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.core import names
from paddlecloud.core.jobspec import CleanPolicy, Mode, Priority
from paddlecloud.core.resources import MAX_GPUS, parse_cpu, parse_memory
from paddlecloud.forms.durations import parse_duration_s, parse_whole_seconds
from paddlecloud.forms.faults import BadValue, nearest
from paddlecloud.forms.scalars import read_bool, whole_number

MAX_REPLICAS = 10_000
MAX_PASSES = 1_000_000
MAX_RESTARTS = 1_000
MAX_GRACE_S = 24 * 3600
MIN_MEMORY_BYTES = 2**20
MAX_ENTRY_BYTES = 64 * 1024
MAX_ENV_BYTES = 64 * 1024
MAX_WORD = 512
MAX_ANNOTATION_BYTES = 4096

# The note that says who may see a job, and its word for the members of its group.
PERMISSION, SHARED = "permission", "group"

MODES = (Mode.SINGLE, Mode.COLLECTIVE, Mode.PS)  # what flags and REST bodies can express

_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_NAME = re.compile(r"(?:[a-z0-9.-]{1,253}/)?[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MAX_LABEL = 63


# --- numbers ---------------------------------------------------------------------------------


def read_cpu(text: str) -> int:
    milli = parse_cpu(text)
    if milli == 0:
        raise BadValue("must be more than 0; write cores such as 1, 0.5 or 500m")
    return milli


def read_memory(text: str) -> int:
    size_bytes = parse_memory(text)
    if size_bytes < MIN_MEMORY_BYTES:
        number = re.match(r"[0-9.]*", text.strip())
        digits = (number.group() if number else "") or "1"
        advice = f" (did you mean {digits}Gi or {digits}Mi?)" if size_bytes else ""
        raise BadValue(f"is {size_bytes} bytes; at least 1Mi is needed{advice}")
    return size_bytes


def read_seconds(text: str) -> float:
    seconds = parse_duration_s(text)
    if seconds > MAX_GRACE_S:
        raise BadValue("is longer than a day")
    return seconds


def read_exit_codes(text: str) -> frozenset[int]:
    """`1,2,137`. 0 is success and is never retried."""
    read = whole_number(1, 255)
    try:
        return frozenset(read(part) for part in text.split(",") if part.strip())
    except BadValue:
        raise BadValue("must be exit codes from 1 to 255, separated by commas") from None


# --- words -----------------------------------------------------------------------------------


def _one_of(text: str, allowed: Mapping[str, Any]) -> Any:
    """The value of a word; case, `-`, `_` and blanks around it do not matter."""
    squeezed = {_squeeze(word): value for word, value in allowed.items()}
    found = squeezed.get(_squeeze(text))
    if found is None:
        near = nearest(_squeeze(text), squeezed)
        wanted = [word for word in allowed if _squeeze(word) == near]
        advice = f"; did you mean {wanted[0]}?" if wanted else ""
        raise BadValue(f"must be one of {', '.join(allowed)}{advice}")
    return found


def _squeeze(word: str) -> str:
    return word.strip().lower().replace("-", "").replace("_", "")


def read_mode(text: str) -> Mode:
    mode: Mode = _one_of(text, {mode.value: mode for mode in MODES})
    return mode


def read_priority(text: str) -> Priority:
    priority: Priority = _one_of(text, {priority.word: priority for priority in Priority})
    return priority


def read_permission(text: str) -> str:
    """Who may see a job."""
    word: str = _one_of(text, {word: word for word in ("private", SHARED)})
    return word


def read_clean_policy(text: str) -> CleanPolicy:
    policy: CleanPolicy = _one_of(text, {policy.value: policy for policy in CleanPolicy})
    return policy


# --- texts -----------------------------------------------------------------------------------


def _check_encodable(text: str) -> int:
    """How many bytes the text has; refuses what no operating system could pass on."""
    if "\0" in text:
        raise BadValue("contains a NUL character")
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        raise BadValue("is not valid Unicode") from None


def read_name(text: str) -> str:
    names.check_job_name(text, "A")
    return text


def read_entry(text: str) -> str:
    """A shell command. Empty means unset, as the first client sends it."""
    if _check_encodable(text) > MAX_ENTRY_BYTES:
        raise BadValue(f"is longer than {MAX_ENTRY_BYTES // 1024} KiB; put it into a script")
    if text and not text.strip():
        raise BadValue('is blank; write a command such as "python train.py"')
    return text


def read_word(text: str) -> str:
    """A name without blanks: an image, a runtime, a secret, a cluster."""
    if len(text) > MAX_WORD:
        raise BadValue(f"is {len(text)} characters long; at most {MAX_WORD} are allowed")
    if not text.isprintable() or " " in text:
        raise BadValue("contains a blank or a control character")
    _check_encodable(text)
    return text


def read_path(text: str) -> str:
    if _check_encodable(text) > 4096:
        raise BadValue("is longer than 4096 bytes")
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise BadValue("contains a control character")
    return text


def is_pfs_path(text: str) -> bool:
    return text == "/pfs" or text.startswith("/pfs/")


def read_package(text: str) -> str:
    """The directory a job runs in, if it is a /pfs path; empty for a folder still to be uploaded.

    Only tidied here; who may use which path is the server's business.
    """
    text = unicodedata.normalize("NFC", read_path(text))
    if not is_pfs_path(text):
        return ""
    parts = [part for part in text.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise BadValue("contains '..'; write the whole path")
    if len(parts) < 4:
        raise BadValue("path must like /pfs/[dc]/home/[user]")
    return "/" + "/".join(parts)


def cluster_of_package(package: str) -> str:
    """The <datacenter> of a path `read_package` returned."""
    return package.split("/")[2] if package else ""


def read_digest(text: str) -> str:
    if text and not _DIGEST.fullmatch(text):
        raise BadValue("must be a SHA-256 in 64 small hexadecimal digits")
    return text


# --- pairs -----------------------------------------------------------------------------------


def split_pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise BadValue("must be NAME=value")
    return name, value


def check_env(name: str, value: str) -> None:
    if not _ENV_NAME.fullmatch(name) or len(name) > MAX_WORD:
        raise BadValue(
            "must be named with letters, digits and '_', not beginning with a digit (NAME=value)"
        )
    if _check_encodable(value) > MAX_ENV_BYTES:
        raise BadValue(f"is longer than {MAX_ENV_BYTES // 1024} KiB")


def check_label(name: str, value: str) -> None:
    if not _LABEL_NAME.fullmatch(name) or len(name.rpartition("/")[2]) > _MAX_LABEL:
        raise BadValue(
            "must be named with at most 63 letters, digits and '. _ -', beginning and ending "
            "with a letter or digit (name=value)"
        )
    if not _LABEL_VALUE.fullmatch(value) or len(value) > _MAX_LABEL:
        raise BadValue(
            "must have a value of at most 63 letters, digits and '. _ -', beginning and ending "
            "with a letter or digit"
        )


def check_annotation(name: str, value: str) -> None:
    """Named like a label; the value is any text a person could have written."""
    check_label(name, "")
    if _check_encodable(value) > MAX_ANNOTATION_BYTES:
        raise BadValue(f"is longer than {MAX_ANNOTATION_BYTES} bytes")


# How the pairs of these fields of `Draft` are checked.
PAIR_CHECKS: Mapping[str, Callable[[str, str], None]] = {
    "env": check_env,
    "labels": check_label,
    "annotations": check_annotation,
}

# Field of `Draft` -> how its text is read. Those of `PAIR_CHECKS` are read pair by pair.
READERS: Mapping[str, Callable[[str], Any]] = {
    "name": read_name,
    "mode": read_mode,
    "parallelism": whole_number(1, MAX_REPLICAS),
    "min_instance": whole_number(1, MAX_REPLICAS),
    "max_instance": whole_number(1, MAX_REPLICAS),
    "cpu_milli": read_cpu,
    "memory_bytes": read_memory,
    "gpu": whole_number(0, MAX_GPUS),
    "pservers": whole_number(0, MAX_REPLICAS),
    "pscpu_milli": read_cpu,
    "psmemory_bytes": read_memory,
    "entry": read_entry,
    "topology": read_path,
    "package": read_package,
    "package_digest": read_digest,
    "cluster": read_word,
    "runtime": read_word,
    "registry": read_word,
    "passes": whole_number(1, MAX_PASSES),
    "fault_tolerant": read_bool,
    "priority": read_priority,
    "wall_time_s": parse_whole_seconds,
    "max_restarts": whole_number(0, MAX_RESTARTS),
    "restart_exit_codes": read_exit_codes,
    "grace_s": read_seconds,
    "clean": read_clean_policy,
    "may_borrow": read_bool,
    "group": read_word,
}
