"""Command-line flags by the rules of the `job` client, which was written with argparse.

`parse(argv, flags, faults)` reads `--flag value` and `--flag=value` in any order; an unambiguous
beginning of a flag is enough; `_` and `-` inside a name are alike; a flag of Kind.LIST takes every
word up to the next flag; a word with a blank or a negative number may be a value though it begins
with a dash; `--` ends the flags. The result is that of `go_flags`, so verbs read both alike.
It prints nothing and never exits. Used by `train_flags` and by the actions of `paddlecloud job`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from paddlecloud.forms.faults import FaultList, nearest
from paddlecloud.forms.go_flags import Flag, Given, Kind, Parsed
from paddlecloud.forms.scalars import read_bool, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from paddlecloud.forms.go_flags import Value


def parse(
    argv: Sequence[str],
    flags: Sequence[Flag],
    faults: FaultList,
    *,
    stops_at_positional: bool = False,
    never_values: Collection[str] = (),
    earlier: Sequence[Flag] = (),
) -> Parsed:
    """What `argv` says. Faults are added, not raised; a faulty flag is left out of the result.

    `stops_at_positional`: the first positional and all that follows it are positionals.
    `never_values`: words that are no value of an unknown flag before them. `earlier`: flags that
    are known, and stand before the action these words follow.
    """
    reading = _Reading(flags, faults, never_values, earlier)
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            reading.positionals += words
            break
        if reading.is_flag(word):
            reading.take(word, words)
            continue
        reading.positionals.append(word)
        if stops_at_positional:
            reading.positionals += words
            break
    return Parsed(reading.given, reading.positionals, reading.unknown)


def _bare(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _is_negative_number(word: str) -> bool:
    """`-1`, and what was meant to be one: its reader says what is wrong with `-1:00:00`."""
    return word[1:2] in tuple("0123456789")


class _Reading:
    """The state of one `parse`."""

    def __init__(
        self,
        flags: Sequence[Flag],
        faults: FaultList,
        never_values: Collection[str],
        earlier: Sequence[Flag],
    ) -> None:
        self.by_name = {_bare(name): flag for flag in flags for name in flag.names}
        self.spellings = {_bare(name): name for flag in flags for name in flag.names}
        self.faults = faults
        self.never_values = never_values
        self.earlier = frozenset(_bare(name) for flag in earlier for name in flag.names)
        self.given: dict[str, Given] = {}
        self.positionals: list[str] = []
        self.unknown: list[str] = []

    def is_flag(self, word: str) -> bool:
        """Whether argparse would take the word for a flag, known or not."""
        if len(word) < 2 or not word.startswith("-"):
            return False
        if word == "--" or self._meant(word.partition("=")[0]):
            return True
        return not _is_negative_number(word) and " " not in word

    def _meant(self, written: str) -> dict[str, Flag]:
        """The flags this could be, by a name of each."""
        bare = _bare(written)
        if not bare:
            return {}
        if bare in self.by_name:
            return {bare: self.by_name[bare]}
        found: dict[str, Flag] = {}
        # `--sk KEY` behind the action is no beginning of `--skip-config-check`.
        if written.startswith("--") and bare not in self.earlier:
            for name, flag in self.by_name.items():
                # Two names of one flag are no ambiguity.
                if name.startswith(bare) and flag not in found.values():
                    found[name] = flag
        return found

    def take(self, word: str, rest: list[str]) -> None:
        """Read one flag; takes its values from `rest` where they stand apart."""
        written, equals, joined = word.partition("=")
        meant = self._meant(written)
        if len(meant) != 1:
            self._refuse(written, meant, bool(equals), rest)
            return
        (flag,) = meant.values()
        if flag.kind == Kind.BOOL:
            self._store_switch(flag, written, joined if equals else "true")
        elif equals:
            self._store(flag, written, joined)
        elif not rest or self.is_flag(rest[0]):
            advice = f"; if {rest[0]} is meant, write {written}={rest[0]}" if rest else ""
            self.faults.add(written, f"needs a value{advice}")
        elif flag.kind == Kind.LIST:
            while rest and not self.is_flag(rest[0]):
                self._store(flag, written, rest.pop(0))
        else:
            self._store(flag, written, rest.pop(0))

    def _refuse(
        self, written: str, meant: dict[str, Flag], has_value: bool, rest: list[str]
    ) -> None:
        if meant:
            could_be = " or ".join(self.spellings[name] for name in meant)
            self.faults.add(written, f"is not clear: it could be {could_be}")
        else:
            self.faults.add(written, f"unknown option{self._advice(_bare(written))}")
            self.unknown.append(written)
        # Its value is no positional; complaining about it would confuse.
        is_value = rest and not self.is_flag(rest[0]) and rest[0] not in self.never_values
        if not has_value and is_value:
            rest.pop(0)

    def _advice(self, bare: str) -> str:
        if bare in self.earlier:
            return " here: it stands before the action"
        near = nearest(bare, self.by_name)
        return f"; did you mean {self.spellings[near]}?" if near else ""

    def _store_switch(self, flag: Flag, written: str, text: str) -> None:
        value = self.faults.read(written, text, read_bool)
        if value is not None:
            self._keep(flag, Given(written, text, value))

    def _store(self, flag: Flag, written: str, text: str) -> None:
        if flag.choices and text not in flag.choices:
            near = nearest(text, flag.choices)
            advice = f"; did you mean {near}?" if near else ""
            self.faults.add(written, f"must be one of {', '.join(flag.choices)}{advice}", text)
            return
        value: Value | None = (text,) if flag.kind == Kind.LIST else text
        if flag.kind == Kind.INT:
            value = self.faults.read(written, text, whole_number(flag.low, flag.high))
        if value is not None:
            self._keep(flag, Given(written, text, value))

    def _keep(self, flag: Flag, given: Given) -> None:
        before = self.given.get(flag.key)
        if before is not None and flag.kind == Kind.LIST:
            assert isinstance(before.value, tuple)
            assert isinstance(given.value, tuple)
            given.value = before.value + given.value
        elif before is not None and before.value != given.value:
            self.faults.add(
                given.written, f"was already given as {before.written} {before.text}", given.text
            )
            return
        self.given[flag.key] = given
