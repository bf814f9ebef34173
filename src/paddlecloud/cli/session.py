"""What a running verb holds: its flags, a client made on first use, and where to write.

It promises: no connection is made before a verb asks for the client; output is written as it is
given. Made by `main` and handed to the verb. It never exits.
"""

from __future__ import annotations

import sys

from paddlecloud.cli.terminal import Terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.core.errors import PaddleCloudError
    from paddlecloud.forms.go_flags import Parsed
    from paddlecloud.sdk.client import Client
    from paddlecloud.sdk.config import Profile


class Session:
    def __init__(self, parsed: Parsed) -> None:
        self.parsed = parsed
        self.job_ref = ""  # the job last asked for, for "did you mean"
        self._client: Client | None = None
        self._terminal: Terminal | None = None

    @property
    def client(self) -> Client:
        if self._client is None:
            from paddlecloud import __version__
            from paddlecloud.sdk.client import Client

            self._client = Client(
                profile=self.profile(), say=self.note, user_agent=f"paddlecloud/{__version__}"
            )
        return self._client

    def profile(self) -> Profile:
        from paddlecloud.sdk.config import load_profile

        return load_profile(
            path=self.parsed.text("config"),
            datacenter=self.parsed.text("datacenter"),
            endpoint=self.parsed.text("endpoint"),
        )

    @property
    def made_client(self) -> Client | None:
        """The client if a verb has asked for one."""
        return self._client

    @property
    def terminal(self) -> Terminal:
        if self._terminal is None:
            self._terminal = Terminal()
        return self._terminal

    def job(self, ref: str) -> str:
        """Remember which job the user means; `main` suggests names near it if it is not there."""
        self.job_ref = ref
        return ref

    def in_typed_words(self, error: PaddleCloudError) -> PaddleCloudError:
        """A refusal of the server in the words of the command line; most are already."""
        return error

    def write(self, text: str) -> None:
        sys.stdout.write(text)

    def say(self, line: str = "") -> None:
        sys.stdout.write(line + "\n")

    def note(self, line: str) -> None:
        """Something beside the result: to the standard error."""
        sys.stderr.write(line + "\n")

    def flush(self) -> None:
        sys.stdout.flush()
