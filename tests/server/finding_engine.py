"""A fake engine on whose cluster somebody else makes jobs: those written into a file beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from paddlecloud.core.jobspec import from_json
from paddlecloud.engines.protocols import JobRun
from paddlecloud.testing.engines import FakeEngine


class Finding(FakeEngine):
    """`foreign.json` in the state directory: a list of {job_id, account, spec}."""

    kind = "kubernetes"

    def __init__(self, **settings) -> None:
        super().__init__(**settings)
        path = Path(settings["state_dir"]) / "foreign.json"
        rows = json.loads(path.read_text()) if path.exists() else []
        self._foreign = {
            row["job_id"]: JobRun(
                row["job_id"], 1, from_json(row["spec"]), 0, row["account"], 1_700_000_000.0
            )
            for row in rows
        }

    def start(self) -> None:
        super().start()
        for run in self._foreign.values():
            self.put(run)  # what somebody made on the cluster runs there

    def found(self, job_id: str) -> JobRun | None:
        run = self._foreign.get(job_id)
        if run is None:
            return None
        return replace(run, spec=replace(run.spec, annotations={"made-with": "kubectl"}))
