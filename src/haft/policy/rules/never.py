r"""Rules that no call can ever fit: an error, since whoever wrote them believes that they hold.

A rule that matches nothing looks like protection, or like a permission, and is neither. What is found here: names
that no tool can have, patterns of commands that hold what no simple command holds (`&&`, `|`, spaces at the ends),
arguments that a tool does not take, rules behind one that takes everything. It does not find every pattern that
nothing fits.
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
"""How the pattern of a redirection begins."""
_QUOTED: Final = re.compile(r"""\\.|"(?:\\.|[^"\\])*"|'[^']*'""", re.DOTALL)
_OPERATOR: Final = re.compile(r"&&|\|\||;|\||>|<|\n|\r|(?<![^ ])&(?![^ ])")


def check_rules(rules: Sequence[Rule], shapes: Shapes = KNOWN) -> None:
    """`BadConfig` at the first rule that can never match."""
    before: dict[str, dict[str, Rule]] = {}
    for rule in rules:
        check_rule(rule, shapes)
        earlier_rules = before.setdefault(_file(rule), {})
        names = (rule.tool, *(name for name in earlier_rules if not is_tool_name(name)))
        # A rule that rejects dangers is looked at wherever it stands.
        earlier_ones = () if rule.rejects_dangers else (earlier_rules[name] for name in names if name in earlier_rules)
        for earlier in earlier_ones:
            if covers(earlier.tool, rule.tool):
                raise BadConfig(
                    f"{rule.source}: the rule `{rule.words}` can never match: `{earlier.words}` at {earlier.source} "
                    "comes first and takes everything",
                    hint="the first rule that fits decides: move this one above it, or take it away",
                )
        if _takes_all(rule):
            earlier_rules.setdefault(rule.tool, rule)


def _takes_all(rule: Rule) -> bool:
    """Whether it speaks of every call of the tools that it is for."""
    if rule.rejects_dangers:
        return False
    return not rule.matches and rule.exactly is None and (rule.context, rule.thread, rule.pin) == (None, None, None)


def check_rule(rule: Rule, shapes: Shapes = KNOWN) -> None:
    """`BadConfig` where no call can fit this rule, whatever stands before it."""
    try:
        check_name_pattern(rule.tool)
    except ValueError as error:
        raise BadConfig(f'{rule.source}: `tool = "{rule.tool}"` {error}') from None
    _check_arguments(rule, shapes)
    commands = command_arguments(rule.tool, shapes)
    for name, matcher in rule.matches.items():
        if matcher == "":
            raise BadConfig(f"{rule.source}: `matches.{name}` is empty", hint="`*` fits anything")
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
        raise BadConfig(f"{place} can never match: a command is a text, and {pattern!r} is none")
    if is_regex(pattern):
        return
    why, hint = _trouble(pattern)
    if why is not None:
        raise BadConfig(f"{place}: `{pattern}` can never match: {why}", hint=hint)


def _trouble(pattern: str) -> tuple[str | None, str | None]:
    """What no simple command holds, and how to mend it."""
    try:
        command_pattern(pattern)
    except ValueError as error:
        return f"it {error}", None
    if not pattern.strip():
        return "it is empty", "`*` fits any command"
    # What is quoted or escaped belongs to a word and may be anything.
    bare = _QUOTED.sub("x", pattern)
    if bare != bare.strip(" ") or "  " in bare:
        one = " ".join(pattern.split())
        return "words are held against it with one space between them, and none at the ends", f"write `{one}`"
    if bare.endswith(":*"):
        stem = pattern[:-2]
        return "`:*` has no meaning of its own here", f"write `{stem}*`, or `{stem}\\:*` where the colon is meant"
    sign = _SIGN.match(bare)
    found = _OPERATOR.search(bare, sign.end() if sign else 0)
    if found is not None:
        written = found[0].replace("\n", "\\n").replace("\r", "\\r")
        return (
            f"each simple command is held against it by itself, and `{written}` stands between commands",
            "write a rule for each command; where the sign belongs to a word, put it in quotes",
        )
    return None, None
