"""What runs inside a job keeps the syntax and the library of Python 3.6: old images import it.

That is `paddlecloud.runtime`, `paddlecloud.core.contract`, and the two `__init__` files on the way
to them. test_old_python.py imports them with a real Python 3.6 as well, where there is one; these
rules find most of it everywhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.source_tree import PACKAGE, Module, SourceTree

OLDEST = (3, 6)

_NEWER_MODULES = set(
    "contextvars dataclasses graphlib tomllib zoneinfo _posixshmem importlib.metadata "
    "importlib.resources multiprocessing.shared_memory".split()
)
_NEWER_NAMES = set(
    """
    __future__.annotations asyncio.run asyncio.to_thread asyncio.get_running_loop
    asyncio.create_task contextlib.nullcontext contextlib.AsyncExitStack contextlib.chdir
    contextlib.aclosing functools.cache functools.cached_property functools.singledispatchmethod
    itertools.pairwise itertools.batched math.prod math.dist math.comb math.perm math.isqrt math.lcm
    os.register_at_fork os.memfd_create os.pidfd_open os.waitstatus_to_exitcode shlex.join
    signal.pidfd_send_signal signal.raise_signal signal.strsignal signal.valid_signals
    statistics.fmean threading.get_native_id threading.excepthook time.time_ns time.monotonic_ns
    time.perf_counter_ns time.process_time_ns types.NoneType types.EllipsisType
    typing.Annotated typing.Concatenate typing.Final typing.ForwardRef typing.Literal
    typing.OrderedDict typing.ParamSpec typing.Protocol typing.Self typing.SupportsIndex
    typing.TypeAlias typing.TypeGuard typing.TypedDict typing.Never typing.assert_never typing.final
    typing.get_args typing.get_origin typing.override typing.runtime_checkable
    """.split()
)
_NEWER_METHODS = {"removeprefix", "removesuffix", "fromisoformat", "is_relative_to", "hardlink_to"}
_NEWER_KEYWORDS = {"capture_output", "text", "dirs_exist_ok", "missing_ok"}
_GENERIC_SINCE_3_9 = {"dict", "frozenset", "list", "set", "tuple", "type"}
_DEBUG_F_STRING = re.compile(r"\{[^{}=!<>]+=(![rsa])?(:[^{}]*)?\}")


def old_modules(tree: SourceTree) -> Iterator[Module]:
    on_the_way = (PACKAGE, f"{PACKAGE}.core", f"{PACKAGE}.core.contract")
    for module in tree.modules:
        if module.name in on_the_way or module.package == "runtime":
            yield module


def jobs_import_only_what_old_images_have(tree: SourceTree) -> Iterator[str]:
    for module in old_modules(tree):
        for imported in module.imports:
            target = imported.target
            is_newer = target in _NEWER_NAMES or any(
                (target + ".").startswith(newer + ".") for newer in _NEWER_MODULES
            )
            if is_newer:
                yield f"{module.shown}:{imported.line}: {target} came after Python 3.6"
            if module.name == f"{PACKAGE}.core":
                yield (
                    f"{module.shown}:{imported.line}: core/__init__ is imported on the way to "
                    "core.contract inside jobs, so it imports nothing"
                )


def jobs_run_on_old_python(tree: SourceTree) -> Iterator[str]:
    for module in old_modules(tree):
        text = module.path.read_text(encoding="utf-8")
        try:
            ast.parse(text, module.shown, feature_version=OLDEST)
        except SyntaxError as error:
            yield f"{module.shown}:{error.lineno}: not Python 3.6: {error.msg}"
            continue
        for node in ast.walk(module.syntax):
            for what in _newer_than_3_6(node, text):
                yield f"{module.shown}:{getattr(node, 'lineno', 0)}: {what} came after Python 3.6"


def _newer_than_3_6(node: ast.AST, text: str) -> Iterator[str]:
    if isinstance(node, ast.JoinedStr):
        if _DEBUG_F_STRING.search(ast.get_source_segment(text, node) or ""):
            yield 'an f-string with "="'
    elif isinstance(node, ast.Subscript):
        if isinstance(node.value, ast.Name) and node.value.id in _GENERIC_SINCE_3_9:
            yield f"{node.value.id}[...]"
    elif isinstance(node, ast.Attribute):
        dotted = ast.unparse(node)
        if dotted in _NEWER_NAMES or node.attr in _NEWER_METHODS:
            yield dotted
    elif isinstance(node, ast.Call):
        yield from (
            f"the argument {keyword.arg}="
            for keyword in node.keywords
            if keyword.arg in _NEWER_KEYWORDS
        )
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        annotations = [argument.annotation for argument in arguments] + [node.returns]
        if any(_is_union(annotation) for annotation in annotations):
            yield "X | Y in an annotation"
    elif isinstance(node, ast.AnnAssign) and _is_union(node.annotation):
        yield "X | Y in an annotation"
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        starred = any(isinstance(item, ast.Starred) for item in node.value.elts)
        if starred and not (ast.get_source_segment(text, node.value) or "").startswith("("):
            yield "return of an unparenthesised *tuple"


def _is_union(annotation: ast.expr | None) -> bool:
    return annotation is not None and any(
        isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitOr)
        for part in ast.walk(annotation)
    )
