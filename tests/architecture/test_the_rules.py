"""Each rule finds the fault it is there for: every case is a small checkout broken in one way.

A case gives the files that differ from a sound checkout, and words its fault must contain.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture import documents, layers, old_python, portability, purity, shape
from tests.architecture.rules import RULES
from tests.architecture.source_tree import Rule, SourceTree

PACKAGE = "src/paddlecloud"
DOC = '"""A sound module."""\n'
PACKAGE_DOC = '"""A package. May live here: values. May not: I/O."""\n'

SOUND = {
    "pyproject.toml": '[project]\nname = "paddlecloud"\ndependencies = ["django>=5", "pyyaml"]\n'
    '[project.optional-dependencies]\npostgres = ["psycopg[binary]>=3"]\n',
    "Makefile": "test: venv\n\ttrue\n",
    "README.md": "# Title\n`src/paddlecloud/core`, [the part](docs/a.md#a-part), `make test`.\n",
    "docs/a.md": "# A part\nCall `paddlecloud.core.values.f`.\n```\n$ make test\nls src/\n```\n",
    f"{PACKAGE}/__init__.py": DOC + '__version__ = "1"\n',
    f"{PACKAGE}/core/__init__.py": PACKAGE_DOC,
    f"{PACKAGE}/core/values.py": DOC + "import json\n\n\ndef f() -> str:\n    return ''\n",
    f"{PACKAGE}/core/contract.py": DOC + "from typing import Optional\n\nx: Optional[int] = 1\n",
    f"{PACKAGE}/runtime/__init__.py": PACKAGE_DOC,
    f"{PACKAGE}/runtime/env.py": DOC + "import os\n\nfrom paddlecloud.core.contract import x\n",
    f"{PACKAGE}/cli/__init__.py": PACKAGE_DOC,
    f"{PACKAGE}/cli/up.py": DOC + "def f():\n    import fcntl\n    import paddlecloud.server\n",
    f"{PACKAGE}/cli/get.py": DOC + "from ..core import values\n\n\ndef f():\n    import yaml\n",
    f"{PACKAGE}/server/__init__.py": PACKAGE_DOC,
    f"{PACKAGE}/server/asgi.py": DOC + "import django\n\nfrom paddlecloud.core import values\n",
    f"{PACKAGE}/server/rows.py": DOC + "def f():\n    import psycopg\n",
}

HOME = "/".join(["", "root", ".cache"])
INDEX = "pip install --index" + "-url x"

CASES: list[tuple[Rule, str, str, str]] = [
    (layers.packages_are_known, f"{PACKAGE}/extra/__init__.py", PACKAGE_DOC, "called extra"),
    (layers.packages_are_known, f"{PACKAGE}/loose.py", DOC, "called loose"),
    (layers.packages_are_known, "src/other/__init__.py", DOC, "lives in paddlecloud"),
    *(
        (layers.imports_follow_the_layers, f"{PACKAGE}/{file}", DOC + code, words)
        for file, code, words in [
            ("core/a.py", "from paddlecloud.forms import x", "core may not import"),
            ("core/a.py", "import paddlecloud.cli.up", "core may not import"),
            ("core/a.py", "from ..forms import x", "paddlecloud.forms.x"),
            ("core/a.py", "from .. import sdk", "paddlecloud.sdk"),
            ("core/a.py", "def f():\n    import paddlecloud.wire", "core may not"),
            ("core/a.py", "if TYPE_CHECKING:\n    import paddlecloud.wire", "core may not"),
            ("core/a.py", "import_module('paddlecloud.wire')", "core may not"),
            ("forms/a.py", "from paddlecloud.wire import x", "forms may not"),
            ("runtime/a.py", "from paddlecloud.core import values", "runtime may not"),
            ("sdk/a.py", "from paddlecloud.engines import x", "sdk may not"),
            ("server/a.py", "from paddlecloud.sdk import x", "server may not"),
            ("cli/get.py", "def f():\n    import paddlecloud.server", "cli may not"),
            ("cli/up.py", "import paddlecloud.server", "cli may not"),
            ("engines/a.py", "from paddlecloud.testing import x", "engines may not"),
            ("__init__.py", "from paddlecloud import core", "the root package may not"),
            ("__main__.py", "import paddlecloud.server", "cli may not"),
        ]
    ),
    *(
        (layers.third_party_imports_stay_where_they_may, f"{PACKAGE}/{file}", DOC + code, words)
        for file, code, words in [
            ("engines/a.py", "import django.db", "only server"),
            ("engines/a.py", "import requests", "not a dependency"),
            ("server/a.py", "import psycopg", "optional"),
            ("core/a.py", "def f():\n    import yaml", "core may not import yaml"),
            ("cli/a.py", "import yaml", "at module level"),
            ("sdk/a.py", "import msgspec", "sdk may not import msgspec"),
            ("runtime/a.py", "def f():\n    import numpy", "runtime may not import numpy"),
        ]
    ),
    *(
        (purity.pure_packages_import_pure_modules, f"{PACKAGE}/{file}", DOC + code, words)
        for file, code, words in [
            ("core/a.py", "import os", "import os"),
            ("core/a.py", "def f():\n    import time", "import time"),
            ("forms/a.py", "from pathlib import Path", "pathlib.Path"),
            ("forms/a.py", "import pathlib", "import pathlib"),
            ("scheduling/a.py", "import random", "import random"),
            ("wire/a.py", "import http.client", "http.client"),
            ("wire/a.py", "from urllib.request import urlopen", "urllib.request"),
            ("wire/a.py", "import logging", "import logging"),
        ]
    ),
    *(
        (purity.pure_packages_do_nothing_impure, f"{PACKAGE}/core/a.py", DOC + code, words)
        for code, words in [
            ("open('x')", "open()"),
            ("def f():\n    print(1)", "print()"),
            ("import datetime\n\nt = datetime.datetime.now()", "reads the clock"),
            ("from datetime import date\n\nt = date.today()", "reads the clock"),
        ]
    ),
    *(
        (purity.the_wall_clock_is_read_in_one_place, f"{PACKAGE}/{file}", DOC + code, "wall clock")
        for file, code in [
            ("server/a.py", "import time\n\nnow = time.time()"),
            ("engines/local/a.py", "import time\n\nclock = time.time"),
            ("pfs/a.py", "import datetime\n\nt = datetime.datetime.now(datetime.UTC)"),
        ]
    ),
    (purity.the_client_imports_everywhere, f"{PACKAGE}/cli/a.py", DOC + "import fcntl", "fcntl"),
    (purity.the_client_imports_everywhere, f"{PACKAGE}/sdk/a.py", DOC + "import pwd", "pwd"),
    (shape.files_are_short, f"{PACKAGE}/core/a.py", DOC + "x = 1\n" * 600, "601 lines"),
    (shape.files_are_short, "tools/a.sh", "true\n" * 601, "601 lines"),
    (shape.names_say_something, f"{PACKAGE}/core/utils.py", DOC, "utils"),
    (shape.names_say_something, "tests/helpers/a.py", DOC, "helpers"),
    (shape.modules_open_with_a_docstring, f"{PACKAGE}/core/a.py", "x = 1", "open with"),
    (shape.packages_say_what_may_live_in_them, f"{PACKAGE}/wire/__init__.py", DOC, "live here"),
    (shape.packages_have_an_init, f"{PACKAGE}/wire/a.py", DOC, "no __init__.py"),
    (shape.inits_only_export, f"{PACKAGE}/core/__init__.py", PACKAGE_DOC + "x = 1", ":2:"),
    (shape.inits_only_export, f"{PACKAGE}/core/__init__.py", "def f(): ...", "only"),
    (shape.inits_only_export, f"{PACKAGE}/core/__init__.py", "import os\n'''late'''", ":2:"),
    *(
        (old_python.jobs_import_only_what_old_images_have, f"{PACKAGE}/{file}", code, words)
        for file, code, words in [
            ("runtime/a.py", "from dataclasses import dataclass", "dataclasses"),
            ("runtime/a.py", "import dataclasses", "dataclasses"),
            ("core/contract.py", "from __future__ import annotations", "annotations"),
            ("core/contract.py", "from typing import Literal", "Literal"),
            ("core/__init__.py", "from .values import f", "imports nothing"),
        ]
    ),
    *(
        (old_python.jobs_run_on_old_python, f"{PACKAGE}/{file}", code, words)
        for file, code, words in [
            ("runtime/a.py", "if (x := 1): pass", "not Python 3.6"),
            ("runtime/a.py", "def f(x, /): pass", "not Python 3.6"),
            ("runtime/a.py", "match x:\n    case 1: pass", "not Python 3.6"),
            ("runtime/a.py", "x = 1\ny = f'{x=}'", "f-string"),
            ("runtime/a.py", "x = 1\ny = f'{x=!r:>9}'", "f-string"),
            ("runtime/a.py", "def f(x: list[int]): pass", "list[...]"),
            ("runtime/a.py", "def f() -> int | None: pass", "X | Y"),
            ("runtime/a.py", "x: int | None = None", "X | Y"),
            ("runtime/a.py", "y = 'a'.removeprefix('a')", "removeprefix"),
            ("runtime/a.py", "import time\n\ny = time.time_ns()", "time.time_ns"),
            ("runtime/a.py", "import subprocess\n\nsubprocess.run([], text=True)", "text="),
            ("runtime/a.py", "def f(a):\n    return 1, *a", "unparenthesised"),
            ("core/contract.py", "if (x := 1): pass", "not Python 3.6"),
        ]
    ),
    (documents.named_paths_exist, "README.md", "See `src/nowhere.py`.", "src/nowhere.py"),
    (documents.named_paths_exist, "docs/b.md", "```\ncat docs/nowhere.md\n```\n", "docs/nowhere"),
    (documents.named_paths_exist, "docs/b.md", "Run `ls bench/*.py`.", "bench/*.py"),
    (documents.named_modules_exist, "README.md", "`paddlecloud.core.gone`", "core.gone"),
    (documents.named_modules_exist, "README.md", "`paddlecloud.core.values.g()`", "values.g"),
    (documents.named_modules_exist, "README.md", "```\npython -m paddlecloud.gone\n```\n", "gone"),
    (documents.named_make_targets_exist, "README.md", "Run `make fly`.", "fly"),
    (documents.named_make_targets_exist, "README.md", "```\n$ make test fly\n```\n", "fly"),
    (documents.links_lead_somewhere, "README.md", "[x](docs/gone.md)", "docs/gone.md"),
    (documents.links_lead_somewhere, "README.md", "[x](docs/a.md#gone)", "#gone"),
    (documents.links_lead_somewhere, "README.md", "# T\n[x](#gone)", "#gone"),
    *(
        (portability.nothing_names_a_network_or_a_machine, file, text, words)
        for file, text, words in [
            ("constraints.txt", f"{INDEX}\n", "package index"),
            ("tools/a.sh", "PIP_INDEX" + "_URL=x pip install y\n", "package index"),
            ("docs/b.md", "https://mirror.example/pypi/" + "simple", "package index"),
            ("docker/Dockerfile", "FROM docker.io/python", "image registry"),
            ("deploy/a.yaml", "image: registry.example.com/a", "image registry"),
            ("docs/b.md", f"look in {HOME}", "path of one machine"),
            ("uv.lock", "", "no lock files"),
        ]
    ),
]


def _checkout(root: Path, files: dict[str, str]) -> SourceTree:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return SourceTree(root)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_accepts_a_sound_checkout(rule: Rule, tmp_path: Path) -> None:
    assert list(rule(_checkout(tmp_path, SOUND))) == []


@pytest.mark.parametrize(
    ("rule", "file", "text", "words"),
    [pytest.param(*case, id=f"{case[0].__name__}-{number}") for number, case in enumerate(CASES)],
)
def test_finds(rule: Rule, file: str, text: str, words: str, tmp_path: Path) -> None:
    faults = list(rule(_checkout(tmp_path, SOUND | {file: text})))
    assert len(faults) == 1, faults
    assert words in faults[0]
    assert file in faults[0]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (
            "docs/b.md",
            "Settings are in `paddlecloud.toml`; `~/.paddle/config`; `https://a.b/src/x`.",
        ),
        ("docs/b.md", "A [site](https://example.org/a.md), `/root/paddlejob/x`: make it so."),
        ("docs/b.md", "```yaml\nimage: registry.example.com/a:v1\n```\n"),
        ("docs/b.md", "`/pfs/local/home/alice`, `make test` and `paddlecloud.__version__`"),
    ],
)
def test_leaves_alone_what_users_write(file: str, text: str, tmp_path: Path) -> None:
    tree = _checkout(tmp_path, SOUND | {file: text})
    assert [fault for rule in RULES for fault in rule(tree)] == []


def test_knows_a_fault_for_every_rule() -> None:
    assert {case[0] for case in CASES} == set(RULES)


def test_warns_of_files_that_grow_long(tmp_path: Path) -> None:
    tree = _checkout(tmp_path, SOUND | {"bench/a.py": "x = 1\n" * 401})
    assert [alarm.split(":")[0] for alarm in shape.long_files(tree)] == ["bench/a.py"]
