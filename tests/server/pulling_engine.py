"""Fake engines that can what only a cluster can; what they were told is in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from paddlecloud.testing.engines import FakeEngine


class Pulling(FakeEngine):
    kind = "kubernetes"

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self._told = Path(settings["state_dir"]) / "registries.jsonl"

    def set_registries(self, account_id: int, account: str, registries: Mapping[str, str]) -> None:
        with self._told.open("a") as file:
            file.write(json.dumps({"account": account, "registries": dict(registries)}) + "\n")


class Scaling(FakeEngine):
    """Changes sizes: what it was told is in a file. The first telling always fails."""

    kind = "kubernetes"

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        self._told = Path(settings["state_dir"]) / "sizes.jsonl"
        self._has_failed = False

    def scale(self, job_id: str, run: int, trainers: int) -> None:
        if not self._has_failed:
            self._has_failed = True
            raise OSError("not now")
        with self._told.open("a") as file:
            file.write(json.dumps([job_id, run, trainers]) + "\n")
