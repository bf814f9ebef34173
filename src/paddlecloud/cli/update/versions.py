"""Which of two versions is newer, by the rules of Python packages (PEP 440), and specifiers.

Pure. Only what wheels of ours and `Requires-Python` need: no epochs, no `===`.
"""

from __future__ import annotations

import re

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<phase>a|b|rc|alpha|beta|c)[-_.]?(?P<pre>\d*))?"
    r"(?:\.post(?P<post>\d+))?(?:\.dev(?P<dev>\d+))?(?:\+[a-z0-9.]+)?",
    re.IGNORECASE,
)
_SPECIFIER = re.compile(r"\s*(>=|<=|==|!=|~=|>|<)\s*([0-9a-zA-Z.]+?)(\.\*)?\s*")
_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "rc": 2, "c": 2}
_FINAL = 3
_LAST = float("inf")

Key = tuple[tuple[int, ...], tuple[int, int], int, float]


def key_of(text: str) -> Key | None:
    """What versions are compared by; None if this is none."""
    match = _VERSION.fullmatch(text.strip())
    if match is None:
        return None
    release = [int(part) for part in match["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    phase = (_PHASES[match["phase"].lower()], int(match["pre"] or 0)) if match["phase"] else None
    if phase is None:
        is_before = match["dev"] is not None and match["post"] is None
        phase = (-1, 0) if is_before else (_FINAL, 0)
    post = -1 if match["post"] is None else int(match["post"])
    dev = _LAST if match["dev"] is None else float(match["dev"])
    return tuple(release), phase, post, dev


def is_prerelease(text: str) -> bool:
    key = key_of(text)
    return key is not None and (key[1][0] != _FINAL or key[3] != _LAST)


def is_newer(one: str, other: str) -> bool:
    mine, theirs = key_of(one), key_of(other)
    return mine is not None and theirs is not None and mine > theirs


def satisfies(version: str, specifiers: str) -> bool:
    """Whether `3.11.7` is within `>=3.11,<4`. What cannot be read is not satisfied."""
    return all(_is_within(version, part) for part in specifiers.split(",") if part.strip())


def _is_within(version: str, specifier: str) -> bool:
    match, key = _SPECIFIER.fullmatch(specifier), key_of(version)
    if match is None or key is None:
        return False
    operator, bound, is_prefix = match[1], match[2], bool(match[3])
    limit = key_of(bound)
    if limit is None:
        return False
    if is_prefix or operator == "~=":
        wanted = bound.split(".") if is_prefix else bound.split(".")[:-1]
        is_alike = version.split(".")[: len(wanted)] == wanted
        return (is_alike and key >= limit) if operator == "~=" else is_alike == (operator == "==")
    return {
        ">=": key >= limit,
        "<=": key <= limit,
        "==": key == limit,
        "!=": key != limit,
        ">": key > limit,
        "<": key < limit,
    }[operator]
