#!/usr/bin/env bash
# The tour: starts the platform, trains two real jobs on it, fetches the model, asks it two
# questions, and leaves the platform running. `make demo` calls it when all it needs is there.
# Running it again is fine: nothing is made twice but the two jobs.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=$PWD/.venv/bin
export PATH=$bin:$PATH
runtime=$(tools/runtime.sh --where)
out=build/demo

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || say() { printf '\n%s\n' "$1"; }
run() { # shows a command as the user would type it, then runs it
    local word line='$'
    for word in "$@"; do
        case $word in *" "*) line+=" \"$word\"" ;; *) line+=" $word" ;; esac
    done
    printf '%s\n' "$line"
    "$@"
}

say "1. The platform"
run paddlecloud up
run paddlecloud runtime add paddle "$runtime/bin/python"

say "2. Wide & deep: two parameter servers, two trainers"
run paddlecloud submit -jobname wide-deep -parallelism 2 -pservers 2 --runtime paddle \
    -entry "python train.py" --follow examples/wide_and_deep

say "3. Collective: two trainers, data parallel"
run paddlecloud submit -jobname shapes --mode collective -parallelism 2 --runtime paddle \
    -entry "python train.py" --follow examples/collective

say "4. What ran"
run paddlecloud get jobs -a
run paddlecloud get jobs -a -o wide

say "5. The trained model, and what it thinks"
rm -rf "$out"
run paddlecloud outputs wide-deep "$out"
run "$runtime/bin/python" -W ignore examples/wide_and_deep/predict.py "$out/model"

say "The platform is still running. What to type next:"
cat <<NEXT
  export PATH=$bin:\$PATH
  paddlecloud logs wide-deep                    the logs, kept
  paddlecloud outputs wide-deep                 what it left
  paddlecloud describe wide-deep                all about one job
  paddlecloud submit --mode single -entry "python train.py" --follow examples/plain
  paddlecloud help                              every command
  paddlecloud down                              stop the platform
NEXT
