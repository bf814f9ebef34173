"""Who may import whom. The table is the architecture; everything else here only reads it.

Imports count wherever they stand: in a function, and under `if TYPE_CHECKING:` too.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator

from tests.architecture.source_tree import PACKAGE, Import, Module, SourceTree

# package -> what it may import besides itself
MAY_IMPORT: dict[str, set[str]] = {
    "clock": set(),
    "core": set(),
    "forms": {"core"},
    "scheduling": {"core"},
    "wire": {"core"},
    "localfs": set(),
    "pfs": {"clock", "core", "wire", "localfs"},
    "runtime": {"core.contract"},
    "simulator": {"core", "scheduling"},
    "kube": {"clock", "core", "forms"},
    "engines": {"clock", "core", "forms", "scheduling", "localfs", "kube", "runtime"},
    "sdk": {"core", "forms", "wire"},
    "controller": {"clock", "core", "forms", "scheduling", "kube", "engines", "runtime"},
    "server": {"clock", "core", "forms", "scheduling", "wire", "pfs", "runtime", "kube", "engines"},
    "cli": {"core", "forms", "wire", "sdk"},
    # Shipped fakes for everyone's tests; nothing in the package may import them.
    "testing": {"core", "forms", "scheduling", "wire", "pfs", "kube", "engines", "sdk"},
}

# Modules of `cli` that start a part of the platform may import it, inside the function that
# starts it: every other verb stays a client that needs nothing but the standard library.
STARTERS: dict[str, set[str]] = {
    "up": {"server", "engines", "pfs"},
    "serve": {"server", "engines", "pfs"},
    "down": {"server", "engines", "pfs"},
}

# The standard library and nothing else, so that they run anywhere and start at once.
STANDARD_LIBRARY_ONLY = {
    *("core", "forms", "scheduling", "wire", "localfs", "runtime", "sdk", "cli")
}
# ... except these, imported in the function that needs them.
LAZY_THIRD_PARTY: dict[str, set[str]] = {
    "sdk": {"yaml"},
    "cli": {"yaml"},
    "wire": {"blake3", "xxhash"},
}

ONLY_IMPORTER_OF_DJANGO = "server"

# distributions whose import name differs from their own
IMPORT_NAMES = {"pyyaml": "yaml"}


def packages_are_known(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        if not (module.name + ".").startswith(PACKAGE + "."):
            yield f"{module.shown}: everything under src lives in {PACKAGE}"
        elif module.package not in {"", "__main__", *MAY_IMPORT}:
            yield (
                f"{module.shown}: no package or module called {module.package} in the "
                "layer table (tests/architecture/layers.py)"
            )


def imports_follow_the_layers(tree: SourceTree) -> Iterator[str]:
    for module in tree.modules:
        layer = "cli" if module.name == f"{PACKAGE}.__main__" else module.package
        for imported in module.imports:
            if imported.top == PACKAGE and not _is_allowed(tree, module, layer, imported):
                yield (
                    f"{module.shown}:{imported.line}: {layer or 'the root package'} may not "
                    f"import {imported.target} (allowed: {_allowed_words(layer)})"
                )


def _is_allowed(tree: SourceTree, module: Module, layer: str, imported: Import) -> bool:
    inside = imported.target.split(".")[1:]
    if not layer:
        return False  # the root package imports nothing
    if not inside or inside == ["__version__"]:
        return True
    if inside[0] == layer:
        return True
    allowed = MAY_IMPORT.get(layer, set())
    if layer == "cli" and imported.is_lazy:
        allowed = allowed | STARTERS.get(module.name.split(".")[-1], set())
    return inside[0] in allowed or ".".join(inside[:2]) in allowed


def _allowed_words(layer: str) -> str:
    return " ".join(sorted(MAY_IMPORT.get(layer, set()))) or "nothing of ours"


def third_party_imports_stay_where_they_may(tree: SourceTree) -> Iterator[str]:
    declared, optional = _declared(tree)
    for module in tree.modules:
        for imported in module.imports:
            top = imported.top
            if top == PACKAGE or top in sys.stdlib_module_names:
                continue
            place = f"{module.shown}:{imported.line}"
            if top == "django":
                if module.package != ONLY_IMPORTER_OF_DJANGO:
                    yield f"{place}: only {ONLY_IMPORTER_OF_DJANGO} may import Django"
            elif module.package in STANDARD_LIBRARY_ONLY or not module.package:
                may_lazily = top in LAZY_THIRD_PARTY.get(module.package, set())
                if not (may_lazily and (imported.is_lazy or imported.is_for_types)):
                    where = " at module level" if may_lazily else ""
                    yield f"{place}: {module.package} may not import {top}{where}"
            elif top in optional:
                if not imported.is_lazy:
                    yield f"{place}: {top} is optional: import it inside a function only"
            elif top not in declared:
                yield f"{place}: {top} is not a dependency in pyproject.toml"


def _declared(tree: SourceTree) -> tuple[set[str], set[str]]:
    """What is always installed, and what only an extra for users brings."""
    path = tree.root / "pyproject.toml"
    project = tomllib.loads(path.read_text())["project"] if path.exists() else {}
    extras = project.get("optional-dependencies", {})
    optional = [needed for extra, names in extras.items() if extra != "dev" for needed in names]
    return _import_names(project.get("dependencies", [])), _import_names(optional)


def _import_names(requirements: list[str]) -> set[str]:
    names = (requirement.split(";")[0].strip(" \t").split("[")[0] for requirement in requirements)
    bare = {name.translate(str.maketrans("<>=!~", "     ")).split()[0].lower() for name in names}
    return {IMPORT_NAMES.get(name, name.replace("-", "_")) for name in bare}
