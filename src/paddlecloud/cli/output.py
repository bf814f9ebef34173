"""Lists and objects in the formats of `-o`: JSON, YAML, names.

It promises: JSON lists are `{"items": [...]}`; what a script reads is what the server sent. Called
by the verbs that print data. It never prints a table: that is the verb's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from paddlecloud.cli.session import Session


def print_object(session: Session, value: Mapping[str, object], form: str) -> None:
    if form == "yaml":
        import yaml

        session.write(yaml.safe_dump(_plain(value), sort_keys=False, allow_unicode=True))
    else:
        session.say(json.dumps(value, indent=2, ensure_ascii=False))


def print_items(session: Session, items: Sequence[Mapping[str, object]], form: str) -> None:
    if form == "name":
        session.write("".join(f"{item['name']}\n" for item in items))
    else:
        print_object(session, {"items": list(items)}, form)


def _plain(value: object) -> object:
    """Through JSON and back: only what YAML prints without tags of its own."""
    return json.loads(json.dumps(value))
