#!/usr/bin/env bash
# All tests; with arguments, those pytest finds by them. What shares nothing but the machine runs in
# two workers. Afterwards what measures memory, fills disks, kills processes or trains, one by one;
# beside it what stands on a Kubernetes cluster, which mostly waits for pods.
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
on_a_cluster=$(mktemp)
trap 'kill $! 2>/dev/null || true; rm -f "$on_a_cluster"' EXIT
.venv/bin/pytest -q -ra -m cluster "${alone[@]}" >"$on_a_cluster" 2>&1 &
.venv/bin/pytest -q -ra -m "not cluster" "${alone[@]}" || failed=1
wait $! || failed=1
echo "On a Kubernetes cluster, beside those:"
cat "$on_a_cluster"
exit $failed
