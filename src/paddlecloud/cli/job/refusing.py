"""How a command line of the second client is refused: the exit codes are those of that program.

2 where a value or an argument is wrong, 1 where nothing but unknown options is. Called by
`connection` for all verbs of that client, and by `train` for what the server refuses.
"""

from __future__ import annotations

from collections.abc import Collection

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList


class UnknownOption(InvalidInput):
    """Nothing but unknown options is wrong: the old client's exit code for that was 1."""

    exit_code = 1


def raise_if_any(faults: FaultList, unknown: Collection[str], hint: str) -> None:
    """All faults at once; `unknown` are the options among them that nobody knows."""
    try:
        faults.raise_if_any(hint=hint)
    except InvalidInput as error:
        if len(unknown) == len(error.faults):
            raise UnknownOption(faults=error.faults, hint=error.hint) from None
        raise
