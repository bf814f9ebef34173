#!/usr/bin/env bash
# Prints the path of a Python >= 3.11: $PYTHON if set, else the first that answers. `make venv` and
# `make runtime` ask it. It never installs anything.
set -euo pipefail

for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        # The real file: a version manager's shim may answer differently from another directory.
        exec "$candidate" -c 'import sys; print(sys.executable)'
    fi
done
echo "PaddleCloud needs Python 3.11 or newer (tried: ${PYTHON:-python3 python3.13 python3.12 python3.11})." >&2
echo "Install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2
exit 1
