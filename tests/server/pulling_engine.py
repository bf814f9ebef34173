"""A fake engine that has images, so that it is told registries; what it was told is in a file."""

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
