"""Rules every test lives under: a home of its own, declared needs, and no silent skips.

* No test sees the real home: HOME, XDG_* and PADDLECLOUD_HOME point into a temporary directory,
  one per test. Fixtures of a wider scope see one made for the session, so a server that outlives
  a test is given its directories explicitly.
* PADDLECLOUD_RUNTIMES keeps the way to the real runtimes, which are too large to make per test.
* `make test` sets PADDLECLOUD_STRICT=1: a skip then fails unless tests/possible.py excuses it.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from tests import possible
from tests.outcomes import Recorder

_KEPT = {"PADDLECLOUD_RUNTIMES", "PADDLECLOUD_STRICT", "PADDLECLOUD_FAULTY_S"}
_LEAKS = ("PADDLE", "DJANGO_", "TRAINER_", "TRAINING_", "KUBECONFIG", "NO_COLOR", "CLICOLOR")
_session_home: Path | None = None

# No deadlines: speed is measured in bench/, and a loaded machine is not a fault.
hypothesis.settings.register_profile(
    "project",
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
# For `make check`, by --hypothesis-profile: the same properties, tried less often.
hypothesis.settings.register_profile(
    "quick", hypothesis.settings.get_profile("project"), max_examples=15
)
hypothesis.settings.load_profile("project")


# --- a home of its own -----------------------------------------------------------------------


def _environment(home: Path) -> dict[str, str]:
    return {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local" / "share"),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "PADDLECLOUD_HOME": str(home / ".paddlecloud"),
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--outcomes", type=Path, metavar="FILE", help="see tests/outcomes.py")


def pytest_configure(config: pytest.Config) -> None:
    """Hide the real home before anything is imported, for whatever runs outside a test."""
    global _session_home
    if (outcomes := config.getoption("--outcomes")) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(outcomes))
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    os.environ.setdefault("PADDLECLOUD_RUNTIMES", str(cache / "paddlecloud" / "runtimes"))
    for name in list(os.environ):
        if name.startswith(_LEAKS) and name not in _KEPT:
            del os.environ[name]
    _session_home = Path(tempfile.mkdtemp(prefix="paddlecloud-tests-"))
    os.environ.update(_environment(_session_home))
    # A shell starts background jobs with Ctrl-C ignored; tests that press it would wait for ever.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_unconfigure(config: pytest.Config) -> None:
    if _session_home is not None:
        shutil.rmtree(_session_home, ignore_errors=True)


_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def isolated_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home for this test, and the environment that names it."""
    assert _session_home is not None
    home = _session_home / f"home-{next(_numbers)}"
    home.mkdir()
    for name, value in _environment(home).items():
        monkeypatch.setenv(name, value)
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture
def paddle_python() -> Path:
    """The interpreter of the PaddlePaddle runtime, for a test marked `paddle`."""
    return possible.runtime_python()


# --- what stands on a cluster ------------------------------------------------------------------


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark `cluster`: all that mostly waits for a Kubernetes of its own, wherever it stands; and
    `node`: those whose pods really run."""
    for item in items:
        variant = getattr(getattr(item, "callspec", None), "id", "")
        words = {item.path.parent.name, *variant.split("-")}
        if words & {"kube", "kubernetes"} and "unit" not in item.path.parts:
            item.add_marker(pytest.mark.cluster)
            if any("node" in mark.args for mark in item.iter_markers("needs")):
                item.add_marker(pytest.mark.node)


# --- declared needs, no silent skips ---------------------------------------------------------


def pytest_runtest_setup(item: pytest.Item) -> None:
    needs = [name for mark in item.iter_markers("needs") for name in mark.args]
    if item.get_closest_marker("root"):
        needs += ["root", "bubblewrap"]
    if item.get_closest_marker("paddle"):
        needs += ["paddle"]
    possible.skip_unless_possible(*needs)


def _judge_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In a strict run, make a skip a failure unless it is excused."""
    is_skip = report.outcome == "skipped" and not hasattr(report, "wasxfail")
    if not is_skip or os.environ.get("PADDLECLOUD_STRICT") != "1":
        return
    where = report.longrepr
    reason = where[2] if isinstance(where, tuple) else str(where)
    reason = reason.removeprefix("Skipped: ")
    if possible.is_excused(reason):
        return
    report.outcome = "failed"
    report.longrepr = (
        f"{report.nodeid} was skipped: {reason}\n"
        "In `make test` only what this machine cannot do may be skipped (tests/possible.py)."
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    _judge_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector):
    report = yield
    _judge_skip(report)
    return report
