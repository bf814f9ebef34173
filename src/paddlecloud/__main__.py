"""`python -m paddlecloud`: the command line where no script was installed for it."""

from __future__ import annotations

import sys

from paddlecloud.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
