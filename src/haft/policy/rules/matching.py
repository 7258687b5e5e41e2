"""Which rule means a call, and why the others do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from haft.policy.analysis.verdict import Danger, Part
from haft.policy.rules.commands import occurs, part_fits, subject
from haft.policy.rules.names import name_fits
from haft.policy.rules.patterns import told, value_fits
from haft.policy.rules.rule import Context, Rule
from haft.values import dataclass, field

NARROWING: Final = ("reject", "ask", "delegate")
"""Actions whose rules hold for a path by either of its names: the one that was written, and where it leads."""
WIDELY: Final = ("reject", "ask")
"""Actions whose rules hold for a command however it is dressed."""


@dataclass(frozen=True, slots=True)
class Question:
    """A call, as rules see it."""

    tool: str
    kind: str
    arguments: Mapping[str, Any]
    context: Context = "thread"
    commands: Sequence[str] = ()
    """The arguments that are command lines: what a rule says of them is held against a part."""
    paths: Mapping[str, str | None] = field(default_factory=dict)
    """Where each argument that is a path really leads; None, or a text with a NUL: nowhere that may be allowed."""
    thread: str | None = None
    pin: str | None = None
    is_bare: bool = True
    """Whether nothing but the arguments tells it from other calls: no directory, no variables."""
    aside: str | None = None
    """The argument that is a deadline."""
    """The definition of the tool, for rules that were made for one."""

    def is_exactly(self, arguments: Mapping[str, Any]) -> bool:
        """Whether it is the call with these arguments and no others."""
        mine = {name: value for name, value in self.arguments.items() if name != self.aside}
        return self.is_bare and same_json(mine, {name: each for name, each in arguments.items() if name != self.aside})


def same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; true is not 1."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) == isinstance(other, bool) and one == other


@dataclass(frozen=True, slots=True)
class Match:
    """The first rule that fits, and those before it that do not, each with the reason."""

    rule: Rule | None
    passed: tuple[tuple[Rule, str], ...] = ()


def first_match(rules: Iterable[Rule], question: Question, part: Part | None = None) -> Match:
    """The rule that speaks of this part of a call; without a part, of the call."""
    passed: list[tuple[Rule, str]] = []
    for rule in rules:
        why = rule_fits(rule, question, part)
        if why is None:
            return Match(rule, tuple(passed))
        passed.append((rule, why))
    return Match(None, tuple(passed))


def rule_fits(rule: Rule, question: Question, part: Part | None = None) -> str | None:
    """None where it fits, else why not, in words."""
    return _stands_off(rule, question) or arguments_fit(rule, question, part)


def raw_reject(rules: Iterable[Rule], question: Question, text: str) -> Rule | None:
    """The first rule that rejects, where what it says of the command stands anywhere in a line that was not
    understood."""
    for rule in rules:
        if rule.action == "reject" and _stands_off(rule, question) is None and occurs_in(rule, question, text):
            return rule
    return None


def arguments_fit(rule: Rule, question: Question, part: Part | None = None) -> str | None:
    """The same as `rule_fits`, whatever tool the rule is for."""
    if rule.exactly is not None:
        return None if question.is_exactly(rule.exactly) else "it is for exactly one call, and this is another"
    for name, matcher in rule.matches.items():
        if name in question.commands:
            why = _part_unfit(rule, matcher, part)
        else:
            why = _value_unfit(rule, name, matcher, question)
        if why is not None:
            return why
    return _not_endangering(rule, part) if rule.rejects_dangers else None


def endangered(rule: Rule, part: Part) -> set[Danger]:
    """The classes that a rule rejects into which a part falls, or may fall."""
    return {*rule.dangers} & {*part.dangers, *part.possible}


def _not_endangering(rule: Rule, part: Part | None) -> str | None:
    if part is None:
        return "it speaks of dangers of commands, and there is no command"
    return None if endangered(rule, part) else f"`{part.text}` is no danger of class {' or '.join(rule.dangers)}"


def occurs_in(rule: Rule, question: Question, text: str) -> bool:
    """Whether what a rule says of the command stands anywhere in a text, and the other arguments fit."""
    return all(
        occurs(matcher, text) if name in question.commands else _value_unfit(rule, name, matcher, question) is None
        for name, matcher in rule.matches.items()
    )


def _stands_off(rule: Rule, question: Question) -> str | None:
    """Why the rule is not for this tool, thread or definition."""
    if not name_fits(rule.tool, question.tool, question.kind):
        return f"it is for `{rule.tool}`"
    if rule.context is not None and rule.context != question.context:
        return "it is for sub-agents only" if rule.context == "subagent" else "it is not for sub-agents"
    if rule.thread is not None and rule.thread != question.thread:
        return "it is for another thread"
    if rule.pin is not None and rule.pin != question.pin:
        return "it was given for another definition of the tool"
    return None


def _part_unfit(rule: Rule, matcher: Any, part: Part | None) -> str | None:
    if part is None:
        return "it speaks of a command, and there is none"
    if part_fits(matcher, part, widely=rule.action in WIDELY):
        return None
    if subject(part) is None:
        return f"nobody can tell what `{part.text}` is before it runs, so that no pattern fits it"
    return f"`{part.text}` does not fit {told(matcher)}"


def _value_unfit(rule: Rule, name: str, matcher: Any, question: Question) -> str | None:
    if name not in question.arguments:
        return f"the call has no `{name}`"
    ways = [question.arguments[name]]
    if name in question.paths:
        place = question.paths[name]
        if rule.action in NARROWING:
            ways.append(place)
        elif place is None or "\0" in place:
            return f"`{name}` leads nowhere that may be allowed"
        else:
            ways = [place]
    if rule.action in NARROWING:
        ways = [each for way in ways for each in _within(way)]
    if any(value_fits(matcher, way) for way in ways):
        return None
    return f"`{name}` does not fit {told(matcher)}"


def _within(value: Any) -> Iterator[Any]:
    """A value and, where it is a list, what is in it: what is forbidden is forbidden among others too."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, list | tuple):
            waiting += each


def speaks_of(rule: Rule, program: str | None) -> bool:
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
