#!/usr/bin/env bash
# Makes .venv with the project (editable) and everything that checks it, at the versions of
# constraints.txt. `make venv` calls it when .venv/.stamp is older than what it was made from.
# Which package index is used is for the machine's pip configuration to say.
#
# The editable install is one plain path line in a .pth file: no import hook, so that starting
# `paddlecloud` costs what starting Python costs (docs/decisions/0001-dependencies.md).
set -euo pipefail
cd -P "$(dirname "$0")/.."

exec 9>.venv.lock
flock 9
for source in pyproject.toml constraints.txt tools/venv.sh tools/python.sh; do
    [ .venv/.stamp -nt "$source" ] || stale=yes
done
# A virtual environment holds its own path: a moved or copied checkout needs a new one.
[ "$(cat .venv/.stamp 2>/dev/null)" = "$PWD" ] || { stale=yes && rm -rf .venv; }
[ "${stale:-}" ] || exit 0 # another make was faster

python=$(tools/python.sh)
if ! [ -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "venv: creating .venv with $("$python" --version)"
    if ! "$python" -m venv --clear .venv; then
        echo "venv: this Python cannot make virtual environments;" >&2
        echo "      on Debian or Ubuntu: apt-get install python3-venv (as root, \`make system\` does it)" >&2
        exit 1
    fi
fi

pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)
echo "venv: installing what constraints.txt pins"
# pip first: the console scripts of an older one import `re`, a third of the start-up time.
"${pip[@]}" install -c constraints.txt pip setuptools
"${pip[@]}" install -c constraints.txt --no-build-isolation --editable '.[dev,postgres]'
# Where PYTHONDONTWRITEBYTECODE is set nothing is ever cached, and every start would compile anew.
.venv/bin/python -m compileall -q -j0 src .venv/lib || echo "venv: some files could not be compiled" >&2
echo "$PWD" >.venv/.stamp
