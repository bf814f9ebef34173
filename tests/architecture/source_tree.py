"""A checkout as the rules see it: files, parsed modules, and every import with its place.

The rules in this folder take a `SourceTree` and yield one sentence per fault; they read files and
never import the code they judge. A tree may be the repository or one made up by a test.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "paddlecloud"
CODE_FOLDERS = ("src", "tests", "bench", "tools")
_NOT_OURS = re.compile(
    r"\.git|\.venv|\.hypothesis|build|dist|node_modules|__pycache__|.*_cache|.*\.egg-info"
)


@dataclass(frozen=True)
class Import:
    """One imported name: `target` is absolute and names a module, or something inside one."""

    target: str
    line: int
    is_lazy: bool  # inside a function: runs when called, not when the module is imported
    is_for_types: bool  # under `if TYPE_CHECKING:`: never runs

    @property
    def top(self) -> str:
        return self.target.split(".")[0]


@dataclass(frozen=True)
class Module:
    """One Python file of the package, under its dotted name."""

    name: str
    path: Path
    shown: str  # the path as messages show it

    @property
    def package(self) -> str:
        """The layer it belongs to: `core` for `paddlecloud.core.errors`, empty for the root."""
        return (*self.name.split("."), "")[1]

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @functools.cached_property
    def syntax(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), self.shown)

    @functools.cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(_imports(self.syntax, self.name, self.is_package))


class SourceTree:
    """A checkout at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @functools.cached_property
    def modules(self) -> tuple[Module, ...]:
        source = self.root / "src"
        return tuple(
            Module(_dotted(path.relative_to(source)), path, self.shown(path))
            for path in self.files("src", suffixes=(".py",))
        )

    @functools.cached_property
    def module_names(self) -> frozenset[str]:
        return frozenset(module.name for module in self.modules)

    def in_packages(self, *packages: str) -> Iterator[Module]:
        return (module for module in self.modules if module.package in packages)

    def files(self, *folders: str, suffixes: tuple[str, ...] = ()) -> Iterator[Path]:
        """Every file of ours below these folders (default: the whole checkout), sorted."""
        for folder in folders or (".",):
            for parent, inner, names in os.walk(self.root / folder):
                inner[:] = sorted(name for name in inner if not _NOT_OURS.fullmatch(name))
                for path in (Path(parent, name) for name in sorted(names)):
                    if path.is_file() and (not suffixes or path.suffix in suffixes):
                        yield path

    def shown(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


Rule = Callable[[SourceTree], Iterator[str]]


def _dotted(relative: Path) -> str:
    parts = relative.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_type_checking(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _imports(
    node: ast.AST, module: str, is_package: bool, lazy: bool = False, types: bool = False
) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        for target in _targets(child, module, is_package):
            yield Import(target, child.lineno, lazy, types)
        in_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(child, ast.If) and _is_type_checking(child.test):
            for inner in child.body:
                wrapper = ast.Module([inner], [])
                yield from _imports(wrapper, module, is_package, lazy, types=True)
            otherwise = ast.Module(child.orelse, [])
            yield from _imports(otherwise, module, is_package, lazy, types)
        else:
            yield from _imports(child, module, is_package, lazy or in_function, types)


def _targets(node: ast.AST, module: str, is_package: bool) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = module.split(".")
        # `from . import x` starts at the package itself, each further dot one level up.
        keep = len(parts) - node.level + is_package if node.level else 0
        origin = ".".join([*parts[:keep], *([node.module] if node.module else [])])
        yield from (f"{origin}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call):
        # importlib.import_module("a.b"), when the name is written out
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        called = node.func.id if isinstance(node.func, ast.Name) else called
        first = node.args[0] if node.args else None
        if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
            yield str(first.value)
