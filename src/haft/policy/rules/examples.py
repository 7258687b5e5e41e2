"""Checks the examples of a rule when the rule is loaded: commands that the rule must match, and commands that it must
not match.

If the rule rejects, an example counts as a match if any part of the command matches the rule. If the rule has another
action, an example counts as a match if three things are true:

- Each part of the command matches the rule or only reads.
- At least one part matches the rule.
- No part has a danger that the rule does not name.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from haft.contracts import BadConfig
from haft.policy.analysis.verdict import DANGERS, Analysis, Part
from haft.policy.rules.matching import CallFacts, arguments_mismatch, occurs_in
from haft.policy.rules.patterns import quoted
from haft.policy.rules.rule import Rule
from haft.policy.rules.shapes import KNOWN, Shapes, command_arguments, path_arguments

Analyse = Callable[[str], Analysis]


def check_examples(rules: Iterable[Rule], analyse: Analyse, shapes: Shapes = KNOWN) -> None:
    """Raise `BadConfig` at the first example that contradicts its rule."""
    for rule in rules:
        for example in rule.match:
            why = example_mismatch(rule, example, analyse, shapes)
            if why is not None:
                raise _wrong(rule, "match", example, f"does not match: {why}")
        for example in rule.not_match:
            if example_mismatch(rule, example, analyse, shapes) is None:
                raise _wrong(rule, "not_match", example, "matches")


def _wrong(rule: Rule, key: str, example: Any, what: str) -> BadConfig:
    return BadConfig(
        f"{rule.source}: the rule `{rule.words}` contradicts its examples: {quoted(example)} in `{key}` {what}",
        hint="change the rule or the example",
    )


def example_mismatch(rule: Rule, example: Any, analyse: Analyse, shapes: Shapes = KNOWN) -> str | None:
    """Why an example does not match the rule; None if it matches."""
    call = _call_facts(rule, example, shapes)
    lines = [call.arguments[name] for name in call.commands]
    if not lines:
        return arguments_mismatch(rule, call)
    analyses = [analyse(line) for line in lines]
    parts = [part for analysis in analyses for part in analysis.parts]
    if rule.action != "reject":
        return _mismatch_of_line(rule, call, parts)
    reasons = [arguments_mismatch(rule, call, part) for part in parts]
    unread = [line for line, analysis in zip(lines, analyses, strict=True) if not analysis.understood]
    if None in reasons or any(occurs_in(rule, call, line) for line in unread):
        return None
    return "; ".join(filter(None, reasons)) or "it contains no command"


def _call_facts(rule: Rule, example: Any, shapes: Shapes) -> CallFacts:
    commands = command_arguments(rule.tool, shapes)
    arguments = _arguments(rule, example, commands)
    paths = {
        name: posixpath.normpath(arguments[name])
        for name in path_arguments(rule.tool, shapes)
        if isinstance(arguments.get(name), str)
    }
    given = [name for name in commands if isinstance(arguments.get(name), str)]
    return CallFacts(rule.tool, "", arguments, commands=given, paths=paths)


def _arguments(rule: Rule, example: Any, commands: tuple[str, ...]) -> Mapping[str, Any]:
    if isinstance(example, Mapping):
        return example
    if not commands:
        raise BadConfig(
            f"{rule.source}: {quoted(example)} is not an example for `{rule.tool}`, which takes no command line",
            hint="write the arguments as a table",
        )
    return {commands[0]: example}


def _mismatch_of_line(rule: Rule, call: CallFacts, parts: list[Part]) -> str | None:
    fitting = 0
    for part in parts:
        unnamed = [danger for danger in part.dangers if danger not in rule.dangers]
        if unnamed:
            return f"`{part.text}` {DANGERS[unnamed[0]]}, and the rule does not name `{unnamed[0]}`"
        why = arguments_mismatch(rule, call, part)
        if why is None:
            fitting += 1
        elif not part.safe:
            return why
    return None if fitting else "none of its commands matches"
