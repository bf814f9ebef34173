#!/usr/bin/env bash
# Makes the PaddlePaddle runtime: a virtual environment of its own in the user's cache, so that
# every checkout shares one (it is large). `make runtime` calls it; it prints the directory, and
# with --where only says which that is.
#
# A virtual environment cannot be moved, so it is built in place under a lock, and the stamp that
# says it is whole is written last. A half-built one is thrown away by the next run.
set -euo pipefail
cd "$(dirname "$0")/.."

# The Python of .venv, so that the platform and its default runtime agree on the version.
if [ -x .venv/bin/python ]; then
    python=$(.venv/bin/python -c 'import sys; print(sys._base_executable)')
else
    python=$(tools/python.sh)
fi
tag=$("$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
version=$(sed -n 's/^paddlepaddle==//p' constraints-runtime.txt)
home=${PADDLECLOUD_RUNTIMES:-${XDG_CACHE_HOME:-$HOME/.cache}/paddlecloud/runtimes}
runtime=$home/paddle-$version-$tag
stamp=$runtime/.complete

if [ "${1:-}" = --where ]; then
    echo "$runtime"
    exit 0
fi

pins() { grep -v -e '^#' -e '^$' constraints-runtime.txt; }
is_whole() { [ -x "$runtime/bin/python" ] && pins | cmp --quiet - "$stamp"; }

if ! is_whole; then
    mkdir -p "$home"
    exec 9>"$runtime.lock"
    flock --nonblock 9 || { echo "runtime: another make is building it; waiting" && flock 9; }
fi
if ! is_whole; then
    echo "runtime: building PaddlePaddle $version in $runtime (about 200 MB to fetch, 850 MB on disk)"
    rm -rf "$runtime"
    "$python" -m venv "$runtime"
    "$runtime/bin/python" -m pip install --quiet --disable-pip-version-check \
        -c constraints-runtime.txt paddlepaddle protobuf setuptools
    "$runtime/bin/python" -W ignore -c 'import paddle' # a runtime that cannot is not one
    pins >"$stamp"
fi
echo "runtime: $runtime"
