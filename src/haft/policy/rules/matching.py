"""Finds the rule that matches a call, and the reasons why other rules do not match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.policy.analysis.verdict import Danger, Part
from haft.policy.rules.commands import occurs, part_matches, subject
from haft.policy.rules.names import name_matches
from haft.policy.rules.patterns import quoted, value_matches
from haft.policy.rules.rule import Context, Rule
from haft.values import dataclass, field

NARROWING: Final = ("reject", "ask", "delegate")
"""Actions whose rules match a path if either form of it matches: as it was written, or after links are followed."""
WIDELY: Final = ("reject", "ask")
"""Actions whose rules also match other spellings of a command: see `spellings`."""


@dataclass(frozen=True, slots=True)
class CallFacts:
    """The facts about a call that rules are matched against."""

    tool: str
    kind: str
    arguments: Mapping[str, Any]
    context: Context = "thread"
    commands: Sequence[str] = ()
    """The names of the arguments that are command lines. A rule's patterns for them are matched against one part of the
    line."""
    paths: Mapping[str, str | None] = field(default_factory=dict)
    """For each argument that is a path, the path after links are followed; None, or a text with a NUL, if no rule may
    allow the path."""
    thread: str | None = None
    pin: str | None = None
    is_bare: bool = True
    """Whether the call sets neither a directory nor variables, so that only its arguments distinguish it from other
    calls."""
    aside: str | None = None
    """The name of the argument that sets the call's deadline, which is ignored when calls are compared; None if there
    is none."""

    def is_exactly(self, arguments: Mapping[str, Any]) -> bool:
        """Whether the call has exactly these arguments, apart from its deadline, and sets no directory and no
        variables."""
        mine = {name: value for name, value in self.arguments.items() if name != self.aside}
        return self.is_bare and same_json(mine, {name: each for name, each in arguments.items() if name != self.aside})


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. Unlike in Python, `true` does not equal 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


@dataclass(frozen=True, slots=True)
class Match:
    """The first rule that matches, and the rules before it, each with the reason why it does not match."""

    rule: Rule | None
    passed: tuple[tuple[Rule, str], ...] = ()


def first_match(rules: Iterable[Rule], call: CallFacts, part: Part | None = None) -> Match:
    """The first rule that matches `part` of a call; without `part`, the first that matches the whole call."""
    passed: list[tuple[Rule, str]] = []
    for rule in rules:
        why = rule_mismatch(rule, call, part)
        if why is None:
            return Match(rule, tuple(passed))
        passed.append((rule, why))
    return Match(None, tuple(passed))


def rule_mismatch(rule: Rule, call: CallFacts, part: Part | None = None) -> str | None:
    """Why a rule does not match the call, or `part` of it, in words; None if it matches."""
    return _scope_mismatch(rule, call) or arguments_mismatch(rule, call, part)


def reject_unparsed(rules: Iterable[Rule], call: CallFacts, text: str) -> Rule | None:
    """For a line that haft could not parse: the first rule that rejects and whose pattern for the command occurs
    anywhere in `text`. None if there is no such rule."""
    for rule in rules:
        if rule.action == "reject" and _scope_mismatch(rule, call) is None and occurs_in(rule, call, text):
            return rule
    return None


def arguments_mismatch(rule: Rule, call: CallFacts, part: Part | None = None) -> str | None:
    """Why the patterns of a rule do not match the arguments of the call, or `part` of its command line, in words; None
    if they match. The tool's name is not compared."""
    if rule.exactly is not None:
        return None if call.is_exactly(rule.exactly) else "it is for exactly one call, and this is another call"
    for name, matcher in rule.matches.items():
        if name in call.commands:
            why = _part_mismatch(rule, matcher, part)
        else:
            why = _value_mismatch(rule, name, matcher, call)
        if why is not None:
            return why
    return _danger_mismatch(rule, part) if rule.rejects_dangers else None


def rejected_dangers(rule: Rule, part: Part) -> set[Danger]:
    """The dangers that the rule rejects and that the part has or may have."""
    return {*rule.dangers} & {*part.dangers, *part.possible}


def _danger_mismatch(rule: Rule, part: Part | None) -> str | None:
    if part is None:
        return "it is about dangers of commands, and the call has no command"
    return (
        None
        if rejected_dangers(rule, part)
        else f"`{part.text}` is not dangerous in the way of {' or '.join(rule.dangers)}"
    )


def occurs_in(rule: Rule, call: CallFacts, text: str) -> bool:
    """Whether the rule's pattern for the command occurs anywhere in `text`, and the rule's other patterns match the
    call."""
    return all(
        occurs(matcher, text) if name in call.commands else _value_mismatch(rule, name, matcher, call) is None
        for name, matcher in rule.matches.items()
    )


def _scope_mismatch(rule: Rule, call: CallFacts) -> str | None:
    """Why the rule is not for the call's tool, thread or definition; None if it is for all three."""
    if not name_matches(rule.tool, call.tool, call.kind):
        return f"it is for `{rule.tool}`"
    if rule.context is not None and rule.context != call.context:
        return "it is for sub-agents only" if rule.context == "subagent" else "it is not for sub-agents"
    if rule.thread is not None and rule.thread != call.thread:
        return "it is for another thread"
    if rule.pin is not None and rule.pin != call.pin:
        return "it was made for another definition of the tool"
    return None


def _part_mismatch(rule: Rule, matcher: Any, part: Part | None) -> str | None:
    if part is None:
        return "it is about a command, and the call has none"
    if part_matches(matcher, part, widely=rule.action in WIDELY):
        return None
    if subject(part) is None:
        return f"`{part.text}` is known only when it runs, so no pattern matches it"
    return f"`{part.text}` does not match {quoted(matcher)}"


def _value_mismatch(rule: Rule, name: str, matcher: Any, call: CallFacts) -> str | None:
    if name not in call.arguments:
        return f"the call has no `{name}`"
    ways = [call.arguments[name]]
    if name in call.paths:
        place = call.paths[name]
        if rule.action in NARROWING:
            ways.append(place)
        elif place is None or "\0" in place:
            return f"`{name}` leads to a place that no rule can allow"
        else:
            ways = [place]
    if rule.action in NARROWING:
        ways = [each for way in ways for each in _within(way)]
    if any(value_matches(matcher, way) for way in ways):
        return None
    return f"`{name}` does not match {quoted(matcher)}"


def _within(value: Any) -> Iterator[Any]:
    """Yield a value and, if it is a list, its items, because a value that a rule rejects is also rejected inside a
    list."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, list | tuple):
            waiting += each


def mentions_program(rule: Rule, program: str | None) -> bool:
    """Whether a pattern of the rule begins with this program."""
    if program is None:
        return bool(rule.matches)
    waiting: list[Any] = list(rule.matches.values())
    while waiting:
        each = waiting.pop()
        if isinstance(each, list | tuple):
            waiting += each
        elif isinstance(each, str) and each.split(" ", 1)[0].rstrip("*") == program:
            return True
    return False
