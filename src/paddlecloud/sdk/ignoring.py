"""Which files of a folder stay behind: the rules of `.gitignore` and `.paddleignore`.

It promises a documented part of git's rules: one pattern per line, `#` comments, `!` takes back,
a trailing `/` means folders only, a pattern with another `/` is anchored at the package, any other
matches at every depth; `*`, `?`, `[...]` stay within a name, `**` crosses folders. Later rules
win, `.paddleignore` comes after `.gitignore`. Only files at the top of the package are read.
Called by `packages`. It never looks at the file system itself.
"""

from __future__ import annotations

import re

# Never part of a program: histories of version control, and what Python makes anew anyway.
ALWAYS = (".git", ".hg", ".svn", "__pycache__")
FILES = (".gitignore", ".paddleignore")


class Rule:
    __slots__ = ("is_back", "is_folder_only", "matches")

    def __init__(self, pattern: str) -> None:
        self.is_back = pattern.startswith("!")
        pattern = pattern[1:] if self.is_back else pattern
        self.is_folder_only = pattern.endswith("/")
        pattern = pattern.rstrip("/")
        is_anchored = "/" in pattern
        prefix = "" if is_anchored else "(?:.*/)?"
        pattern = pattern.lstrip("/")
        try:
            expression = re.compile(prefix + _translate(pattern), re.DOTALL)
        except re.error:  # such as [z-a]: as a plain name it can do no harm
            expression = re.compile(prefix + re.escape(pattern), re.DOTALL)
        self.matches = expression.fullmatch


class Rules:
    """All rules of a package; ask about each entry, folders before what is in them."""

    def __init__(self, *texts: str) -> None:
        lines = [line for text in texts for line in text.splitlines()]
        self._rules = [Rule(line) for line in map(_pattern, lines) if line not in ("", "!", "/")]

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """`path` is relative with `/`, whatever the operating system."""
        if path.rsplit("/", 1)[-1] in ALWAYS:
            return True
        ignored = False
        for rule in self._rules:
            if rule.is_folder_only and not is_folder:
                continue
            if rule.is_back == ignored and rule.matches(path):
                ignored = not rule.is_back
        return ignored


def _pattern(line: str) -> str:
    if line.startswith("#"):
        return ""
    line = line.rstrip("\r\n")
    stripped = line.rstrip(" \t")
    # A blank at the end counts only when it is escaped.
    return stripped + " " if stripped.endswith("\\") and stripped != line else stripped


def _translate(pattern: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("/**", at) and at + 3 == len(pattern):
            out.append("/.+")
            at += 3
        elif char == "*":
            out.append("[^/]*")
            at += 2 if pattern.startswith("**", at) else 1
        elif char == "?":
            out.append("[^/]")
            at += 1
        elif char == "[" and (end := _class_end(pattern, at)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[{'^/' + inner[1:] if inner[0] in '!^' else inner}]")
            at = end + 1
        else:
            if char == "\\" and at + 1 < len(pattern):
                at += 1
                char = pattern[at]
            out.append(re.escape(char))
            at += 1
    return "".join(out)


def _class_end(pattern: str, start: int) -> int:
    """Where `[...]` closes; 0 when it does not, then `[` is a plain character."""
    first = start + 1
    if pattern[first : first + 1] in ("!", "^"):
        first += 1
    end = pattern.find("]", first + 1)
    return end if end > first else 0
