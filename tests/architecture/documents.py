"""What the documents name exists: files, modules, make targets, and the targets of links.

Paths and modules are looked for in `code spans` and in fenced blocks, links in the text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from tests.architecture.source_tree import PACKAGE, Module, SourceTree

_FOLDERS = r"(?:src|docs|tests|examples|bench|tools|deploy|docker)"
_FENCE = re.compile(r"^ *(```+|~~~+)[^\n]*\n(.*?)^ *\1", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_PATH = re.compile(rf"(?:^|(?<=[\s\"'(=]))(?:\./)?({_FOLDERS}/[\w./*-]*)")
_DOTTED = re.compile(rf"(?<![\w./@-]){PACKAGE}(?:\.[A-Za-z_]\w*)+(?![\w/@-])")
_FILE_ENDINGS = {
    "db",
    "json",
    "log",
    "md",
    "pid",
    "py",
    "service",
    "sock",
    "sqlite3",
    "toml",
    "yaml",
}
_TARGET = re.compile(
    r"(?:^|[`$;&] *|^\s*)make ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)\s*(?=`|$|#|&|;)"
)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")


def documents(tree: SourceTree) -> Iterator[tuple[Path, str]]:
    for path in [*sorted(tree.root.glob("*.md")), *tree.files("docs", suffixes=(".md",))]:
        yield path, path.read_text(encoding="utf-8")


def _code(text: str) -> Iterator[str]:
    """Each code span and each line of a fenced block."""
    for fence in _FENCE.finditer(text):
        yield from fence.group(2).splitlines()
    for span in _SPAN.finditer(_FENCE.sub("", text)):
        yield span.group(1)


def named_paths_exist(tree: SourceTree) -> Iterator[str]:
    for path, text in documents(tree):
        for code in _code(text):
            for match in _PATH.finditer(code):
                named = match.group(1).rstrip(".")
                exists = (
                    any(tree.root.glob(named)) if "*" in named else (tree.root / named).exists()
                )
                if not exists:
                    yield f"{tree.shown(path)}: `{named}` does not exist"


def named_modules_exist(tree: SourceTree) -> Iterator[str]:
    for path, text in documents(tree):
        for code in _code(text):
            for match in _DOTTED.finditer(code):
                named = match.group(0)
                if named.split(".")[-1] not in _FILE_ENDINGS and not _is_defined(tree, named):
                    yield f"{tree.shown(path)}: there is no `{named}`"


def _is_defined(tree: SourceTree, dotted: str) -> bool:
    if dotted in tree.module_names:
        return True
    parts = dotted.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:cut])
        for module in tree.modules:
            if module.name == name:
                return parts[cut] in _defined_names(module)
    return False


def _defined_names(module: Module) -> set[str]:
    names: set[str] = set()
    for statement in module.syntax.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(statement.name)
        elif isinstance(statement, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in statement.names}
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            names |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return names


def named_make_targets_exist(tree: SourceTree) -> Iterator[str]:
    makefile = tree.root / "Makefile"
    rules = makefile.read_text() if makefile.exists() else ""
    targets = set(re.findall(r"^([a-z][a-z-]*):", rules, re.MULTILINE))
    for path, text in documents(tree):
        for code in _code(text):
            for match in _TARGET.finditer(code):
                for target in match.group(1).split():
                    if target not in targets:
                        yield f"{tree.shown(path)}: the Makefile has no target `{target}`"


def links_lead_somewhere(tree: SourceTree) -> Iterator[str]:
    for path, text in documents(tree):
        for match in _LINK.finditer(_SPAN.sub("", _FENCE.sub("", text))):
            target = match.group(1)
            if re.match(r"[a-z][a-z0-9+.-]*:", target):
                continue  # another site
            file, _, anchor = unquote(target).partition("#")
            aim = (path.parent / file).resolve() if file else path
            if not aim.exists():
                yield f"{tree.shown(path)}: the link to {target} leads nowhere"
            elif anchor and aim.suffix == ".md" and anchor not in _anchors(aim.read_text()):
                yield f"{tree.shown(path)}: {file or 'this page'} has no heading #{anchor}"


def _anchors(text: str) -> set[str]:
    """The anchors a Markdown page gets from its headings."""
    headings = re.findall(r"^#+ +(.*?) *#*$", _FENCE.sub("", text), re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in headings)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in plain}
