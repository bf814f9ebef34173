#!/usr/bin/env bash
# All tests; with arguments, those pytest finds by them. What stands on a Kubernetes cluster mostly
# waits for pods: it runs beside everything else from the start, on one cluster with a real node and
# on others with pretended ones. Of the rest, what shares nothing but the machine runs in two workers;
# afterwards what measures memory, fills disks, kills processes or trains, one by one.
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
said=$(mktemp -d)
beside=()
trap 'kill "${beside[@]}" 2>/dev/null || true; rm -rf "$said"' EXIT
for marks in "node" "cluster and not node"; do
    .venv/bin/pytest -q -ra -m "$marks" "${alone[@]}" >"$said/$marks" 2>&1 &
    beside+=($!)
done
failed=0
.venv/bin/pytest -q -ra -n 2 --dist loadfile "${together[@]}" || failed=1
.venv/bin/pytest -q -ra -m "not cluster" "${alone[@]}" || failed=1
for one in "${beside[@]}"; do
    wait "$one" || failed=1
done
for file in "$said"/*; do
    echo "Beside those, on Kubernetes (${file##*/}):"
    cat "$file"
done
exit $failed
