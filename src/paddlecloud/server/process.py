"""What one running server has: its configuration, engines, pools and the hub of notices.

Made once by `starting`, read by services through `here()`. Tests that call services directly make
one of their own. No logic lives here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from paddlecloud.engines.registry import Registry
from paddlecloud.server.configuration import Configuration
from paddlecloud.server.file_server import FileServer
from paddlecloud.server.following import Pumps
from paddlecloud.server.notifying import Hub
from paddlecloud.server.pools import Pool

if TYPE_CHECKING:
    from paddlecloud.server.services.feeding import Feeder
    from paddlecloud.server.services.runtimes import Runtimes


@dataclass(slots=True)
class Process:
    configuration: Configuration
    engines: Registry
    runtimes: Runtimes
    feeder: Feeder
    endpoint: str = ""  # what clients are told; set when listening
    hub: Hub = field(default_factory=Hub)
    is_stopping: bool = False
    # An engine that hangs holds these threads, then its questions are refused at once.
    asking: Pool = field(default_factory=lambda: Pool("engine", 4))
    pumps: Pumps = field(init=False)
    files: FileServer = field(init=False)  # `__main__` puts the one that runs here

    def __post_init__(self) -> None:
        self.files = FileServer(self.configuration)
        threads = self.configuration.threads
        reads, waits = Pool("log", threads.logs), Pool("log-wait", threads.log_waits)
        self.pumps = Pumps(reads, waits, threads.log_waits)

    @property
    def state_dir(self) -> Path:
        return self.configuration.storage.state_dir


_current: Process | None = None


def begin(process: Process) -> None:
    global _current
    _current = process


def here() -> Process:
    if _current is None:
        raise RuntimeError("the server has not been started in this process")
    return _current
