"""Engines by cluster name, and the one place where a kind becomes an object.

The server makes its registry at start and asks it for the engine of a job's cluster. Engine
modules are imported only when their kind is chosen.

Beyond the `Engine` protocol the server reads two attributes, both optional: `multi_account`
(False: this engine cannot keep one account's job away from another's files) and
`single_account_reason` (why, in a sentence for users).
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from paddlecloud.core.errors import InvalidInput
from paddlecloud.engines.protocols import Engine

KINDS = {
    "local": "paddlecloud.engines.local.engine:LocalEngine",
    "kubernetes": "paddlecloud.engines.kubernetes.engine:KubernetesEngine",
    "fake": "paddlecloud.testing.engines:FakeEngine",  # for tests; never imported otherwise
}


class Registry:
    def __init__(self, *engines: Engine) -> None:
        self._engines = {engine.cluster: engine for engine in engines}

    def __iter__(self) -> Iterator[Engine]:
        return iter(self._engines.values())

    @property
    def default(self) -> Engine:
        """The cluster a job goes to when it names none."""
        return next(iter(self._engines.values()))

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(self._engines)

    def engine(self, cluster: str, *, field: str = "datacenter") -> Engine:
        """The engine of that cluster; an unknown one is the user's mistake."""
        engine = self._engines.get(cluster)
        if engine is None:
            raise InvalidInput(
                f"no datacenter {cluster}",
                field=field,
                hint=f"this server has: {', '.join(self._engines)}",
            )
        return engine


def make_engine(
    kind: str,
    cluster: str,
    state_dir: Path,
    runtimes: Mapping[str, Path],
    kubernetes: Mapping[str, Any] | None = None,
) -> Engine:
    """An engine that has not been started. `runtimes` may change while the engine lives.

    `kubernetes` are fields of `KubernetesConfig`, for that engine alone. Besides the words of
    `KINDS`, `package.module:factory` names an engine from elsewhere; it is called with the keywords
    cluster, state_dir and runtimes.
    """
    if kind == "local":
        from paddlecloud.engines.local.config import LocalConfig
        from paddlecloud.engines.local.engine import LocalEngine

        return LocalEngine(
            LocalConfig(
                state_dir=state_dir, pfs_root=state_dir / "pfs", cluster=cluster, runtimes=runtimes
            )
        )
    if kind == "kubernetes":
        from paddlecloud.engines.kubernetes.config import KubernetesConfig
        from paddlecloud.engines.kubernetes.engine import KubernetesEngine

        # A folder of its own: a state folder may have been a local engine's before.
        folder = state_dir / "kubernetes"
        return KubernetesEngine(
            KubernetesConfig(state_dir=folder, cluster=cluster, **(kubernetes or {}))
        )
    module, _, factory = KINDS.get(kind, kind).partition(":")
    if not factory:
        raise InvalidInput(
            f"there is no engine called {kind!r}",
            field="PADDLECLOUD_ENGINE",
            hint=f"allowed are {', '.join(KINDS)} and module:factory",
        )
    make = getattr(importlib.import_module(module), factory)
    engine: Engine = make(cluster=cluster, state_dir=state_dir, runtimes=runtimes)
    return engine


def may_serve_second_account(engine: Engine) -> tuple[bool, str]:
    """Whether this engine keeps accounts apart, and if not, why."""
    if getattr(engine, "multi_account", True):
        return True, ""
    reason = getattr(engine, "single_account_reason", "") or (
        "this machine has no working bubblewrap, so jobs of one account could read another's files"
    )
    return False, str(reason)
