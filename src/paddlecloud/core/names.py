"""Names: which are allowed, and how any name becomes a DNS label without two ever meeting.

`dns_label` turns a user or job name into a DNS-1123 label (at most 63 of `a-z 0-9 -`, first and
last a letter or digit) for namespaces, pods and host names. A name that already is such a label
stays as it is; any other becomes

    slug--1codes     every byte outside [a-z0-9] is a dash in the slug, its hex code follows
    0slug--0codes    the same, for a slug that would begin with a dash
    slug--2hash      too long for that: the slug's beginning and 160 bits of SHA-256

so `a.b@c` is `a-b-c--12e40` and `a_b@c` is `a-b-c--15f40`. The first two can be read back by
`from_dns_label`. Names that contain `--` are always encoded, hence no plain name can look like
an encoded one. The checks raise `BadName` with a sentence fit for a user.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

MAX_LABEL = 63
MAX_JOB_NAME = 63
MAX_FREE_JOB_NAME = 200
MAX_ACCOUNT_NAME = 150
JOB_ID_BYTES = 8
ALGORITHM_ID_BYTES = 8

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_PLAIN_BYTES = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789")
_ENCODED = re.compile(r"(?s)(.*)--([01])((?:[0-9a-f]{2})+)")
_HASH_DIGITS = 40
_JOB_ID = re.compile(r"job-[0-9a-f]{16}")
_ALGORITHM_ID = re.compile(r"algo-[0-9a-f]{16}")
_JOB_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?")
_UNSHOWABLE = frozenset({"Cc", "Cs", "Zl", "Zp"})  # controls, half characters, line breaks
_ACCOUNT_NAME = re.compile(r"[\w.@+-]+")


class BadName(ValueError):
    """The name is not allowed; the message says what is."""


# --- DNS labels ------------------------------------------------------------------------------


def _is_label(text: str) -> bool:
    return len(text) <= MAX_LABEL and _LABEL.fullmatch(text) is not None


def dns_label(name: str) -> str:
    """A DNS label for any non-empty name; different names have different labels."""
    if not name:
        raise BadName("is empty")
    if _is_label(name) and "--" not in name:
        return name
    # surrogatepass: a file name that was no UTF-8 is still a name.
    raw = name.encode("utf-8", "surrogatepass")
    slug = "".join(chr(byte) if byte in _PLAIN_BYTES else "-" for byte in raw)
    codes = "".join(f"{byte:02x}" for byte in raw if byte not in _PLAIN_BYTES)
    marker = "1"
    if slug.startswith("-"):
        slug, marker = f"0{slug}", "0"
    label = f"{slug}--{marker}{codes}"
    if codes and len(label) <= MAX_LABEL:
        return label
    digest = hashlib.sha256(raw).hexdigest()[:_HASH_DIGITS]
    head = slug[: MAX_LABEL - len("--2") - _HASH_DIGITS].rstrip("-")
    return f"{head}--2{digest}"


def from_dns_label(label: str) -> str:
    """The name `dns_label` was given. Labels that hold a hash cannot be read back."""
    if not _is_label(label):
        raise BadName("is not a DNS label")
    if "--" not in label:
        return label
    match = _ENCODED.fullmatch(label)
    if match is None:
        raise BadName("does not say which name it was made from")
    slug, marker, codes = match.groups()
    if marker == "0":
        slug = slug[1:]
    replaced = iter(bytes.fromhex(codes))
    try:
        raw = bytes(next(replaced) if char == "-" else ord(char) for char in slug)
        name = raw.decode("utf-8", "surrogatepass")
    except (RuntimeError, UnicodeDecodeError):
        name = ""
    # Encoding again catches what decoding is too kind about: spare codes, codes of plain letters.
    if not name or dns_label(name) != label:
        raise BadName("was not made from a name")
    return name


# --- jobs ------------------------------------------------------------------------------------


def check_job_name(name: str, generation: str = "A") -> None:
    """Generation A names live in paths and host names; generation B names are free text."""
    if not name:
        raise BadName("is empty; write a name such as my-job")
    if generation == "A":
        _check_strict_job_name(name)
    else:
        _check_free_job_name(name)


def _check_strict_job_name(name: str) -> None:
    if "." in name or "_" in name:
        raise BadName("jobname can not contain '.' or '_'")  # the words of the first client
    if len(name) > MAX_JOB_NAME:
        raise BadName(f"is {len(name)} characters long; at most {MAX_JOB_NAME} are allowed")
    if not _JOB_NAME.fullmatch(name):
        raise BadName(
            "may contain letters a-z, digits and '-' only, and begins and ends with "
            "a letter or digit"
        )


def _check_free_job_name(name: str) -> None:
    if len(name) > MAX_FREE_JOB_NAME:
        raise BadName(f"is {len(name)} characters long; at most {MAX_FREE_JOB_NAME} are allowed")
    if any(unicodedata.category(char) in _UNSHOWABLE for char in name):
        raise BadName("contains a control character or a line break")
    if name != name.strip():
        raise BadName("begins or ends with a blank")


def plain_job_name(name: str, suffix: str) -> str:
    """A generation A name for a free one: `训练 a_b:1` and `1f2e3d` make `a-b-1-1f2e3d`.

    Free names need not be unique; `suffix` (letters and digits, by the caller) makes this one so.
    """
    words = re.split(r"[^a-z0-9]+", name.lower())
    slug = "-".join(word for word in words if word)[: MAX_JOB_NAME - len(suffix) - 1].rstrip("-")
    return f"{slug or 'job'}-{suffix}"


def new_job_id(random_bytes: bytes) -> str:
    """`job-<16 hex>`; the caller brings the randomness."""
    if len(random_bytes) != JOB_ID_BYTES:
        raise ValueError(f"a job id is made of {JOB_ID_BYTES} bytes, not {len(random_bytes)}")
    return f"job-{random_bytes.hex()}"


def is_job_id(text: str) -> bool:
    return _JOB_ID.fullmatch(text) is not None


def new_algorithm_id(random_bytes: bytes) -> str:
    """`algo-<16 hex>`; the caller brings the randomness."""
    if len(random_bytes) != ALGORITHM_ID_BYTES:
        raise ValueError(f"it is made of {ALGORITHM_ID_BYTES} bytes, not {len(random_bytes)}")
    return f"algo-{random_bytes.hex()}"


def is_algorithm_id(text: str) -> bool:
    return _ALGORITHM_ID.fullmatch(text) is not None


# --- accounts --------------------------------------------------------------------------------


def check_account_name(name: str) -> None:
    """An e-mail address or a word: it is a part of /pfs paths, so nothing a path could mistake."""
    if not name:
        raise BadName("is empty; write a name or an e-mail address")
    if len(name) > MAX_ACCOUNT_NAME or len(name.encode("utf-8", "surrogatepass")) > 255:
        raise BadName(f"is too long; at most {MAX_ACCOUNT_NAME} characters are allowed")
    if name[0] in "-.":
        raise BadName(f"begins with '{name[0]}'; begin with a letter or digit")
    if not _ACCOUNT_NAME.fullmatch(name):
        raise BadName("may contain letters, digits and @ . + - _ only")
    # Two spellings of one visible name would be two people.
    if unicodedata.normalize("NFC", name) != name:
        raise BadName("is not in Unicode NFC form")
