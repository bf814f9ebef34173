"""What keeps the pure packages pure, and the client portable.

Pure means: the result depends on the arguments alone. So the pure packages import from a short
list of standard modules that can neither see nor touch the world; a module missing from the list
is added only if that is true of it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.architecture.source_tree import PACKAGE, Module, SourceTree

PURE_PACKAGES = ("core", "forms", "scheduling", "wire")

PURE_MODULES = set(
    """
    __future__ abc array ast base64 binascii bisect cmath collections configparser copy dataclasses
    datetime decimal difflib enum fractions functools graphlib hashlib heapq hmac html ipaddress
    itertools json keyword math numbers operator posixpath re shlex statistics string stringprep
    struct textwrap types typing unicodedata zlib
    """.split()
)
# Of these only the named parts, the rest of the module does I/O.
PURE_PARTS = {
    "blake3": {"blake3"},
    "http": {"HTTPStatus", "HTTPMethod"},
    "io": {"StringIO", "BytesIO"},
    "mmap": {"mmap"},  # for memory that is no file's
    "pathlib": {"PurePath", "PurePosixPath", "PureWindowsPath"},
    "urllib": {"parse"},
    "xxhash": {"xxh3_128"},
}
IMPURE_CALLS = {"open", "print", "input", "breakpoint", "exec", "eval", "__import__"}
CLOCK_READINGS = {"now", "utcnow", "today"}

# What runs on the platform's side; clients have nobody to compare clocks with.
PLATFORM_PACKAGES = ("pfs", "kube", "engines", "controller", "server")
WALL_CLOCKS = set(
    """
    time.time time.time_ns datetime.now datetime.utcnow datetime.today date.today timezone.now
    datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today datetime.date.today
    time.CLOCK_REALTIME
    """.split()
)

PORTABLE_PACKAGES = ("core", "forms", "wire", "sdk", "cli")
LINUX_ONLY_MODULES = set("crypt fcntl grp posix pty pwd resource spwd syslog termios tty".split())


def pure_packages_import_pure_modules(tree: SourceTree) -> Iterator[str]:
    for module in tree.in_packages(*PURE_PACKAGES):
        for imported in module.imports:
            if imported.top != PACKAGE and not _is_pure(imported.target):
                yield (
                    f"{module.shown}:{imported.line}: {module.package} is pure and may not "
                    f"import {imported.target} (tests/architecture/purity.py lists what it may)"
                )


def _is_pure(target: str) -> bool:
    top, *rest = target.split(".")
    if top in PURE_PARTS:
        return bool(rest) and rest[0] in PURE_PARTS[top]
    return top in PURE_MODULES


def pure_packages_do_nothing_impure(tree: SourceTree) -> Iterator[str]:
    for module in tree.in_packages(*PURE_PACKAGES):
        for call in _calls(module):
            function = call.func
            if isinstance(function, ast.Name) and function.id in IMPURE_CALLS:
                yield f"{module.shown}:{call.lineno}: {function.id}() is not pure"
            elif isinstance(function, ast.Attribute) and function.attr in CLOCK_READINGS:
                owner = ast.unparse(function.value).split(".")[-1]
                if owner in ("datetime", "date"):
                    yield (
                        f"{module.shown}:{call.lineno}: {owner}.{function.attr}() reads the "
                        "clock; take `now` as an argument"
                    )


def the_wall_clock_is_read_in_one_place(tree: SourceTree) -> Iterator[str]:
    for module in tree.in_packages(*PLATFORM_PACKAGES):
        if module.shown.endswith("/models.py") or "/migrations/" in module.shown:
            continue  # Django fills in when a row was made
        for node in ast.walk(module.syntax):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in WALL_CLOCKS:
                yield (
                    f"{module.shown}:{node.lineno}: {ast.unparse(node)} reads the wall clock; "
                    f"call {PACKAGE}.clock.now, which tests can set"
                )


def _calls(module: Module) -> Iterator[ast.Call]:
    return (node for node in ast.walk(module.syntax) if isinstance(node, ast.Call))


def the_client_imports_everywhere(tree: SourceTree) -> Iterator[str]:
    for module in tree.in_packages(*PORTABLE_PACKAGES):
        for imported in module.imports:
            if imported.top in LINUX_ONLY_MODULES and not (
                imported.is_lazy or imported.is_for_types
            ):
                yield (
                    f"{module.shown}:{imported.line}: {imported.top} exists on Unix only; "
                    "import it in the function that needs it"
                )
