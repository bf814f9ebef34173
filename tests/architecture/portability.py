"""Nothing in the checkout is bound to one machine or one network.

Which package index or image registry is used is for the machine's own configuration to say; what
a *user* writes in a job (an image name) is the user's: examples, documents and tests may quote it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.architecture.source_tree import SourceTree

_TEXT = set(".cfg .css .html .in .ini .js .json .md .py .sh .toml .txt .yaml .yml".split())
_LOCK_FILES = {"uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "package-lock.json"}
_INDEX = re.compile(
    r"--(?:extra-)?index[-_]url\b|--find[-_]links\b|^\s*(?:extra-)?index-url\s*="
    r"|\bPIP_(?:EXTRA_)?INDEX_URL\s*=|/pypi/[s]imple\b|\bpypi\.org/simple\b"
    r"|\bfiles\.pythonhosted\.org\b",
    re.MULTILINE,
)
_REGISTRY = re.compile(
    r"\b(?:docker\.io|ghcr\.io|quay\.io|(?:[\w-]+\.)*gcr\.io|registry\.[\w-]+\.[\w.]+"
    r"|[\w-]+\.azurecr\.io|public\.ecr\.aws)\b"
)
_QUOTES_USERS = ("docs/", "examples/", "tests/", "README.md", "CHANGELOG.md")
# /root/paddlejob is part of what a job of the old platform sees.
_MACHINE_PATH = re.compile(r"(?<![\w.])/(?:work|Users)/\w|(?<![\w.])/root/(?!paddlejob\b)[\w.]")


def nothing_names_a_network_or_a_machine(tree: SourceTree) -> Iterator[str]:
    own_path = str(tree.root.resolve())
    for path in tree.files():
        shown = tree.shown(path)
        if path.name in _LOCK_FILES:
            yield f"{shown}: no lock files; exact versions are in constraints.txt"
        if path.suffix not in _TEXT and path.name not in ("Makefile", "run", "Dockerfile"):
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            place = f"{shown}:{number}"
            if _INDEX.search(line):
                yield f"{place}: names a package index"
            if _REGISTRY.search(line) and not shown.startswith(_QUOTES_USERS):
                yield f"{place}: names an image registry"
            if _MACHINE_PATH.search(line) or (own_path.count("/") > 1 and own_path in line):
                yield f"{place}: names a path of one machine"
