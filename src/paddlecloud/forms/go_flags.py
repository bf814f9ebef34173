"""Command-line flags by table, in the grammar of every generation.

`parse(argv, flags, faults)` reads `-x v`, `-x=v`, `--x v` and `--x=v` as one and the same (the Go
rule), in any order with positionals; `--` ends the flags; `-` alone is a positional. `_` and `-`
inside a name are alike (`--min_instance`, `--min-instance`). A switch takes a value only by `=`;
switches of one letter may be joined (`-rf`) where no flag has that name.
Every verb of the command line uses it; it prints nothing and never exits, and it imports next to
nothing, because the import is paid at every start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paddlecloud.forms.faults import FaultList, nearest
from paddlecloud.forms.scalars import read_bool, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    Value = bool | int | str | tuple[str, ...]

_HUGE = 10**15


class Kind:
    """What a flag's value is. Plain texts: an Enum would cost every command a millisecond."""

    BOOL = "switch"
    INT = "number"
    TEXT = "text"
    LIST = "texts"  # may be repeated; each adds one


class Flag:
    """One flag. The first name is its key in the result; names are spelt as help shows them.

    `value` is what help calls its value (N, PATH). `low` and `high` bound an INT. A flag with
    `alone` may stand alone and then means that; a value must then be joined by `=`.
    """

    __slots__ = ("alone", "choices", "high", "key", "kind", "low", "meaning", "names", "value")

    def __init__(
        self,
        names: tuple[str, ...],  # ("-parallelism", "-p")
        kind: str = Kind.TEXT,
        meaning: str = "",
        value: str = "",
        low: int = -_HUGE,
        high: int = _HUGE,
        alone: str | None = None,
        choices: tuple[str, ...] = (),
    ) -> None:
        self.names = names
        self.key = _bare(names[0])
        self.kind = kind
        self.meaning = meaning
        self.value = value
        self.low = low
        self.high = high
        self.alone = alone
        self.choices = choices


class Given:
    """A flag the user wrote: how (`-p`), the text (the last, if repeated), and what it says."""

    __slots__ = ("text", "value", "written")

    def __init__(self, written: str, text: str, value: Value) -> None:
        self.written = written
        self.text = text
        self.value = value


class Parsed:
    """What a command line says: the flags given, by `Flag.key` in the order written, and the rest.

    `unknown` are flags nobody knows; each is already a fault.
    """

    def __init__(
        self,
        given: Mapping[str, Given],
        positionals: Sequence[str] = (),
        unknown: Sequence[str] = (),
    ) -> None:
        self.given = given
        self.positionals = tuple(positionals)
        self.unknown = tuple(unknown)

    def __contains__(self, key: str) -> bool:
        return key in self.given

    def text(self, key: str, default: str = "") -> str:
        return str(self.given[key].value) if key in self.given else default

    def number(self, key: str, default: int = 0) -> int:
        value = self.given[key].value if key in self.given else default
        assert isinstance(value, int)
        return value

    def switch(self, key: str, default: bool = False) -> bool:
        return bool(self.given[key].value) if key in self.given else default

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.given[key].value if key in self.given else ()
        assert isinstance(value, tuple)
        return value


def parse(
    argv: Sequence[str],
    flags: Sequence[Flag],
    faults: FaultList,
    *,
    last_wins: bool = True,
) -> Parsed:
    """What `argv` says. Faults are added, not raised; a faulty flag is left out of the result.

    `last_wins` False makes a flag that is given twice with different values a fault.
    """
    reading = _Reading(flags, faults, last_wins)
    words = list(argv)
    while words:
        word = words.pop(0)
        if word == "--":
            reading.positionals += words
            break
        if len(word) > 1 and word.startswith("-"):
            reading.take_flag(word, words)
        else:
            reading.positionals.append(word)
    return Parsed(reading.given, reading.positionals, reading.unknown)


def _bare(name: str) -> str:
    """What tells flags apart: `--min_instance` and `-min-instance` are one name."""
    dashes = 2 if name.startswith("--") else 1
    return name[dashes:].replace("_", "-")


