"""Parses a shell script, collects the values of its variables, and finds the value of a word if haft can tell it."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import tree_sitter
import tree_sitter_bash

from haft.policy.approval.loaded_code.reference import Script

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_VALUES: Final = 50
MOST_SECONDS: Final = 1.0
_CHUNK: Final = 4096
_WORDS: Final = frozenset(("word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion",
                           "command_substitution"))  # fmt: skip
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_EXPANSION: Final = re.compile(r"\$\{(\w+)(?:\[(?:0|@|\*)\])?(?::([Aah])(?::(h))?|(%/\*)|(##\*/)|:?-[^}]*)?\}")

Values = tuple[str, ...] | None
"""The possible values of a word; None if haft cannot tell."""


class Words:
    """The words of one text, and the values of its variables."""

    def __init__(self, script: Script, values: dict[str, Values], end: float = 0) -> None:
        self._script = script
        self._data = script.text.encode("utf-8", "surrogateescape")
        self._values = values
        self._end = end or time.thread_time() + MOST_SECONDS

    def _parsed(self) -> Node | None:
        is_late = False

        def read(offset: int, _point: object) -> bytes:
            nonlocal is_late
            is_late = is_late or time.thread_time() > self._end
            return b"" if is_late else self._data[offset : offset + _CHUNK]

        tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(read)
        return None if is_late or tree is None else tree.root_node

    def _learn(self, tree: Node) -> None:
        """Collect the values of variables from all assignments, wherever they stand, because a function may use a
        variable that is assigned below it."""
        for node in descendants(tree):
            if node.type == "variable_assignment":
                self._assign(node)
            elif node.type == "for_statement":
                self._loop(node)

    def _assign(self, node: Node) -> None:
        name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if name is not None and name.type == "variable_name":
            self._set(self._text(name), ("",) if value is None else self._value(value))

    def _loop(self, node: Node) -> None:
        name = node.child_by_field_name("variable")
        for value in node.children_by_field_name("value") if name is not None else ():
            self._set(self._text(name), self._value(value))  # type: ignore[arg-type]  # not None, by the line above

    def _set(self, name: str, values: Values) -> None:
        known = self._values.get(name, ())
        unclear = known is None or values is None
        self._values[name] = None if unclear else tuple(dict.fromkeys((*known, *values)))[:MOST_VALUES]  # type: ignore[misc]  # neither is None

    def _plain(self, word: Node) -> str:
        """The value of a word; the word as it is written if haft cannot tell the value."""
        values = self._value(word)
        return values[0] if values else self._text(word).lstrip("\"'")

    def _is_option(self, word: Node) -> bool:
        return len(text := self._plain(word)) > 1 and text.startswith("-")

    def _text(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def _value(self, node: Node) -> Values:
        text = self._text(node)
        match node.type:
            case "word" | "number":
                return None if text.startswith("~") or "{" in text else (_ESCAPE.sub(r"\1", text),)
            case "raw_string":
                return (text[1:-1],)
            case "string_content" | "heredoc_content":
                return (re.sub(r"\\([$`\"\\\n])", r"\1", text),)
            case "string":
                return self._joined(node, node.start_byte + 1, node.end_byte - 1)
            case "concatenation":
                return self._joined(node, node.start_byte, node.end_byte)
            case "simple_expansion":
                return self._values.get(text[1:])
            case "expansion":
                return self._expanded(text)
            case "command_substitution":
                return self._substituted(node)
            case _:
                return None

    def _joined(self, node: Node, start: int, end: int) -> Values:
        """The possible values of a word: the values of its pieces, joined with the texts that the parser omits between
        the pieces."""
        pieces: list[Values] = []
        for child in node.named_children:
            pieces.append((self._data[start : child.start_byte].decode("utf-8", "surrogateescape"),))
            pieces.append(self._value(child))
            start = child.end_byte
        pieces.append((self._data[start:end].decode("utf-8", "surrogateescape"),))
        if any(piece is None for piece in pieces):
            return None
        every = itertools.product(*(piece for piece in pieces if piece is not None))
        return tuple(dict.fromkeys("".join(each) for each in itertools.islice(every, MOST_VALUES)))

    def _expanded(self, text: str) -> Values:
        found = _EXPANSION.fullmatch(text)
        values = None if found is None else self._values.get(found[1])
        if found is None or values is None:
            return None
        _name, real, head, above, last = found.groups()
        if real is not None:
            values = tuple(self._script.real(each) if real in "Aa" else os.path.dirname(each) for each in values)
        if above is not None or head is not None:
            values = tuple(os.path.dirname(each) if "/" in each else each for each in values)
        return tuple(map(os.path.basename, values)) if last is not None else values

    def _substituted(self, node: Node) -> Values:
        """The output of a substitution, if its commands are of the kind with which scripts find their own directory;
        None if they are not."""
        here: Values = None
        printed: Values = None
        for command in _commands(node):
            name, *words = _words(command)
            values = [self._value(word) for word in words if not self._is_option(word)]
            first = values[0] if values else None
            match self._text(name):
                case "cd":
                    here = first
                case "pwd":
                    printed = here
                case "dirname":
                    printed = None if first is None else tuple(os.path.dirname(each) or "." for each in first)
                case "basename":
                    printed = None if first is None or len(values) > 1 else tuple(map(os.path.basename, first))
                case "realpath" | "readlink":
                    printed = None if first is None else tuple(map(self._script.real, first))
                case "echo":
                    printed = first if len(values) == 1 else None
                case _:
                    return None
        return printed


def descendants(node: Node) -> Iterator[Node]:
    """Yield all nodes below a node, in the order of the text."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack += reversed(one.named_children)


def _commands(node: Node) -> Iterator[Node]:
    """Yield the simple commands of a substitution, without those of nested substitutions."""

    for child in node.named_children:
        if child.type == "command":
            yield child
        elif child.type in ("list", "redirected_statement"):
            yield from _commands(child)


def _words(command: Node) -> list[Node]:
    return [child.named_children[0] if child.type == "command_name" and child.named_children else child
            for child in command.named_children if child.type == "command_name" or child.type in _WORDS]  # fmt: skip
