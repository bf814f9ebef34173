"""Reads the part of YAML that `~/.paddle/config` is written in, quickly and with line numbers.

It promises: every value is the text as written (a password `007` stays `007`), maps and lists
remember their line, and anything beyond the small part falls back to PyYAML with the same
result. Called by `config`. It never resolves tags, builds objects or guesses at types.

The small part: `key: value` maps by indentation, lists of `- key: value`, plain or quoted
one-line values, `#` comments, one document.
"""

from __future__ import annotations

_NULLS = ("", "~", "null", "Null", "NULL")
_BEYOND = frozenset("[]{}&*!|>%@`,?")


class Malformed(ValueError):
    """The text is not the YAML a configuration is; `line` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line}: {problem}")
        self.line = line
        self.problem = problem


class Text(str):
    """A scalar as written, with its line."""

    line = 0


class Map(dict[str, object]):
    line = 0


class List(list[object]):
    line = 0


class _Beyond(Exception):
    """The file uses more of YAML than the quick reader knows."""


def read(text: str) -> object:
    """A `Map`, `List` or `Text`; an empty file is an empty map."""
    try:
        return _Reader(text).read()
    except _Beyond:
        return _read_with_pyyaml(text)


def text_at(value: str, line: int) -> Text:
    text = Text(value)
    text.line = line
    return text


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines: list[tuple[int, int, str]] = []  # line number, indent, content
        for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
            content = _without_comment(raw).rstrip()
            body = content.lstrip(" ")
            if not body or (number == 1 and body == "---"):
                continue
            if body.startswith("\t"):
                raise Malformed(number, "a tab cannot indent; use spaces")
            if body in ("---", "...") or body.startswith("%"):
                raise _Beyond
            self._lines.append((number, len(content) - len(body), body))
        self._at = 0

    def read(self) -> object:
        if not self._lines:
            return Map()
        value = self._block(self._lines[0][1])
        if self._at < len(self._lines):
            number, _, _ = self._lines[self._at]
            raise Malformed(number, "is indented less than what it belongs to")
        return value

    def _block(self, indent: int) -> object:
        number, _, body = self._lines[self._at]
        if body == "-" or body.startswith("- "):
            return self._list(indent)
        if _split_key(body) is None:
            raise Malformed(number, f"expected `key: value`, found {_shorten(body)}")
        return self._map(indent)

    def _list(self, indent: int) -> List:
        items = List()
        items.line = self._lines[self._at][0]
        while self._at < len(self._lines):
            number, here, body = self._lines[self._at]
            if here < indent or not (body == "-" or body.startswith("- ")):
                if here > indent:
                    raise Malformed(number, "is indented more than the list it follows")
                break
            if here > indent:
                raise Malformed(number, "is indented more than the item before it")
            rest = body[1:].lstrip(" ")
            if not rest:
                self._at += 1
                items.append(self._below(indent, number))
            elif _split_key(rest) is not None:
                # `- key: value`: a map that starts on the dash's line.
                inner = indent + len(body) - len(rest)
                self._lines[self._at] = (number, inner, rest)
                items.append(self._map(inner))
            else:
                self._at += 1
                items.append(_scalar(rest, number))
        return items

    def _map(self, indent: int) -> Map:
        result = Map()
        result.line = self._lines[self._at][0]
        while self._at < len(self._lines):
            number, here, body = self._lines[self._at]
            if here < indent or (here == indent and body.startswith("- ")):
                break
            if here > indent:
                raise Malformed(number, "is indented more than the line before it")
            split = _split_key(body)
            if split is None:
                raise Malformed(number, f"expected `key: value`, found {_shorten(body)}")
            key, rest = split
            if key in result:
                raise Malformed(number, f"{key} is there twice")
            self._at += 1
            result[key] = _scalar(rest, number) if rest else self._below(indent, number)
        return result

    def _below(self, indent: int, number: int) -> object:
        """The value on the lines after `key:` or `-`; nothing deeper means it is empty."""
        if self._at < len(self._lines):
            _, here, body = self._lines[self._at]
            # YAML lets a list stand as far left as the key that owns it.
            if here > indent or (here == indent and body.startswith("- ")):
                return self._block(here)
        return text_at("", number)


def _without_comment(line: str) -> str:
    if "#" not in line:
        return line
    quote = ""
    for at, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"" and (at == 0 or line[at - 1] in " :-"):
            quote = char
        elif char == "#" and (at == 0 or line[at - 1] in " \t"):
            return line[:at]
    return line


def _split_key(body: str) -> tuple[str, str] | None:
    """`key: value` → both; None when the line has no key."""
    if body[0] in _BEYOND:
        raise _Beyond
    if body[0] in "'\"":
        end = body.find(body[0], 1)
        if end < 0 or "\\" in body[:end]:
            raise _Beyond
        key, rest = body[1:end], body[end + 1 :].lstrip(" ")
        if not rest.startswith(":"):
            return None
        return key, rest[1:].strip(" ")
    at = body.find(": ")
    if at < 0:
        return (body[:-1].rstrip(), "") if body.endswith(":") else None
    return body[:at].rstrip(), body[at + 2 :].strip(" ")


def _scalar(text: str, number: int) -> Text:
    if text[0] in _BEYOND or "\t" in text:
        raise _Beyond
    if text[0] in "'\"":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != text[0]:
            raise Malformed(number, "a quoted value is not closed on its line")
        if text[0] in inner or "\\" in inner:
            raise _Beyond  # escapes are PyYAML's business
        return text_at(inner, number)
    if ": " in text or text.endswith(":"):
        raise Malformed(number, 'the value holds ": "; put it in quotes')
    return text_at("" if text in _NULLS else text, number)


def _shorten(text: str) -> str:
    # A line may hold a password: the shape is shown, never the value after a colon.
    head = text.split(":", 1)[0]
    return repr(head if len(head) <= 30 else head[:30] + "…")


def _read_with_pyyaml(text: str) -> object:
    import yaml

    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else 1
        raise Malformed(line, getattr(error, "problem", "") or "is not YAML") from None
    return Map() if node is None else _from_node(node)


def _from_node(node: object, depth: int = 0) -> object:
    import yaml

    if depth > 20:  # also what an alias to itself comes to
        raise Malformed(node.start_mark.line + 1, "is nested too deeply")  # type: ignore[attr-defined]
    line = node.start_mark.line + 1  # type: ignore[attr-defined]
    if isinstance(node, yaml.MappingNode):
        result = Map()
        result.line = line
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise Malformed(key.start_mark.line + 1, "a key must be one word")
            if key.value in result:
                raise Malformed(key.start_mark.line + 1, f"{key.value} is there twice")
            result[key.value] = _from_node(value, depth + 1)
        return result
    if isinstance(node, yaml.SequenceNode):
        items = List(_from_node(item, depth + 1) for item in node.value)
        items.line = line
        return items
    is_plain = node.style is None  # type: ignore[attr-defined]
    text: str = node.value  # type: ignore[attr-defined]
    return text_at("" if is_plain and text in _NULLS else text, line)
