"""What a shell script loads: `source`, `.`, scripts handed to an interpreter, and programs beside the script.

Paths are literal, or made from the script's own place in the ways that scripts do that: `dirname "$0"`,
`${BASH_SOURCE[0]%/*}`, `cd … && pwd`, and variables that were set to such a path. Every value that a variable is set to
counts, so too much is found rather than too little.
"""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from haft.policy.approval.sourced.reference import Language, Reference, Said, Script, absolute

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_SECONDS: Final = 0.5
MOST_VALUES: Final = 50
_CHUNK: Final = 4096
_INTERPRETERS: Final[dict[str, Language]] = {
    **dict.fromkeys(("bash", "sh", "dash", "zsh", "ksh"), "shell"),
    **dict.fromkeys(("python", "python3"), "python"),
    **dict.fromkeys(("node", "nodejs", "bun", "deno", "tsx"), "javascript"),
}
_BEFORE: Final = frozenset(("exec", "command", "builtin", "env", "nohup", "nice", "time", "sudo", "setsid", "uv"))
"""What runs the command that follows it."""
_VERBS: Final = frozenset(("run", "tool"))
"""Of `bun run`, `deno run`, `uv run`."""
_WORDS: Final = frozenset(("word", "number", "string", "raw_string", "concatenation", "simple_expansion", "expansion",
                           "command_substitution"))  # fmt: skip
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/dev/", "/proc/")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_EXPANSION: Final = re.compile(r"\$\{(\w+)(?:\[(?:0|@|\*)\])?(?::([Aah])(?::(h))?|(%/\*)|(##\*/)|:?-[^}]*)?\}")

Values = tuple[str, ...] | None
"""What a word may stand for; None where that cannot be told."""


def said_by(script: Script) -> Said:
    """What a script loads."""
    return _Reader(script).read()


class _Reader:
    def __init__(self, script: Script) -> None:
        self._script = script
        self._data = script.text.encode("utf-8", "surrogateescape")
        self._values: dict[str, Values] = {"0": (script.main,), "BASH_SOURCE": (script.path,)}
        self._here: str | None = None
        """The working directory, where the script went to one; before that it is the call's."""
        self._references: list[Reference] = []
        self._unresolved: list[str] = []

    def read(self) -> Said:
        tree = self._parsed()
        if tree is None:
            return Said((), ("1: it takes too long to parse",))
        # Functions stand before what their variables are set to.
        for node in _descendants(tree):
            if node.type == "variable_assignment":
                self._assign(node)
            elif node.type == "for_statement":
                self._loop(node)
        for node in _descendants(tree):
            if node.type == "command":
                self._command(node)
        return Said(tuple(dict.fromkeys(self._references)), tuple(dict.fromkeys(self._unresolved)))

    def _parsed(self) -> Node | None:
        import tree_sitter
        import tree_sitter_bash

        end, is_late = time.thread_time() + MOST_SECONDS, False

        def read(offset: int, _point: object) -> bytes:
            nonlocal is_late
            is_late = is_late or time.thread_time() > end
            return b"" if is_late else self._data[offset : offset + _CHUNK]

        tree = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language())).parse(read)
        return None if is_late or tree is None else tree.root_node

    # Statements.

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

    def _command(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        if name is None:
            return
        words = [name.named_children[0] if name.named_children else name, *node.children_by_field_name("argument")]
        program: Values = self._value(words[0])
        while program is not None and len(program) == 1 and os.path.basename(program[0]) in _BEFORE:
            del words[0]
            while words and (
                self._is_option(words[0]) or _ASSIGNED.match(self._text(words[0])) or self._is_verb(words)
            ):
                del words[0]
            if not words:
                return
            program = self._value(words[0])
        self._run(program, words)

    def _run(self, program: Values, words: list[Node]) -> None:
        called = os.path.basename(program[0]) if program is not None and len(program) == 1 else ""
        files = [word for word in words[1:] if not self._is_option(word)]
        if called == "cd":
            if _is_in_subshell(words[0]):
                return
            found = self._value(files[0]) if files else None
            self._here = absolute(found[0], self._here) if found is not None and len(found) == 1 else None
        elif called in ("source", "."):
            self._load(files[:1], "shell", is_started=False)
        elif called in _INTERPRETERS:
            if self._is_inline(words[1:]):
                return
            files = files[1:2] if self._is_verb(files) else files[:1]
            self._load(files, _INTERPRETERS[called], is_started=True)
        elif program is None or any("/" in each for each in program):
            self._start(words[0], program)

    def _load(self, files: list[Node], language: Language, *, is_started: bool) -> None:
        for word in files:
            if self._text(word) == "-" or self._text(word).startswith("/dev/"):
                continue
            found = self._value(word)
            paths = [None] if found is None else [absolute(each, self._here) for each in found]
            self._references += [Reference(path, language, is_started) for path in paths if path is not None]
            if None in paths:
                self._say(word)

    def _start(self, word: Node, program: Values) -> None:
        """A program that lies where the script says by its own place. One of the system is not the tool's."""
        if program is not None and ("$" in self._text(word) or self._here is not None):
            paths = [path for each in program if (path := absolute(each, self._here)) is not None]
            self._references += [Reference(path, None, True) for path in paths if not path.startswith(_SYSTEM)]

    def _say(self, word: Node) -> None:
        self._unresolved.append(f"{word.start_point[0] + 1}: {' '.join(self._text(word.parent or word).split())[:200]}")

    def _is_option(self, word: Node) -> bool:
        return self._text(word).startswith("-") and self._text(word) != "-"

    def _is_verb(self, words: list[Node]) -> bool:
        return len(words) > 1 and self._text(words[0]) in _VERBS

    def _is_inline(self, words: list[Node]) -> bool:
        """Whether an interpreter is handed its program as text, or by the name of a module."""
        options = itertools.takewhile(self._is_option, words)
        return any(re.fullmatch(r"-[a-zA-Z]*[cem]|--eval|--print", self._text(word)) for word in options)

    # Words.

    def _text(self, node: Node) -> str:
        return self._data[node.start_byte : node.end_byte].decode("utf-8", "surrogateescape")

    def _value(self, node: Node) -> Values:
        text = self._text(node)
        match node.type:
            case "word" | "number":
                return None if text.startswith("~") or "{" in text else (_ESCAPE.sub(r"\1", text),)
            case "raw_string":
                return (text[1:-1],)
            case "string_content":
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
        """The pieces of a word one behind the other, with what the parser leaves out between them."""
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
        """What the commands print that scripts find their own place with."""
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


def _descendants(node: Node) -> Iterator[Node]:
    """All of them, as they are written."""
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack += reversed(one.named_children)


def _is_in_subshell(node: Node | None) -> bool:
    while node is not None and node.type not in ("subshell", "command_substitution", "process_substitution"):
        node = node.parent
    return node is not None


def _commands(node: Node) -> Iterator[Node]:
    """The simple commands of a substitution, not of those in it."""
    for child in node.named_children:
        if child.type == "command":
            yield child
        elif child.type in ("list", "redirected_statement"):
            yield from _commands(child)


def _words(command: Node) -> list[Node]:
    return [child.named_children[0] if child.type == "command_name" and child.named_children else child
            for child in command.named_children if child.type == "command_name" or child.type in _WORDS]  # fmt: skip
