"""The shape of files: how long, how named, how they open, what a package's `__init__` holds."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source_tree import CODE_FOLDERS, SourceTree

ALARM_LINES = 400
MOST_LINES = 600
# They say nothing about what is inside, so everything ends up inside.
NAMES_THAT_SAY_NOTHING = set(
    "base common helper helpers lib misc shared stuff util utils utilities".split()
)
_SAYS_WHAT_MAY_LIVE_HERE = re.compile(r"\blives? here\b|\bhere lives?\b", re.IGNORECASE)
_SAYS_WHAT_MAY_NOT = re.compile(r"\b(not|never|nothing|no)\b", re.IGNORECASE)


def _lengths(tree: SourceTree) -> Iterator[tuple[str, int]]:
    for path in tree.files(*CODE_FOLDERS, suffixes=(".py", ".sh", ".js", ".css", ".html")):
        yield tree.shown(path), len(path.read_text(encoding="utf-8").splitlines())


def files_are_short(tree: SourceTree) -> Iterator[str]:
    for shown, lines in _lengths(tree):
        if lines > MOST_LINES:
            yield f"{shown}: {lines} lines, at most {MOST_LINES} are allowed; split it"


def long_files(tree: SourceTree) -> list[str]:
    """Not yet a fault: an alarm the test run prints."""
    return [
        f"{shown}: {lines} lines, think about splitting it at {ALARM_LINES}"
        for shown, lines in _lengths(tree)
        if ALARM_LINES < lines <= MOST_LINES
    ]


def names_say_something(tree: SourceTree) -> Iterator[str]:
    for path in tree.files(*CODE_FOLDERS, suffixes=(".py",)):
        relative = path.relative_to(tree.root).with_suffix("")
        for part in relative.parts[1:]:
            if part.removeprefix("test_") in NAMES_THAT_SAY_NOTHING:
                yield f"{tree.shown(path)}: `{part}` says nothing about what is in it"


def modules_open_with_a_docstring(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        is_generated = "migrations" in module.name.split(".")
        if not is_generated and not ast.get_docstring(module.syntax):
            yield f"{module.shown}: open with what it promises, who calls it, what it never does"


def packages_say_what_may_live_in_them(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        if module.is_package and module.name.count(".") == 1:
            text = " ".join((ast.get_docstring(module.syntax) or "").split())
            if not (_SAYS_WHAT_MAY_LIVE_HERE.search(text) and _SAYS_WHAT_MAY_NOT.search(text)):
                yield f'{module.shown}: say what may "live here" and what may not'


def packages_have_an_init(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        if not (module.path.parent / "__init__.py").exists():
            yield f"{module.shown}: its folder has no __init__.py"


def inits_only_export(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        if not module.is_package:
            continue
        for number, statement in enumerate(module.syntax.body):
            if not _is_export(statement, is_first=number == 0):
                yield (
                    f"{module.shown}:{statement.lineno}: an __init__ holds its docstring, "
                    "imports and __all__ only"
                )


def _is_export(statement: ast.stmt, is_first: bool) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.Expr):
        return is_first and isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
    elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        names = [statement.target.id]
    else:
        return False
    return bool(names) and set(names) <= {"__all__", "__version__"}
