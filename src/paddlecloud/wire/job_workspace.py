"""How a job of generation B is laid out: its package, and the script that starts each replica.

A package holds `start.sh` (`SCRIPT`) and `env_run/` with the user's files; `entry(command)` is
what the platform runs. The script makes the workspace old programs expect out of that: a folder of
the replica's own with `train_data test_data thirdparty output log`, hooks around the command, its
output in `log/train.log` as well. Whoever accepts such a job makes this layout: the command line,
and the server for clients of the old package. Texts only; nothing here touches a file.
"""

from __future__ import annotations

import shlex

from paddlecloud.wire.job_unpacker import PROGRAM
from paddlecloud.wire.job_words import JOB_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.core.jobspec import JobSpec

SCRIPT_NAME = "start.sh"
FOLDER = "env_run"
_PREFIX = f"exec sh {SCRIPT_NAME} "
LAUNCHER = "PADDLECLOUD_LAUNCHER"  # mpi or slurm: whose variables the program wants to see
CODE_URI = "PADDLECLOUD_CODE_URI"  # a folder or archive under /pfs, put into the workspace

SCRIPT = r"""#!/bin/sh
# Starts one replica of a job made by `paddlecloud job train`.  usage: sh start.sh COMMAND
#
# The workspace is this replica's own copy of env_run, at $TMPDIR/paddlejob/workspace/env_run and,
# where the root is private to the replica, at /root/paddlejob/workspace/env_run as well.
set -u
command=$1
package=$PWD
rank=${PADDLE_TRAINER_ID:-0}
trainers=${PADDLE_TRAINERS_NUM:-1}
role=${TRAINING_ROLE:-TRAINER}
shell=$(command -v bash || echo sh)

fail() {
    echo "paddlejob: $*" >&2
    exit 1
}

# --- the workspace
top=${TMPDIR:-/tmp}/paddlejob
run=$top/workspace/env_run
logs=$top/workspace/log
mkdir -p "$run" "$logs" || fail "cannot make $run"
if [ -d "$package/env_run" ]; then
    cp -R "$package/env_run/." "$run/" || fail "cannot copy the files into $run"
fi
if [ "${PADDLECLOUD_ROOT_FILES:-}" = / ] && mkdir -p /root/paddlejob 2>/dev/null; then
    ln -s "$top/workspace" /root/paddlejob/workspace && run=/root/paddlejob/workspace/env_run
fi
cd "$run" || fail "cannot enter $run"

code=${PADDLECLOUD_CODE_URI:-}
if [ -n "$code" ]; then
    if [ -d "$code" ]; then
        cp -R "$code/." . || fail "cannot copy $code"
    elif [ -f "$code" ]; then
        python=$(command -v python3 || command -v python) ||
            fail "--code-uri: to unpack $code the image needs python3"
        "$python" - "$code" . <<'end of the unpacker' || exit 1
@unpacker@
end of the unpacker
    else
        fail "--code-uri: there is nothing at $code"
    fi
fi
[ -e log ] || ln -s ../log log

# --- inputs: paths under /pfs, separated by commas, globs allowed
for folder in train_data test_data thirdparty; do
    [ -e "$folder" ] || mkdir "$folder"
done

on_pfs() { # a replica without a root of its own is told the host's folders instead of /pfs
    case $1/ in
        /pfs/* | "${PADDLECLOUD_PFS_HOME:-/pfs}"/* | "${PADDLECLOUD_PFS_PUBLIC:-/pfs}"/*) ;;
        *) return 1 ;;
    esac
}

put() { # put FOLDER KEY PATHS OF PART: every OF-th entry, beginning with PART, is linked
    mkdir -p "$1"
    number=0
    saved=$IFS
    IFS=,
    for path in $3; do
        IFS=$saved
        [ -e "$path" ] || fail "$2: there is nothing at $path"
        if [ -d "$path" ]; then
            for entry in "$path"/*; do
                [ -e "$entry" ] && put_one "$1" "$entry" "$4" "$5"
            done
        else
            put_one "$1" "$path" "$4" "$5"
        fi
    done
    IFS=$saved
}

put_one() {
    if [ $((number % $3)) -eq "$4" ]; then
        ln -s "$2" "$1/" || fail "cannot link $2 into $1"
    fi
    number=$((number + 1))
}

if on_pfs "${train_data_path:-}" && [ "$role" = TRAINER ]; then
    put train_data train_data_path "$train_data_path" "$trainers" "$rank"
fi
if on_pfs "${test_data_path:-}"; then
    put test_data test_data_path "$test_data_path" 1 0
fi
if on_pfs "${thirdparty_path:-}"; then
    put thirdparty thirdparty_path "$thirdparty_path" 1 0
fi
if on_pfs "${init_model_path:-}"; then
    [ -e "$init_model_path" ] || fail "init_model_path: there is nothing at $init_model_path"
    [ -e init_model ] || ln -s "$init_model_path" init_model
fi

# --- output: written in place, so that a kill loses nothing
word=rank
[ "$role" = TRAINER ] || word=$(echo "$role" | tr '[:upper:]' '[:lower:]')
name=$(printf '%s-%05d' "$word" "$rank")
if on_pfs "${output_path:-}"; then
    target=$output_path/$name
    if [ "${PADDLECLOUD_ATTEMPT:-1}" = 1 ] && [ -n "$(ls -A "$target" 2>/dev/null)" ]; then
        case ${force_reuse_output_path:-} in
            [Tt]rue | 1) rm -rf "$target" ;;
            *) fail "output_path: $target is not empty (force_reuse_output_path=True empties it)" ;;
        esac
    fi
else
    target=${OUTPUT_PATH:-$top/output}/$name
fi
mkdir -p "$target" || fail "cannot make $target"
if [ -d output ] && [ ! -L output ]; then
    cp -R output/. "$target/" && rm -rf output
fi
[ -e output ] || ln -s "$target" output

# --- what programs of other launchers look for
if [ "$role" = TRAINER ]; then
    case ${PADDLECLOUD_LAUNCHER:-} in
        mpi)
            export OMPI_COMM_WORLD_RANK="$rank" OMPI_COMM_WORLD_SIZE="$trainers"
            export OMPI_COMM_WORLD_LOCAL_RANK=0 PMI_RANK="$rank" PMI_SIZE="$trainers"
            ;;
        slurm)
            export SLURM_PROCID="$rank" SLURM_NTASKS="$trainers" SLURM_LOCALID=0
            export SLURM_NODEID="$rank" SLURM_NNODES="$trainers"
            ;;
    esac
fi
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"

# --- before, the command, after
if [ -f before_hook.sh ]; then
    "$shell" before_hook.sh || fail "before_hook.sh failed with exit code $?"
fi

# A stop reaches the whole process group: the program is given its time to end, the log its lines.
trap : TERM INT HUP
pipe=$top/pipe
mkfifo "$pipe" || fail "cannot make $pipe"
(
    trap '' TERM INT HUP
    exec tee "$logs/train.log" <"$pipe"
) &
copying=$!
"$shell" -c "$command" >"$pipe" 2>&1 &
program=$!
while :; do
    wait "$program"
    code=$?
    kill -0 "$program" 2>/dev/null || break
done
# What the program left behind may hold the pipe open for ever.
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 "$copying" 2>/dev/null || break
    sleep 0.1
done

if [ -f end_hook.sh ]; then
    "$shell" end_hook.sh
    hook=$?
    if [ "$hook" -ne 0 ]; then
        echo "paddlejob: end_hook.sh failed with exit code $hook" >&2
        [ "$code" -ne 0 ] || code=$hook
    fi
fi
exit "$code"
""".replace("@unpacker@", PROGRAM.strip())


