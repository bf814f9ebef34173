"""How a command line of the second client is refused: the exit codes are those of that program.

2 where a value or an argument is wrong, 1 where nothing but unknown options is. Called by the
actions of `job`, and by `algo` and `cluster`, which came with it.
"""

from __future__ import annotations

from paddlecloud.core.errors import InvalidInput
from paddlecloud.forms.faults import FaultList
from paddlecloud.forms.go_flags import Parsed


class UnknownOption(InvalidInput):
    """Nothing but unknown options is wrong: the old client's exit code for that was 1."""

    exit_code = 1


def raise_if_any(faults: FaultList, parsed: Parsed, hint: str) -> None:
    """All faults at once."""
    try:
        faults.raise_if_any(hint=hint)
    except InvalidInput as error:
        if len(parsed.unknown) == len(error.faults):
            raise UnknownOption(faults=error.faults, hint=error.hint) from None
        raise
