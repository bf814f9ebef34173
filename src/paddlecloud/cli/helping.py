"""`paddlecloud help [VERB|TOPIC]`: everything this program says about itself.

The heads are those of the first client. Each verb's own module holds its usage and examples; this
one only puts them together.
"""

from __future__ import annotations

import sys

from paddlecloud.cli.session import Session
from paddlecloud.cli.verbs import DAILY, GROUPS, NEXT, SUBVERBS, TOPICS, VERBS, module_of

USAGE = "paddlecloud help [verb or topic]"
HELP = """
`paddlecloud help` lists every verb and topic, `paddlecloud` alone those of every day.

Examples:
  paddlecloud help submit
  paddlecloud help exit-codes
"""
FLAGS = ()
HEAD = "Usage: paddlecloud <flags> <subcommand> <subcommand args>"


def run(session: Session) -> int:
    words = session.parsed.positionals
    return about_words(list(words))


def open_session(words: list[str]) -> Session:
    # `help get jobs -x` explains get; the flags of other verbs are no fault here.
    from paddlecloud.forms.go_flags import Parsed

    return Session(Parsed({}, tuple(word for word in words if not word.startswith("-"))))


def about_words(words: list[str]) -> int:
    if not words or words == ["all"]:
        return overview()
    word = words[0]
    if " ".join(words[:2]) in SUBVERBS:
        return about(" ".join(words[:2]))
    if word in VERBS and word not in TOPICS:
        return about(word)
    from paddlecloud.cli.topics import text_of

    text = text_of(word)
    if text is not None:
        sys.stdout.write(text)
        return 0
    from paddlecloud.cli import failures

    raise failures.unknown_verb(word)


def first_screen() -> int:
    """`paddlecloud` alone: what a day takes, and what to type next; fits 24 lines of 80."""
    width = max(map(len, DAILY))
    lines = [HEAD, ""]
    lines += [f"  {verb:<{width}}   {VERBS[verb][2]}" for verb in DAILY]
    lines += [
        "",
        "  paddlecloud help               all subcommands and topics",
        "  paddlecloud help SUBCOMMAND    its flags and examples",
        "",
        "next: paddlecloud up",
        f"then: {NEXT}",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def overview() -> int:
    lines = [HEAD, ""]
    width = max(len(word) for word in (*VERBS, *TOPICS))
    for group in GROUPS:
        lines.append(f"Subcommands for {group}:" if group else "Subcommands:")
        lines += [
            f"\t{verb:<{width}}  {summary}"
            for verb, (_, its_group, summary) in VERBS.items()
            if its_group == group
        ]
        lines.append("")
    lines.append("Topics (paddlecloud help TOPIC):")
    lines += [f"\t{topic:<{width}}  {summary}" for topic, summary in TOPICS.items()]
    lines += ["", 'Use "paddlecloud <subcommand> --help" for its flags and examples.']
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


def about(verb: str) -> int:
    """Usage, flags and examples of one verb."""
    from importlib import import_module

    from paddlecloud.forms.go_flags import help_lines

    summary = SUBVERBS[verb][1] if verb in SUBVERBS else VERBS[verb][2]
    module = import_module(f"paddlecloud.cli.{module_of(verb)}")
    lines = [f"Usage: {module.USAGE}", "", f"{summary[0].upper()}{summary[1:]}.", ""]
    if module.FLAGS:
        lines += ["Flags:", *help_lines(module.FLAGS), ""]
    lines.append(str(module.HELP).strip("\n"))
    # `rm` and `pfs rm` are one module; each is shown in the words it was asked for.
    text = "\n".join(lines).replace(f"paddlecloud pfs {verb}", f"paddlecloud {verb}")
    sys.stdout.write(text + "\n")
    sys.stdout.write('\nFlags every verb knows: "paddlecloud flags"\n')
    return 0
