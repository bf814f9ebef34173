"""`paddlecloud completion bash|zsh|fish`: a script for the shell; `words` is what it calls back.

The script asks this program for every completion, so verbs, flags, job names and paths under /pfs
are never stale.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.cli.verbs import TOPICS, VERBS, actions_of, module_of
from paddlecloud.core.errors import InvalidInput, PaddleCloudError
from paddlecloud.forms.go_flags import Flag, Kind

USAGE = "paddlecloud completion bash | zsh | fish"
HELP = """
Examples:
  source <(paddlecloud completion bash)                      # in ~/.bashrc
  source <(paddlecloud completion zsh)                       # in ~/.zshrc, after compinit
  paddlecloud completion fish > ~/.config/fish/completions/paddlecloud.fish
"""
FLAGS = ()

BASH = """_paddlecloud() {
    local IFS=$'\\n'
    COMPREPLY=($(paddlecloud completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]} == [/~]* ]] && compopt -o filenames -o nospace 2>/dev/null
    return 0
}
complete -o default -F _paddlecloud paddlecloud paddlectl
"""
ZSH = """_paddlecloud() {
    local -a found
    found=(${(f)"$(paddlecloud completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    if (( ! ${#found} )); then _files
    elif [[ $found[1] == [/~]* ]]; then compadd -S '' -a found
    else compadd -a found; fi
}
compdef _paddlecloud paddlecloud paddlectl
"""
FISH = """function __paddlecloud_words
    set -l line (commandline -opc)
    paddlecloud completion words -- $line[2..-1] (commandline -ct) 2>/dev/null
end
complete -c paddlecloud -a '(__paddlecloud_words)'
complete -c paddlectl -a '(__paddlecloud_words)'
"""
_SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

_MOST_PATHS = 500
_TAKE_A_JOB = {"logs", "describe", "outputs", "explain", "events", "wait", "rerun", "kill", "scale"}
_WORDS = {
    "get": ("jobs", "workers", "quota"),
    "file": ("put", "get", "ls"),
    "account": ("add", "list", "quota", "token", "cert"),
    "runtime": ("add", "install", "list", "remove"),
    "job": ("train", "state", "list", "rerun", "info", "kill", "delete", "replace"),
    "algo": ("list", "create", "info", "delete"),
    "cluster": ("list", "info"),
    "config": ("show", "use-datacenter"),
    "completion": ("bash", "zsh", "fish"),
}


def run(session: Session) -> int:
    words = session.parsed.positionals
    if words and words[0] == "words":
        session.write("".join(f"{word}\n" for word in candidates(session, list(words[1:]))))
        return 0
    if len(words) != 1 or words[0] not in _SCRIPTS:
        raise InvalidInput("completion for which shell?", hint=f"usage: {USAGE}")
    session.write(_SCRIPTS[words[0]])
    return 0


def candidates(session: Session, line: list[str]) -> list[str]:
    """What could stand in place of the last word; nothing means: complete file names."""
    *before, current = line or [""]
    verb = next((word for word in before if not word.startswith("-")), "")
    if not verb:
        return _starting(current, VERBS)
    if verb not in VERBS:
        return []
    actions = actions_of(verb)
    if actions:
        action = next((word for word in before if word in actions), "")
        if not action and not current.startswith("-"):
            return _starting(current, actions)
        verb = f"{verb} {action}".strip()
    flags = _flags_of(verb)
    previous = before[-1] if before else ""
    asked = _flag_named(previous, flags) if previous.startswith("-") else None
    if asked is not None and asked.kind is not Kind.BOOL and asked.alone is None:
        return _starting(current, asked.choices)
    if current.startswith("-"):
        dashes = "--" if current.startswith("--") else "-"
        names = [dashes + name.lstrip("-") for flag in flags for name in flag.names]
        return _starting(current, names)
    if verb == "help":
        return _starting(current, (*VERBS, *TOPICS))
    if current.startswith(("/pf", "~/", "'~/")):
        return _remote_paths(session, current.lstrip("'"))
    first = verb.partition(" ")[0]
    rest = [word for word in before[before.index(first) + 1 :] if not word.startswith("-")]
    if verb in _TAKE_A_JOB or (verb == "get" and rest[:1] == ["workers"]):
        return _starting(current, _job_names(session))
    return _starting(current, _WORDS.get(verb, ())) if not rest else []


def _starting(prefix: str, words: object) -> list[str]:
    return [str(word) for word in words if str(word).startswith(prefix)]  # type: ignore[attr-defined]


def _flags_of(verb: str) -> tuple[Flag, ...]:
    from importlib import import_module

    from paddlecloud.cli.everywhere import FLAGS as EVERYWHERE

    module = import_module(f"paddlecloud.cli.{module_of(verb)}")
    return (*module.FLAGS, *EVERYWHERE)


def _flag_named(word: str, flags: tuple[Flag, ...]) -> Flag | None:
    bare = word.lstrip("-")
    return next((f for f in flags if bare in [name.lstrip("-") for name in f.names]), None)


def _remote_paths(session: Session, current: str) -> list[str]:
    """What is in the folder being typed, folders with a slash; first of all the caller's own."""
    from itertools import islice

    from paddlecloud.cli.pfs import paths

    folder = current.rpartition("/")[0]
    try:
        home = paths.home(session) + "/"
        if home.startswith(current):
            return [home]
        [whole] = paths.resolve(session, [folder])
        listed = list(islice(session.client.files.entries(whole), _MOST_PATHS))
    except PaddleCloudError:
        return []
    slash = {"directory": "/"}
    found = [f"{folder}/{entry['name']}{slash.get(entry['type'], '')}" for entry in listed]
    return _starting(current, found)


def _job_names(session: Session) -> list[str]:
    try:
        page = session.client.jobs_page("all", limit=100)
    except PaddleCloudError:
        return []
    return sorted({str(job["name"]) for job in page["items"]})