def entry(command: str) -> str:
    """What the platform runs in the package folder, so that `command` runs in the workspace.

    `exec`: a shell in between would die of the signal the program is given time to answer.
    """
    return f"{_PREFIX}{shlex.quote(command)}"


def as_sent(spec: JobSpec, suffix: str) -> JobSpec:
    """The spec the platform runs for a user's: a plain unique name, and the start script around
    the command. `suffix` is random."""
    from dataclasses import replace

    from paddlecloud.core.names import plain_job_name

    notes = spec.annotations
    env = {"PADDLE_JOB_NAME": spec.name, **spec.env}
    if notes.get("code-uri"):
        env[CODE_URI] = notes["code-uri"]
    if "launcher" in notes:
        env[LAUNCHER] = notes["launcher"]
    return replace(
        spec,
        name=plain_job_name(spec.name, suffix),
        entry=entry(spec.entry),
        env=env,
        annotations={**notes, JOB_NAME: spec.name},
    )


def command_of(entry_text: str) -> str:
    """The user's command, from an `entry`; any other text is its own command."""
    if not entry_text.startswith(_PREFIX):
        return entry_text
    try:
        words = shlex.split(entry_text[len(_PREFIX) :])
    except ValueError:
        return entry_text
    return words[0] if len(words) == 1 else entry_text
