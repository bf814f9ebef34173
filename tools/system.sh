#!/usr/bin/env bash
# Looks for the programs pip cannot bring. As root on a machine with apt it installs what is
# missing; otherwise it says what is missing, what that costs, and how to get it. It never fails
# for that: the platform runs without them, and says what it then cannot do. It never uses sudo.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
consequences=()

needs() { # needs <package> <what is lost without it>
    packages+=("$1")
    consequences+=("$1: $2")
}

command -v bwrap >/dev/null ||
    needs bubblewrap "without it jobs are not isolated and the platform serves one account"
command -v openssl >/dev/null ||
    needs openssl "without it \`up --tls\` cannot make certificates"
has_postgres() { # Debian keeps its programs beside the path, in a folder per version
    local folder
    for folder in /usr/lib/postgresql/*/bin /usr/local/bin ${PATH//:/ }; do
        [ -x "$folder/initdb" ] && [ -x "$folder/pg_ctl" ] && [ -x "$folder/postgres" ] && return 0
    done
    return 1
}
# Only the tests need a database server; nobody gets one for a demo.
[ -z "${PADDLECLOUD_STRICT:-}" ] || has_postgres ||
    needs postgresql "without it the tests on PostgreSQL are skipped"
[ -z "${PADDLECLOUD_STRICT:-}" ] || command -v ip >/dev/null ||
    needs iproute2 "without it the test cluster has no real node"
command -v curl >/dev/null ||
    needs curl "without it the API guide cannot be followed or checked"
# Only `make bench` compares with other people's programs.
if [ -n "${PADDLECLOUD_BENCH:-}" ]; then
    export PATH=$PATH:/usr/sbin:/usr/local/sbin
    for peer in rsync nginx sshd:openssh-server; do
        command -v "${peer%%:*}" >/dev/null ||
            needs "${peer##*:}" "without it \`bench/pfs_bench.py\` has nothing to compare with"
    done
fi
"$(tools/python.sh)" -c 'import ensurepip, venv' 2>/dev/null ||
    needs python3-venv "without it no virtual environment can be made"

[ ${#packages[@]} -gt 0 ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "system: installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    # The list of packages may be older than the archive; it is fetched only if that is so.
    if apt-get install -y -qq "${packages[@]}" >/dev/null 2>&1 ||
        { apt-get update -qq && apt-get install -y -qq "${packages[@]}" >/dev/null; }; then
        exit 0
    fi
    echo "system: apt-get could not install them; going on without" >&2
fi
echo "system: missing"
printf '  %s\n' "${consequences[@]}"
echo "  on Debian or Ubuntu, as root: apt-get install -y ${packages[*]}"
