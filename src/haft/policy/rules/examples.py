"""The examples of a rule, checked when it is loaded: what it shall mean, and what it shall not.

An example of a rule that lets calls pass fits where the whole line would pass by this rule and by analysis alone: every
part only reads or fits, at least one fits, and none is of a dangerous class that the rule does not name. An example of
a rule that rejects fits where any part does.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from haft.contracts import BadConfig
from haft.policy.analysis.verdict import DANGERS, Analysis, Part
from haft.policy.rules.matching import Question, arguments_fit, occurs_in
from haft.policy.rules.patterns import told
from haft.policy.rules.rule import Rule
from haft.policy.rules.shapes import KNOWN, Shapes, command_arguments, path_arguments

Analyse = Callable[[str], Analysis]


def check_examples(rules: Iterable[Rule], analyse: Analyse, shapes: Shapes = KNOWN) -> None:
    """`BadConfig` at the first example that is not as its rule says."""
    for rule in rules:
        for example in rule.match:
            why = example_unfit(rule, example, analyse, shapes)
            if why is not None:
                raise _wrong(rule, "match", example, f"does not fit: {why}")
        for example in rule.not_match:
            if example_unfit(rule, example, analyse, shapes) is None:
                raise _wrong(rule, "not_match", example, "fits")


def _wrong(rule: Rule, key: str, example: Any, what: str) -> BadConfig:
    return BadConfig(
        f"{rule.source}: the rule `{rule.words}` is not what its examples say: {told(example)} in `{key}` {what}",
        hint="change the rule or the example",
    )


def example_unfit(rule: Rule, example: Any, analyse: Analyse, shapes: Shapes = KNOWN) -> str | None:
    """None where an example fits, else why not."""
    question = _question(rule, example, shapes)
    lines = [question.arguments[name] for name in question.commands]
    if not lines:
        return arguments_fit(rule, question)
    analyses = [analyse(line) for line in lines]
    parts = [part for analysis in analyses for part in analysis.parts]
    if rule.action != "reject":
        return _unfit_to_pass(rule, question, parts)
    reasons = [arguments_fit(rule, question, part) for part in parts]
    unread = [line for line, analysis in zip(lines, analyses, strict=True) if not analysis.understood]
    if None in reasons or any(occurs_in(rule, question, line) for line in unread):
        return None
    return "; ".join(filter(None, reasons)) or "there is no command in it"


def _question(rule: Rule, example: Any, shapes: Shapes) -> Question:
    commands = command_arguments(rule.tool, shapes)
    arguments = _arguments(rule, example, commands)
    paths = {
        name: posixpath.normpath(arguments[name])
        for name in path_arguments(rule.tool, shapes)
        if isinstance(arguments.get(name), str)
    }
    given = [name for name in commands if isinstance(arguments.get(name), str)]
    return Question(rule.tool, "", arguments, commands=given, paths=paths)


def _arguments(rule: Rule, example: Any, commands: tuple[str, ...]) -> Mapping[str, Any]:
    if isinstance(example, Mapping):
        return example
    if not commands:
        raise BadConfig(
            f"{rule.source}: {told(example)} is no example for `{rule.tool}`, which takes no command line",
            hint="write its arguments as a table",
        )
    return {commands[0]: example}


def _unfit_to_pass(rule: Rule, question: Question, parts: list[Part]) -> str | None:
    fitting = 0
    for part in parts:
        unnamed = [danger for danger in part.dangers if danger not in rule.dangers]
        if unnamed:
            return f"`{part.text}` {DANGERS[unnamed[0]]}, and the rule does not name `{unnamed[0]}`"
        why = arguments_fit(rule, question, part)
        if why is None:
            fitting += 1
        elif not part.safe:
            return why
    return None if fitting else "none of its commands fits"
