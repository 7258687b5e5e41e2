r"""Finds rules that no call can ever match. Such a rule is an error, because its author believes that it applies.

Such a rule looks like protection or like a permission, but is neither. These checks find names that no tool can have,
patterns that no simple command matches (`&&`, `|`, spaces at the ends), arguments that a tool does not take, and rules
after another rule that already matches every call. They do not find every pattern that matches nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from haft.contracts import BadConfig, is_tool_name
from haft.policy.rules.commands import command_pattern
from haft.policy.rules.names import check_name_pattern, covers, near_argument
from haft.policy.rules.patterns import is_regex
from haft.policy.rules.rule import Rule
from haft.policy.rules.shapes import KNOWN, Shapes, command_arguments

_SIGN: Final = re.compile(r"\d*(?:<<<|<<-?|<>|<&|>>|>\||>&|&>>|&>|<|>)(?= )")
"""The beginning of a pattern for a redirection."""
_QUOTED: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'""", re.DOTALL)
_OPERATOR: Final = re.compile(r"&&|\|\||;|\||>|<|\n|\r|(?<![^ ])&(?![^ ])")


def check_rules(rules: Sequence[Rule], shapes: Shapes = KNOWN) -> None:
    """Raise `BadConfig` at the first rule that can never match."""
    before: dict[str, dict[str, Rule]] = {}
    for rule in rules:
        check_rule(rule, shapes)
        earlier_rules = before.setdefault(_file(rule), {})
        names = (rule.tool, *(name for name in earlier_rules if not is_tool_name(name)))
        # A rule that rejects dangers applies even after a rule that matches every call.
        earlier_ones = () if rule.rejects_dangers else (earlier_rules[name] for name in names if name in earlier_rules)
        for earlier in earlier_ones:
            if covers(earlier.tool, rule.tool):
                raise BadConfig(
                    f"{rule.source}: the rule `{rule.words}` can never match: `{earlier.words}` at {earlier.source} "
                    "comes first and matches every call",
                    hint="the first rule that matches decides: move this rule above that one, or remove it",
                )
        if _takes_all(rule):
            earlier_rules.setdefault(rule.tool, rule)


def _takes_all(rule: Rule) -> bool:
    """Whether the rule matches every call of its tools."""
    if rule.rejects_dangers:
        return False
    return not rule.matches and rule.exactly is None and (rule.context, rule.thread, rule.pin) == (None, None, None)


def check_rule(rule: Rule, shapes: Shapes = KNOWN) -> None:
    """Raise `BadConfig` if no call can match this rule, regardless of the rules before it."""
    try:
        check_name_pattern(rule.tool)
    except ValueError as error:
        raise BadConfig(f'{rule.source}: `tool = "{rule.tool}"` {error}') from None
    _check_arguments(rule, shapes)
    commands = command_arguments(rule.tool, shapes)
    for name, matcher in rule.matches.items():
        if matcher == "":
            raise BadConfig(f"{rule.source}: `matches.{name}` is empty", hint="write `*` to match anything")
        if name in commands:
            for pattern in _each(matcher):
                _check_command(rule, name, pattern)


def _file(rule: Rule) -> str:
    return f"{rule.origin} {re.sub(r'(?::|, rule )[0-9]+$', '', rule.source)}"


def _each(matcher: Any) -> Iterator[Any]:
    if isinstance(matcher, tuple | list):
        for one in matcher:
            yield from _each(one)
    else:
        yield matcher


def _check_arguments(rule: Rule, shapes: Shapes) -> None:
    shape = shapes.get(rule.tool)
    if shape is None or shape.arguments is None:
        return
    for name in rule.matches:
        if name not in shape.arguments:
            near = near_argument(name, shape.arguments)
            known = ", ".join(sorted(shape.arguments)) or "none"
            hint = f"did you mean `{near}`?" if near else f"its arguments are {known}"
            raise BadConfig(f"{rule.source}: `{rule.tool}` has no argument `{name}`", hint=hint)


def _check_command(rule: Rule, name: str, pattern: Any) -> None:
    place = f"{rule.source}: `matches.{name}`"
    if not isinstance(pattern, str):
        raise BadConfig(f"{place} can never match: a command is text, and {pattern!r} is not")
    if is_regex(pattern):
        return
    why, hint = _trouble(pattern)
    if why is not None:
        raise BadConfig(f"{place}: `{pattern}` can never match: {why}", hint=hint)


def _trouble(pattern: str) -> tuple[str | None, str | None]:
    """Why no simple command can match the pattern, and how to correct the pattern; each is None if there is nothing to
    say."""
    try:
        command_pattern(pattern)
    except ValueError as error:
        return f"it {error}", None
    if not pattern.strip():
        return "it is empty", "write `*` to match any command"
    # Quoted and escaped characters belong to a word and may be anything.
    bare = _QUOTED.sub("x", pattern)
    if bare != bare.strip(" ") or "  " in bare:
        one = " ".join(pattern.split())
        return "it is compared with words that have one space between them and none at the ends", f"write `{one}`"
    if bare.endswith(":*"):
        stem = pattern[:-2]
        return "`:*` has no special meaning here", f"write `{stem}*`, or `{stem}\\:*` if you mean a colon"
    sign = _SIGN.match(bare)
    found = _OPERATOR.search(bare, sign.end() if sign else 0)
    if found is not None:
        written = found[0].replace("\n", "\\n").replace("\r", "\\r")
        return (
            f"it is compared with one simple command at a time, and `{written}` separates commands",
            "write one rule for each command; if the character belongs to a word, quote it",
        )
    return None, None
