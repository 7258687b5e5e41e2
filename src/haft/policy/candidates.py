"""Rules that may be suggested to a person because of one call: a rule for exactly this call, and slightly wider rules.

A candidate is always an `allow` rule. It is narrow because it keeps some words of the call: a program and its
subcommand, a directory below the workspace, or all arguments. A rule for a whole tool is suggested only if the tool
declares itself read-only and a sandbox enforces this. `suggester` decides which candidates are worth suggesting.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from haft.files import NAMES
from haft.policy.allowable import least_words, may_be_suggested
from haft.policy.analysis.verdict import Part
from haft.policy.query import PolicyQuery
from haft.policy.rules.commands import exactly
from haft.policy.rules.patterns import escaped, is_regex
from haft.policy.rules.rule import Rule

SOURCE: Final = "a suggestion"
_WHOLE_TOOL: Final = 10_000
READS_ONLY: Final = "it declares that it only reads, and the sandbox enforces this"
_PROTECTED: Final = frozenset(name.partition("/")[0] for name in NAMES)


@dataclass(frozen=True)
class Candidate:
    """A rule that may be suggested."""

    tool: str
    matches: tuple[tuple[str, tuple[Any, ...]], ...]
    """For each argument that the rule names: its patterns, of which one must match."""
    width: int
    """How many other calls the rule may match, as a number to sort by; 0 if it matches only the call that it was made
    for."""
    first: str | None = None
    """The first word of every command that the rule matches; None if it is not for commands."""
    why: str | None = None
    """Why a rule for a whole tool, without any argument, may be suggested."""

    @property
    def has_several_patterns(self) -> bool:
        return any(len(any_of) > 1 for _name, any_of in self.matches)

    def table(self) -> dict[str, Any]:
        """The rule as it is written in a configuration file."""
        matches = {name: list(any_of) if len(any_of) > 1 else any_of[0] for name, any_of in self.matches}
        return {"tool": self.tool, **({"matches": matches} if matches else {}), "action": "allow"}

    @cached_property
    def rule(self) -> Rule:
        table = self.table()
        return Rule(self.tool, "allow", table.get("matches", {}), source=SOURCE)


def candidates_of(query: PolicyQuery, parts: Sequence[Part] | None) -> Iterator[Candidate]:
    """Yield every rule that may be suggested because this call was approved. `parts` are the parts of its command
    lines, or None if it has none."""
    spec, arguments = query.spec, query.arguments
    if parts is not None:
        command = [name for name in spec.commands if name in arguments]
        others = arguments.keys() - {*command, "cwd", spec.meta.get("timeoutArgument")}
        if len(command) == 1 and not others:
            for part in parts:
                yield from _of_part(spec.name, command[0], part)
        return
    paths = [name for name in spec.paths if name in arguments]
    if len(paths) == 1 and isinstance(arguments[paths[0]], str):
        yield from _of_path(spec.name, paths[0], arguments[paths[0]])
        return
    exact = _all_arguments(query)
    if exact is not None and exact:
        yield Candidate(spec.name, exact, 0)
    if spec.effects.readonly and not spec.effects.network and spec.hosting == "per-call" and query.confined:
        yield Candidate(spec.name, (), _WHOLE_TOOL, why=READS_ONLY)


def _of_part(tool: str, argument: str, part: Part) -> Iterator[Candidate]:
    if part.safe or not may_be_suggested(part):
        return
    words = part.words
    exact = f"{words[0]} {exactly(words[1:])}" if part.kind == "redirection" else exactly(words)
    yield Candidate(tool, ((argument, (exact,)),), 0, words[0])
    least = least_words(part)
    if least is None:
        return
    if len(words) >= least:
        yield Candidate(tool, ((argument, (exact, f"{exact} *")),), 2 * (1000 - len(words)) + 1, words[0])
    for kept in range(len(words) - 1, least - 1, -1):
        yield Candidate(tool, ((argument, (f"{exactly(words[:kept])} *",)),), 2 * (1000 - kept), words[0])


def _of_path(tool: str, argument: str, written: str) -> Iterator[Candidate]:
    path = os.path.normpath(written)
    names = path.split("/")
    is_plain = path.isprintable() and not path.startswith(("/", "~")) and path != "."
    if not is_plain or any(name.startswith(".") or name in _PROTECTED for name in names):
        return
    yield Candidate(tool, ((argument, (escaped(path),)),), 0)
    for kept in range(len(names) - 1, 0, -1):
        yield Candidate(tool, ((argument, (f"{escaped('/'.join(names[:kept]))}/*",)),), 1000 - kept)


def _all_arguments(query: PolicyQuery) -> tuple[tuple[str, tuple[Any, ...]], ...] | None:
    """Patterns that match only the arguments of this call. None if the tool accepts more arguments than the call has,
    or if a value is neither plain text nor a whole number nor a boolean."""
    schema, arguments = query.spec.input_schema, query.arguments
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False:
        return None
    if properties.keys() != arguments.keys():
        return None
    found = []
    for name, value in arguments.items():
        kind = properties[name].get("type") if isinstance(properties[name], Mapping) else None
        if kind == "string" and isinstance(value, str) and value and value.isprintable():
            pattern: Any = escaped(value)
            pattern = f"\\{pattern}" if is_regex(pattern) else pattern
        elif (kind == "boolean" and isinstance(value, bool)) or (kind == "integer" and type(value) is int):
            pattern = value
        else:
            return None
        found.append((name, (pattern,)))
    return tuple(found)
