"""`python -m paddlecloud.server.bootstrap`: a new token for an administrator who lost theirs.

For whoever owns the state directory, with the server running or not. Prints where the token was
put, never the token.
"""

from __future__ import annotations

import argparse
import os
import sys

from paddlecloud.core.errors import PaddleCloudError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m paddlecloud.server.bootstrap", description=__doc__
    )
    parser.add_argument("--state", help="state directory (PADDLECLOUD_HOME, ~/.paddlecloud)")
    parser.add_argument("--account", required=True, help="the administrator; made if missing")
    arguments = parser.parse_args(argv)
    if arguments.state is not None:
        os.environ["PADDLECLOUD_HOME"] = arguments.state
    from paddlecloud.server import configuration, starting

    try:
        chosen = configuration.load()
        starting.make_directories(chosen.storage.state_dir)
        starting.set_up_django(chosen)
        starting.begin_process(chosen)
        path = starting.bootstrap_account(arguments.account, renew_token=True)
    except PaddleCloudError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return error.exit_code
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
