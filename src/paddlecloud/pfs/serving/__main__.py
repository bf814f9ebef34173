"""`python -m paddlecloud.pfs.serving`: the file service, alone or as a child of the server."""

from __future__ import annotations

import gc
import logging
import os
import sys
from collections.abc import Sequence

from paddlecloud.core.errors import PaddleCloudError
from paddlecloud.pfs.serving.log_limit import limit_logs

# A thread that comes back from a disk or a socket waits this long for one that computes.
_SWITCH_THREADS_S = 0.0005


def main(argv: Sequence[str] | None = None) -> int:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    limit_logs()
    gc.disable()  # nothing made while starting is garbage; enabled when it serves
    sys.setswitchinterval(_SWITCH_THREADS_S)
    try:
        from paddlecloud.pfs.serving import settings

        wanted = settings.parse(argv, os.environ)
        from paddlecloud.pfs.serving import process

        return process.run(wanted)
    except PaddleCloudError as error:
        where = f"{error.field}: " if error.field else ""
        print(f"error: {where}{error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint:  {error.hint}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main())
