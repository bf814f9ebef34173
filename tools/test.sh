#!/usr/bin/env bash
# All tests; with arguments, those pytest finds by them. What stands on a Kubernetes cluster mostly
# waits for pods: it runs beside everything else from the start, on one cluster with a real node and
# on others with pretended ones. Of the rest, what shares nothing but the machine runs in two workers;
# afterwards what fills disks, kills processes or trains: file servers and whole platforms in one lane,
# engines and stores in another.
set -euo pipefail
cd "$(dirname "$0")/.."

together=(tests/architecture tests/cli tests/server tests/unit)
platforms=(tests/pfs tests/e2e)

if [ $# -gt 0 ]; then
    exec .venv/bin/pytest -q -ra "$@"
fi
others=()
for folder in tests/*/; do
    folder=${folder%/}
    [[ " ${together[*]} ${platforms[*]} " == *" $folder "* || $folder == */__pycache__ ]] || others+=("$folder")
done
said=$(mktemp -d)
lanes=()
trap 'kill "${lanes[@]}" 2>/dev/null || true; rm -rf "$said"' EXIT

# lane NAME ARGUMENT...: in the background; what it says is printed at the end.
lane() {
    .venv/bin/pytest -q -ra "${@:2}" >"$said/$1" 2>&1 &
    lanes+=($!)
}

failed=0
lane "on a real node" -m node "${others[@]}"
lane "on clusters" -m "cluster and not node" "${others[@]}"
.venv/bin/pytest -q -ra -n 2 --dist loadfile "${together[@]}" || failed=1
lane "engines and stores" -m "not cluster" "${others[@]}"
.venv/bin/pytest -q -ra "${platforms[@]}" || failed=1
for one in "${lanes[@]}"; do
    wait "$one" || failed=1
done
for file in "$said"/*; do
    echo "Beside those, ${file##*/}:"
    cat "$file"
done
exit $failed
