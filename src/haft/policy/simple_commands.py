"""The simple commands of a line, as the parsers of other programs see them: those in lists, pipes, loops, functions and
substitutions too.

The hook of an agent shows them to the agent's own rules. Nothing here is decided: `analysis` does that. Text within
words is not read, such as the command of `sh -c '…'`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from haft.policy.analysis.deadline import NotUnderstood
from haft.values import dataclass, field

if TYPE_CHECKING:
    from tree_sitter import Node

    from haft.policy.analysis.text.source import Source

_COMMANDS: Final = frozenset(("command", "declaration_command", "unset_command"))
_INPUTS: Final = frozenset(("heredoc_redirect", "herestring_redirect"))
_WITH_REDIRECTIONS: Final = frozenset(("redirected_statement", *_COMMANDS, *_INPUTS))


@dataclass(frozen=True, slots=True)
class WrittenWord:
    """A word of a command."""

    raw: str
    """The word as it was written, with its quotes."""
    literal: str | None
    """The word without its quotes; None if something in it is known only when the line runs."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """A redirection of a command. Each here-document stands for an input from /dev/null."""

    operator: str
    """With the number of the descriptor, such as `2>`."""
    target: WrittenWord


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """One command with its words."""

    assignments: tuple[str, ...]
    """The assignments before it, as they were written."""
    words: tuple[WrittenWord, ...]
    redirections: tuple[Redirection, ...] = ()


@dataclass(slots=True)
class SimpleCommands:
    """What is known of a line."""

    commands: list[SimpleCommand] = field(default_factory=list)
    is_complete: bool = True
    """Whether these are all commands of the line, and at least one."""


def split_commands(line: str) -> SimpleCommands:
    """The simple commands of a line, in the order in which they are written. Accepts any text and never raises."""
    from haft.policy.analysis.text.characters import is_too_long, strange_character
    from haft.policy.analysis.text.source import descendants, parse

    found = SimpleCommands()
    if is_too_long(line) or strange_character(line) is not None:
        return SimpleCommands(is_complete=False)
    try:
        source = parse(line)
    except NotUnderstood:
        return SimpleCommands(is_complete=False)
    pending: list[Redirection] = []  # Those of a loop or a list count as those of its first command.
    for node in descendants(source.root):
        is_redirection = node.type == "file_redirect" or node.type in _INPUTS
        if is_redirection and (node.parent is None or node.parent.type not in _WITH_REDIRECTIONS):
            found.is_complete = False
        if node.type == "redirected_statement":
            pending += _redirections(source, node, found)
        elif node.type in _COMMANDS:
            try:
                command = _command(source, node, (*pending, *_redirections(source, node, found)))
            except NotUnderstood:
                found.is_complete = False
                continue
            found.commands.append(command)
            pending = []
    found.is_complete = found.is_complete and bool(found.commands) and not pending
    return found


def _command(source: Source, node: Node, redirections: tuple[Redirection, ...]) -> SimpleCommand:
    assignments: list[str] = []
    words: list[WrittenWord] = []
    for child in node.children:
        if child.type == "variable_assignment" and not words:
            assignments.append(source.decoded(child))
        elif child.type != "comment" and not child.type.endswith("_redirect"):
            words.append(_word(source, child))
    if not words:
        raise NotUnderstood("a command has no program")
    return SimpleCommand(tuple(assignments), tuple(words), redirections)


def _word(source: Source, node: Node) -> WrittenWord:
    from haft.policy.analysis.text.source import decode
    from haft.policy.analysis.text.words import word_at

    raw = source.decoded(node)
    if node.type == "variable_assignment":  # Of `export`: the parser of words knows no arrays.
        return WrittenWord(raw, None)
    literal = word_at(source, node).literal
    return WrittenWord(raw, None if literal is None else decode(literal))


def _redirections(source: Source, node: Node, found: SimpleCommands) -> list[Redirection]:
    """The redirections of a statement, those between a here-document's mark and its text included."""
    made = []
    for child in node.children:
        if child.type in _INPUTS:
            made.append(Redirection("<", WrittenWord("/dev/null", "/dev/null")))
        if child.type == "heredoc_redirect":
            made += _redirections(source, child, found)
        elif child.type == "file_redirect":
            *before, last = child.children
            operator = "".join(source.decoded(each) for each in before)
            try:
                made.append(Redirection(operator, _word(source, last)))
            except NotUnderstood:
                found.is_complete = False
    return made
