"""`[[ … ]]`, which is syntax of bash and not a command. It is split into single tests here, and each test is
classified."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from haft.lazy import regex
from haft.policy.analysis.command.builtin import simple_test
from haft.policy.analysis.command.classifier import Classification
from haft.policy.analysis.line.part_builder import PartBuilder, tests_composed_name
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.text.source import Source
from haft.policy.analysis.text.words import EXPANSIONS, Word, WordReader, outermost

if TYPE_CHECKING:
    from tree_sitter import Node

_JOIN: Final = regex(r"&&|\|\|")
_NOT_ANALYSED: Final = "haft does not analyse tests of this form"


def add_double_bracket(source: Source, node: Node, scope: Scope, builder: PartBuilder) -> Iterable[Node]:
    """Add one part for the whole `[[ … ]]`, and return the substitutions in it."""
    groups = _groups(source, node)
    if groups is None:
        builder.add_syntax(source.decoded(node), _NOT_ANALYSED, is_hidden=True)
        found = outermost(node, EXPANSIONS).values()
        return [each for each in found if each.type in ("command_substitution", "process_substitution")]
    why = None
    for group in groups:
        why = why or _why_not(group, scope, builder)
    words = [word for group in groups for word in group]
    if why is None:
        builder.add_test(node, words, Classification(True, "`[[` only compares"), scope)
    else:
        builder.add_syntax(
            source.decoded(node),
            why,
            is_hidden="evaluates" in why or why == _NOT_ANALYSED or tests_composed_name(words),
        )
    return [each for word in words for each in word.substitutions]


def _groups(source: Source, node: Node) -> list[list[Word]] | None:
    """The words of each test between `&&` and `||`; None if there is any other syntax."""
    reader = WordReader(source, node)
    at, end = node.start_byte + 2, node.end_byte - 2
    groups: list[list[Word]] = [[]]
    while at < end:
        joined = _JOIN.match(source.text, at)
        if joined is not None:
            groups.append([])
            at = joined.end()
        elif source.text[at] in " \t\n":
            at += 1
        else:
            word = reader.read(at)
            if word is None or reader.at > end:
                return None
            groups[-1].append(word)
            at = reader.at
    return groups if all(groups) else None


def _why_not(words: list[Word], scope: Scope, builder: PartBuilder) -> str | None:
    while len(words) > 1 and words[0].raw == "!":
        words = words[1:]
    arguments: list[Argument] = []
    for at, written in enumerate(words):
        word = builder.expander(scope).resolve_arithmetic(written)
        if word.unclear_part is not None:
            return _NOT_ANALYSED
        is_compared = len(words) == 3 and at == 2 and words[1].raw in ("==", "=", "!=", "=~")
        # Inside `[[ ]]` bash neither splits unquoted words nor expands file names in them.
        quoted = Word(f'"{word.raw}"', word.pieces) if word.literal is None else word
        found = builder.expander(Scope(None, variables=scope.variables)).arguments(quoted)
        if is_compared or len(words) == 1:
            arguments.append(Argument(word.raw, literal=False))
        elif len(found) != 1 or (found[0].may_split and found[0].literal):
            return _NOT_ANALYSED
        else:
            arguments.append(found[0])
    if len(words) == 1:
        return None
    if len(words) == 3 and words[1].raw == "=~":
        return None
    return simple_test(arguments, scope, builder.classifier.resolver, are_numbers_evaluated=True)