class _Reading:
    """The state of one `parse`."""

    def __init__(self, flags: Sequence[Flag], faults: FaultList, last_wins: bool) -> None:
        self.by_name = {_bare(name): flag for flag in flags for name in flag.names}
        self.spellings = {_bare(name): name for flag in flags for name in flag.names}
        self.faults = faults
        self.last_wins = last_wins
        self.given: dict[str, Given] = {}
        self.positionals: list[str] = []
        self.unknown: list[str] = []

    def take_flag(self, word: str, rest: list[str]) -> None:
        """Read one flag; takes its value from `rest` where it stands apart."""
        written, equals, joined = word.partition("=")
        flag = self.by_name.get(_bare(written))
        if flag is None and not equals:
            flag, written, joined = self._split_short(word)
        if flag is None and (bundled := self._bundled(word)):
            for letter in bundled:
                self._store(self.by_name[letter], f"-{letter}", "true")
        elif flag is None:
            self._take_unknown(written, bool(equals), rest)
        elif equals or joined:
            self._store(flag, written, joined)
        elif flag.kind == Kind.BOOL:
            self._store(flag, written, "true")
        elif flag.alone is not None:
            self._store(flag, written, flag.alone)
        elif not rest or self._is_known(rest[0]):
            advice = f"; if {rest[0]} is meant, write {written}={rest[0]}" if rest else ""
            self.faults.add(written, f"needs a value{advice}")
        else:
            self._store(flag, written, rest.pop(0))

    def _split_short(self, word: str) -> tuple[Flag | None, str, str]:
        """`-n10` for `-n 10`: a short flag with its number joined."""
        flag = self.by_name.get(word[1])
        if flag and flag.kind != Kind.BOOL and word[2:3].isdecimal():
            return flag, word[:2], word[2:]
        return None, word, ""

    def _bundled(self, word: str) -> str:
        """`-rf` for `-r -f`: the letters, if each is a switch of its own and none comes twice."""
        letters = "" if word.startswith("--") else word[1:]
        is_all = len(set(letters)) == len(letters) and all(
            letter in self.by_name and self.by_name[letter].kind == Kind.BOOL for letter in letters
        )
        return letters if is_all else ""

    def _is_known(self, word: str) -> bool:
        is_flag = len(word) > 1 and word.startswith("-")
        return is_flag and (word == "--" or _bare(word.partition("=")[0]) in self.by_name)

    def _take_unknown(self, written: str, has_value: bool, rest: list[str]) -> None:
        near = nearest(_bare(written), self.by_name)
        advice = f"; did you mean {self.spellings[near]}?" if near else ""
        self.faults.add(written, f"unknown flag{advice}")
        self.unknown.append(written)
        # The value of a mistyped flag is no positional; complaining about it would confuse.
        takes_value = near and self.by_name[near].kind != Kind.BOOL
        if takes_value and not has_value and rest and not rest[0].startswith("-"):
            rest.pop(0)

    def _store(self, flag: Flag, written: str, text: str) -> None:
        value = self._read(flag, written, text)
        if value is None:
            return
        before = self.given.get(flag.key)
        if before is not None and flag.kind == Kind.LIST:
            assert isinstance(before.value, tuple)
            assert isinstance(value, tuple)
            value = before.value + value
        elif before is not None and not self.last_wins and before.value != value:
            self.faults.add(written, f"was already given as {before.written} {before.text}", text)
            return
        self.given[flag.key] = Given(written, text, value)

    def _read(self, flag: Flag, written: str, text: str) -> Value | None:
        if flag.kind == Kind.BOOL:
            return self.faults.read(written, text, read_bool)
        if flag.kind == Kind.INT:
            return self.faults.read(written, text, whole_number(flag.low, flag.high))
        if flag.choices and text not in flag.choices:
            near = nearest(text, flag.choices)
            advice = f"; did you mean {near}?" if near else ""
            self.faults.add(written, f"must be one of {', '.join(flag.choices)}{advice}", text)
            return None
        return (text,) if flag.kind == Kind.LIST else text


def help_lines(flags: Sequence[Flag], width: int = 100) -> list[str]:
    """`  -parallelism N, -p N   trainers (default 1)`: one line per flag, more where it is long."""
    from textwrap import wrap

    heads = []
    for flag in flags:
        value = flag.value or ("" if flag.kind == Kind.BOOL else flag.kind.upper())
        joined = f"[={value}]" if flag.alone is not None else (f" {value}" if value else "")
        heads.append(", ".join(flag.names) + joined)
    column = min(max((len(head) for head in heads), default=0), 36)
    lines = []
    for flag, head in zip(flags, heads, strict=True):
        if len(head) > column:
            lines.append(f"  {head}")
            head = ""
        for said in wrap(flag.meaning, width - column - 4, break_on_hyphens=False) or [""]:
            lines.append(f"  {head:<{column}}  {said}".rstrip())
            head = ""
    return lines
