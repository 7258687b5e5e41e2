"""A parsed line: tree-sitter gives its structure, and every byte is then checked against the rules of bash.

The parser reads some lines differently from bash. So none of its results is trusted: the text between two nodes must be
blank, each operator must be the longest that bash would read there, reserved words must stand where bash reserves them,
and `words` reads each word again, character by character. If the parser and these checks disagree, the line is not
understood.

Text is stored with one character for each byte (Latin-1), so that the parser's offsets can be used; `decode` converts
such text back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any, Final

import tree_sitter

from haft.lazy import regex
from haft.policy.analysis.deadline import Deadline, NotUnderstood
from haft.values import dataclass, field

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

BLANK: Final = regex(r"(?:[ \t\n]|\\\n)*")
BEFORE_WORD: Final = " \t\n;|&()<>`"
_MAX_NODES: Final = 4_000
_MAX_DEPTH: Final = 24
_MAX_PIPES: Final = 400
_MAX_SECONDS: Final = 0.012
_CHUNK: Final = 512
_OPERATORS: Final = (
    ";;&", "<<<", "<<-", "&>>", ";;", ";&", "&&", "||", "|&", ">>", ">&", ">|", "<<", "<&", "<>", "&>", "<(", ">(", "|",
    "&", ";", "<", ">",
)  # fmt: skip
_METACHARACTERS: Final = "|&;<>"
_STRUCTURE: Final = frozenset((
    "program", "list", "pipeline", "redirected_statement", "command", "variable_assignments", "negated_command",
    "subshell", "compound_statement", "if_statement", "elif_clause", "else_clause", "while_statement", "for_statement",
    "do_group", "case_statement", "case_item", "function_definition", "command_substitution", "process_substitution",
    "file_redirect", "herestring_redirect", "declaration_command", "unset_command", "test_command",
))  # fmt: skip
_ON_ONE_LINE: Final = frozenset((
    "redirected_statement", "command", "variable_assignments", "file_redirect", "herestring_redirect",
    "declaration_command", "unset_command",
))  # fmt: skip
_NESTING: Final = _STRUCTURE - {"list", "pipeline", "program", "command", "variable_assignments"} | {
    "expansion", "arithmetic_expansion", "parenthesized_expression", "string",
}  # fmt: skip
_CLOSING: Final = frozenset(("then", "do", "done", "fi", "else", "elif", "esac", "}"))
_CLOSED: Final = regex(r"(?:[;&\n)]|(?:^|[ \t\n;&|(])(?:then|do|done|fi|else|esac|in|\{|\}|!))(?:[ \t\n]|\\\n)*\Z")
RESERVED: Final = frozenset((
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in", "function", "{",
    "}", "!", "[[", "]]", "time", "coproc", "select",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """A command line and its syntax tree."""

    text: str
    root: Node
    deadline: Deadline = field(default_factory=Deadline)

    def raw(self, node: Node) -> str:
        """The text of a node, one character for each byte."""
        return self.text[node.start_byte : node.end_byte]

    def decoded(self, node: Node) -> str:
        """The text of a node as it was written."""
        return decode(self.raw(node))


def decode(text: str) -> str:
    """Convert text with one character for each byte back to the text that was written."""
    return text if text.isascii() else text.encode("latin-1").decode("utf-8", "replace")


def _import_grammar() -> Any:
    """The extension module with the grammar of bash. The `__init__` of its package imports `importlib.resources` too,
    which takes longer than the first parse."""
    package = PathFinder.find_spec("tree_sitter_bash")
    binding = package and PathFinder.find_spec("tree_sitter_bash._binding", package.submodule_search_locations)
    if binding is None or binding.loader is None:  # Another version of the package.
        import tree_sitter_bash

        return tree_sitter_bash
    module = module_from_spec(binding)
    binding.loader.exec_module(module)
    return module


_grammar = _import_grammar()  # Not in the first parse: that has a time limit.
_own = threading.local()


def _parser() -> Parser:
    parser: Parser | None = getattr(_own, "parser", None)
    if parser is None:
        parser = _own.parser = tree_sitter.Parser(tree_sitter.Language(_grammar.language()))
    return parser


def parse(command: str, deadline: Deadline | None = None) -> Source:
    """Parse a command line in which `strange_character` finds no problem. Raises `NotUnderstood` if bash might read the
    line in another way than the parser."""
    content = command.encode("utf-8")
    if content.count(b"|") > _MAX_PIPES:
        raise NotUnderstood("it has too many commands")
    parser = _parser()
    end = time.thread_time() + _MAX_SECONDS
    is_timed_out = False

    def read(offset: int, _point: object) -> bytes:
        nonlocal is_timed_out
        # The parser's error recovery takes more than linear time. An early end of the text stops it.
        is_timed_out = is_timed_out or time.thread_time() > end
        return b"" if is_timed_out else content[offset : offset + _CHUNK]

    tree = parser.parse(read)
    if is_timed_out or tree is None:
        raise NotUnderstood("it takes too long to parse")
    if tree.root_node.has_error:
        raise NotUnderstood("bash would not accept it, or it is incomplete")
    source = Source(content.decode("latin-1"), tree.root_node, deadline or Deadline())
    _check_against_bash(source)
    return source


def _check_against_bash(source: Source) -> None:
    root, text = source.root, source.text
    if not _is_blank(text[: root.start_byte] + text[root.end_byte :]):
        raise NotUnderstood("haft cannot parse all of it")
    ends: list[int] = []
    if root.descendant_count > _MAX_NODES:
        raise NotUnderstood("it has too many words")
    for node in descendants(root):
        if node.type in _NESTING:
            while ends and ends[-1] <= node.start_byte:
                ends.pop()
            ends.append(node.end_byte)
            if len(ends) > _MAX_DEPTH:
                raise NotUnderstood("it is nested too deeply")
        if not node.is_named and text[node.start_byte : node.end_byte] != node.type:
            raise NotUnderstood(f"bash may read `{source.decoded(node)[:40]}` differently")
        if node.type in _STRUCTURE:
            _check_children(source, node)
        elif node.type == "comment":
            _check_comment(text, node)
        elif node.type == "file_descriptor":
            _check_descriptor(text, node)


def _check_children(source: Source, node: Node) -> None:
    at, text = node.start_byte, source.text
    is_one_line = node.type in _ON_ONE_LINE
    for child in node.children:
        if not _is_blank(text[at : child.start_byte]):
            raise NotUnderstood(f"`{decode(text[at : child.start_byte].strip()[:40])}` could not be parsed")
        if is_one_line and "\n" in text[at : child.start_byte].replace("\\\n", ""):
            raise NotUnderstood("a command continues after the end of its line")
        if not child.is_named:
            _check_sign(text, child)
            if child.type in (";;", ";&", ";;&") and node.type != "case_item":
                raise NotUnderstood(f"`{child.type}` is outside of a `case`")
        at = child.end_byte
    if not _is_blank(text[at : node.end_byte]):
        raise NotUnderstood(f"`{decode(text[at : node.end_byte].strip()[:40])}` could not be parsed")


def _check_sign(text: str, node: Node) -> None:
    start, end = node.start_byte, node.end_byte
    sign = text[start:end]
    after = text[end : end + 1]
    if sign and sign[0] in _METACHARACTERS:
        longest = next(each for each in _OPERATORS if text.startswith(each, start))
        is_valid = sign.removesuffix("-") == longest
    elif sign in ("$(", "("):
        is_valid = after != "("
    elif sign in ("{", "!", "[", "[["):
        is_valid = after in (" ", "\t", "\n") and starts_word(text, start)
    elif sign.isalpha() or sign == "}":
        is_valid = starts_word(text, start) and ends_word(text, end)
    else:
        is_valid = True
    if is_valid and sign in _CLOSING:
        is_valid = _CLOSED.search(text, max(0, start - 200), start) is not None
    if not is_valid:
        raise NotUnderstood(f"bash may read `{sign}` differently")


def _check_comment(text: str, node: Node) -> None:
    start, end = node.start_byte, node.end_byte
    if text[start : start + 1] != "#" or not starts_word(text, start) or text[end : end + 1] not in ("", "\n"):
        raise NotUnderstood("bash may not read a comment there")
    if "\n" in text[start:end]:
        raise NotUnderstood("a comment continues after its line")


def _check_descriptor(text: str, node: Node) -> None:
    start, end = node.start_byte, node.end_byte
    if not text[start:end].isdigit() or not starts_word(text, start) or text[end : end + 1] not in ("<", ">"):
        raise NotUnderstood(f"bash may read `{decode(text[start:end])}` differently")


def _is_blank(text: str) -> bool:
    return BLANK.fullmatch(text) is not None


def starts_word(text: str, start: int) -> bool:
    """Whether bash begins a word at this position."""
    while text.endswith("\\\n", 0, start):
        start -= 2
    return start == 0 or text[start - 1] in BEFORE_WORD


def ends_word(text: str, end: int) -> bool:
    """Whether bash ends a word at this position."""
    while text.startswith("\\\n", end):
        end += 2
    return end >= len(text) or text[end] in BEFORE_WORD


def descendants(node: Node) -> Iterator[Node]:
    """A node and all nodes below it, in the order of the text, without recursion."""
    cursor = node.walk()
    while True:
        here = cursor.node
        if here is not None:
            yield here
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return
