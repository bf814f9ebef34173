#!/usr/bin/env bash
# All tests; with arguments, those pytest finds by them. What shares nothing but the machine runs in
# two workers; what measures memory, fills disks, kills processes or trains runs alone afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."

together=(tests/architecture tests/cli tests/server tests/unit)

if [ $# -gt 0 ]; then
    exec .venv/bin/pytest -q -ra "$@"
fi
alone=()
for folder in tests/*/; do
    folder=${folder%/}
    [[ " ${together[*]} " == *" $folder "* || $folder == */__pycache__ ]] || alone+=("$folder")
done
failed=0
.venv/bin/pytest -q -ra -n 2 --dist loadfile "${together[@]}" || failed=1
.venv/bin/pytest -q -ra "${alone[@]}" || failed=1
exit $failed
