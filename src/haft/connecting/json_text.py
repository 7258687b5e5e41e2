"""Changes single values in the text of a JSON file, so that every other byte stays as it was written: comments,
trailing commas, order, indentation and line ends. The new text is parsed again, and must mean what was asked for.

`parse` reads what the configuration files of agents may contain: JSON with `//` and `/* */` comments and with trailing
commas. If a key is written twice, the last one counts, as in JavaScript.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from haft.contracts import BadConfig
from haft.lazy import regex
from haft.values import dataclass, field

_SPACE: Final = regex(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)*")
_PIECE: Final = regex(r"[ \t\r\n\ufeff]+|//[^\n]*|/\*(?:[^*]|\*(?!/))*\*/|,")
_STRING: Final = regex(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR: Final = regex(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")
_INDENT: Final = regex(r"\n([ \t]+)\"")
_DEEPEST: Final = 200


_KINDS: Final = {
    list: "a list",
    str: "a text",
    bool: "`true` or `false`",
    int: "a number",
    float: "a number",
    type(None): "`null`",
}


@dataclass(slots=True)
class Node:
    """A value in the text."""

    start: int
    end: int
    value: Any
    members: list[Member] = field(default_factory=list)
    """The members of an object, or the items of an array."""

    def member(self, key: str) -> Member | None:
        """The member with this key. If there are several, the last."""
        return next((each for each in reversed(self.members) if each.key == key), None)


@dataclass(slots=True)
class Member:
    """A member of an object, or an item of an array."""

    key: str | None
    start: int
    node: Node
    comma: int | None = None
    """Where the comma after it stands; None if there is none."""


class BrokenJson(BadConfig):
    """The text is not JSON."""

    def __init__(self, text: str, at: int, what: str) -> None:
        line = text.count("\n", 0, at) + 1
        super().__init__(f"line {line}: {what}")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def document(self) -> Node:
        node, at = self._value(self._skip(0), 0)
        at = self._skip(at)
        if at != len(self.text):
            raise BrokenJson(self.text, at, "there is more text after the end of the JSON value")
        return node

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        assert found is not None
        return found.end()

    def _value(self, at: int, depth: int) -> tuple[Node, int]:
        if depth > _DEEPEST:
            raise BrokenJson(self.text, at, "the values are nested too deeply")
        character = self.text[at : at + 1]
        if character in ("{", "["):
            return self._container(at, depth)
        found = (_STRING if character == '"' else _SCALAR).match(self.text, at)
        if found is None:
            shown = self.text[at : at + 20].split("\n")[0]
            raise BrokenJson(self.text, at, f"a value is expected before `{shown}`" if shown else "the text ends early")
        return Node(at, found.end(), self._loaded(found[0], at)), found.end()

    def _loaded(self, piece: str, at: int) -> Any:
        try:
            return json.loads(piece)
        except ValueError:
            raise BrokenJson(self.text, at, "a text has an escape that JSON does not know") from None

    def _container(self, start: int, depth: int) -> tuple[Node, int]:
        is_object = self.text[start] == "{"
        close = "}" if is_object else "]"
        members: list[Member] = []
        at = self._skip(start + 1)
        while self.text[at : at + 1] != close:
            if members and members[-1].comma is None:
                what = "the text ends early" if at >= len(self.text) else f"`,` or `{close}` is expected"
                raise BrokenJson(self.text, at, what)
            began, key = at, None
            if is_object:
                key, at = self._key(at)
            node, at = self._value(at, depth + 1)
            member = Member(key, began, node)
            members.append(member)
            at = self._skip(at)
            if self.text[at : at + 1] == ",":
                member.comma = at
                at = self._skip(at + 1)
        value: Any = {each.key: each.node.value for each in members} if is_object else [m.node.value for m in members]
        return Node(start, at + 1, value, members), at + 1

    def _key(self, at: int) -> tuple[str, int]:
        found = _STRING.match(self.text, at)
        if found is None:
            what = "the text ends early" if at >= len(self.text) else "a key in double quotes is expected"
            raise BrokenJson(self.text, at, what)
        key = self._loaded(found[0], at)
        at = self._skip(found.end())
        if self.text[at : at + 1] != ":":
            raise BrokenJson(self.text, at, f"`:` is expected after `{key}`")
        return key, self._skip(at + 1)


def parse(text: str) -> Node:
    """The value of a text, with the places of its parts. Raises `BrokenJson`. An empty text is an empty object."""
    if not text.strip(" \t\r\n\ufeff"):
        return Node(0, 0, {})
    return _Reader(text).document()


def value_at(text: str, path: Sequence[str], default: Any = None) -> Any:
    """The value at a path of keys."""
    value = parse(text).value
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return default
        value = value[key]
    return value


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """The text with the value at a path of keys set. Missing objects on the way are made."""
    if not text.strip(" \t\r\n\ufeff"):
        return (
            f"{text[:1] if text.startswith(chr(0xFEFF)) else ''}{_rendered(_nested(path, value), '', '  ', chr(10))}\n"
        )
    node = parse(text)
    for depth, key in enumerate(path):
        if not isinstance(node.value, dict):
            what = f"`{'.'.join(path[:depth])}` must be" if depth else "it must contain"
            raise BadConfig(f"{what} a JSON object, not {_KINDS[type(node.value)]}")
        member = node.member(key)
        if member is None:
            return _checked(_inserted(text, node, key, _nested(path[depth + 1 :], value)), text, path, value)
        node = member.node
    if _same(node.value, value):
        return text
    indent = _line_indent(text, node.start)
    new = _rendered(value, indent, _unit(text), _newline(text), is_flat="\n" not in text.strip())
    return _checked(text[: node.start] + new + text[node.end :], text, path, value)


def without_value(text: str, path: Sequence[str]) -> str:
    """The text without the member at a path of keys. Comments beside it stay."""
    owner = node = parse(text)
    member = None
    for key in path:
        owner, member = node, node.member(key)
        if member is None:
            return text
        node = member.node
    if member is None:
        return text
    return without_value(_removed(text, owner, member), path)  # A second member with the same key would count now.


def with_item(text: str, path: Sequence[str], item: Any) -> str:
    """The text with one more item at the end of the array at a path of keys."""
    found = value_at(text, path)
    if found is None:
        return with_value(text, path, [item])
    if not isinstance(found, list):
        raise BadConfig(f"`{'.'.join(path)}` is not a list")
    return _checked(_inserted(text, _node_at(text, path), None, item), text, path, [*found, item])


def without_items(text: str, path: Sequence[str], items: Sequence[Any]) -> str:
    """The text without these items of the array at a path of keys."""
    while isinstance(value_at(text, path), list):
        node = _node_at(text, path)
        member = next((each for each in node.members if any(_same(each.node.value, one) for one in items)), None)
        if member is None:
            return text
        text = _removed(text, node, member)
    return text


def _node_at(text: str, path: Sequence[str]) -> Node:
    node = parse(text)
    for key in path:
        member = node.member(key)
        assert member is not None
        node = member.node
    return node


def _inserted(text: str, owner: Node, key: str | None, value: Any) -> str:
    """The text with one more member at the end of an object or array."""
    newline, unit = _newline(text), _unit(text)
    outer = _line_indent(text, owner.start)
    last = owner.members[-1] if owner.members else None
    tail = _end_of_comments(text, owner.start + 1 if last is None else last.node.end, owner.end - 1)
    between = text[owner.start + 1 : owner.end - 1]
    is_flat = "\n" not in between if last is not None or "\n" in between else "\n" not in text.strip()
    label = "" if key is None else f"{json.dumps(key, ensure_ascii=False)}: "
    if is_flat:
        word = f"{label}{_rendered(value, '', unit, newline, is_flat=True)}"
        if last is None:
            return text[:tail] + word + text[tail:]
        if last.comma is not None:
            return f"{text[:tail]} {word}{text[tail:]}"
        return f"{text[: last.node.end]}, {word}{text[last.node.end :]}"
    indent = outer + unit
    if last is not None and not text[text.rfind("\n", 0, last.start) + 1 : last.start].strip():
        indent = text[text.rfind("\n", 0, last.start) + 1 : last.start]
    word = f"{newline}{indent}{label}{_rendered(value, indent, unit, newline)}"
    if last is not None and last.comma is not None:
        word += ","
    rest = text[tail:]
    if not rest[: owner.end - 1 - tail].strip(" \t\r"):  # The bracket stands on the same line.
        rest = newline + outer + rest.lstrip(" \t")
    head = text[:tail]
    if last is not None and last.comma is None:
        head = head[: last.node.end] + "," + head[last.node.end :]
    return head + word + rest


def _end_of_comments(text: str, start: int, end: int) -> int:
    """Where the last comment or comma between `start` and `end` ends; `start` if there is none."""
    last = at = start
    while at < end:
        found = _PIECE.match(text, at, end)
        if found is None:
            break
        at = found.end()
        if found[0].strip(" \t\r\n\ufeff"):
            last = at - (1 if found[0].endswith("\r") else 0)
    return last


def _removed(text: str, owner: Node, member: Member) -> str:
    """The text without one member. An object or array that is empty then is written without blanks."""
    number = next(place for place, each in enumerate(owner.members) if each is member)
    if len(owner.members) == 1:
        around = text[owner.start + 1 : member.start] + text[member.node.end : owner.end - 1]
        if not around.replace(",", "", 1).strip():
            return text[: owner.start + 1] + text[owner.end - 1 :]
    start, end = member.start, member.node.end if member.comma is None else member.comma + 1
    line = text.rfind("\n", 0, start) + 1
    after = len(text) if text.find("\n", end) < 0 else text.find("\n", end)
    is_alone = not text[line:start].strip()
    if is_alone and line and not text[end:after].strip(" \t\r"):
        previous = line - 2 if text[line - 2 : line] == "\r\n" else line - 1
        stop = after - 1 if text[after - 1 : after] == "\r" and after > end else after
        start, end = previous, max(stop, end)
    else:
        while text[end : end + 1] in (" ", "\t") and number + 1 < len(owner.members):
            end += 1
    if member.comma is None and number:
        comma = owner.members[number - 1].comma
        assert comma is not None
        if not text[comma + 1 : start].strip():  # Only blanks between: they were written for this member.
            start = comma if "\n" not in text[comma:start] else start
        if comma < start:
            return text[:comma] + text[comma + 1 : start] + text[end:]
        return text[:comma] + text[end:]
    return text[:start] + text[end:]


def _nested(path: Sequence[str], value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _rendered(value: Any, indent: str, unit: str, newline: str, *, is_flat: bool = False) -> str:
    """A value as people write it: lists of plain values stand on one line."""
    is_plain = isinstance(value, list) and not any(isinstance(each, dict | list) for each in value)
    if is_flat or is_plain or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    if isinstance(value, dict):
        words = [
            f"{json.dumps(key, ensure_ascii=False)}: {_rendered(each, inner, unit, newline)}"
            for key, each in value.items()
        ]
    else:
        words = [_rendered(each, inner, unit, newline) for each in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    body = f",{newline}{inner}".join(words)
    return f"{opening}{newline}{inner}{body}{newline}{indent}{closing}"


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(text: str) -> str:
    found = _INDENT.search(text)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if 0 < text.count("\n") == text.count("\r\n") else "\n"


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _checked(new: str, old: str, path: Sequence[str], value: Any) -> str:
    """The new text, if it means what the old one meant, with the value at the path set."""
    expected = _set(parse(old).value, path, value)
    if not _same(parse(new).value, expected):
        raise BadConfig("the file cannot be changed without changing something else", hint="edit the file by hand")
    return new


def _set(value: Any, path: Sequence[str], new: Any) -> Any:
    if not path:
        return new
    inner = value if isinstance(value, dict) else {}
    return {**inner, path[0]: _set(inner.get(path[0], {}), path[1:], new)}
