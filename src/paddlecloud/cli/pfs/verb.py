"""`paddlecloud pfs ACTION ...`: the word alone. Each action is a module of its own.

Reached only when no action was given, or an unknown one; `main` finds the others in
`verbs.SUBVERBS`.
"""

from __future__ import annotations

from paddlecloud.cli.session import Session
from paddlecloud.cli.verbs import SUBVERBS, actions_of
from paddlecloud.core.errors import InvalidInput

USAGE = "paddlecloud pfs ACTION [options] PATH ..."
_LIST = "\n".join(f"  {verb[4:]:<6} {summary}" for verb, (_, summary) in SUBVERBS.items())
HELP = f"""
Actions (paddlecloud help pfs ACTION):
{_LIST}

Paths on the platform begin with /pfs/, or with '~/' for your own home there (paddlecloud help
paths); all others are local. What a job left is fetched by paddlecloud outputs JOB FOLDER.

Examples:
  paddlecloud pfs cp -r ./data '~/'
  paddlecloud pfs ls -l '~/data'
  paddlecloud pfs cp '~/data/part-*.gz' ./parts/
  paddlecloud pfs sync --delete ./data/ '~/data'
"""
FLAGS = ()


def open_session(words: list[str]) -> Session:
    # There is no action whose flags these could be; what is wrong is the action.
    from paddlecloud.forms.go_flags import Parsed

    return Session(Parsed({}, tuple(word for word in words if not word.startswith("-"))))


def run(session: Session) -> int:
    actions = actions_of("pfs")
    words = session.parsed.positionals
    if not words:
        raise InvalidInput(f"pfs what? It can {', '.join(actions)}", hint=f"usage: {USAGE}")
    from paddlecloud.forms.faults import nearest

    near = nearest(words[0], actions)
    advice = f"Did you mean {near}?" if near else f"It can {', '.join(actions)}"
    raise InvalidInput(f"pfs cannot {words[0]}. {advice}", hint="paddlecloud help pfs")
