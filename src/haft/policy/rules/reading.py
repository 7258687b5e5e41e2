"""Reads rules from the `permissions` of a file. Every mistake is an error with file, line and a suggestion."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Final, get_args

from haft.contracts import NO_GRANTS, BadConfig, Grants, Isolation, grants_from, near_miss
from haft.policy.analysis.verdict import DANGERS
from haft.policy.rules.patterns import is_regex, regex_of
from haft.policy.rules.rule import ACTIONS, KEYS, Context, Rule, RuleOrigin

CONTEXTS: Final[tuple[Context, ...]] = get_args(Context)
GRANTING: Final = ("allow", "ask", "try")
"""Actions after which a call may run, so that a grant has an effect."""
DEEPEST: Final = 16
MOST_RULES: Final = 1_000
MOST_REGEXES: Final = 500
"""The maximum number of regular expressions in one file. A cloned workspace may contain any file, and each expression
costs time before the first call."""


def rules_from(value: Any, *, origin: RuleOrigin, source: str, lines: Sequence[int] | None = None) -> tuple[Rule, ...]:
    """The rules of one file, in the order of the file."""
    if not isinstance(value, list | tuple):
        raise BadConfig(f"{source}: `permissions` must be a list of rules", hint="write each rule as [[permissions]]")
    if len(value) > MOST_RULES:
        raise BadConfig(f"{source} has more than {MOST_RULES:_} rules", hint="use fewer, wider patterns")
    if _regexes(value) > MOST_REGEXES:
        raise BadConfig(f"{source} has more than {MOST_REGEXES:_} regular expressions", hint="use `*` instead")
    return tuple(
        rule_from(table, origin=origin, source=rule_source(source, number, lines)) for number, table in enumerate(value)
    )


def _regexes(value: Any) -> int:
    """How many regular expressions a value contains, at any depth."""
    waiting, found = [value], 0
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            found += is_regex(each)
        elif isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each
    return found


def rule_source(source: str, number: int, lines: Sequence[int] | None) -> str:
    """The file and line of the rule with this number, counted from 0; the file and the number if its line is not
    known."""
    return f"{source}, rule {number + 1}" if lines is None else f"{source}:{lines[number]}"


def rule_from(table: Any, *, origin: RuleOrigin, source: str) -> Rule:
    """The rule that a decoded table describes. Raises `BadConfig` if the table has a mistake."""
    if not isinstance(table, Mapping):
        raise BadConfig(f"{source}: a rule must be a table, not {table!r}")
    for key in table:
        if key not in KEYS:
            raise _unknown(source, "key", str(key), KEYS, "a rule")
    for key in ("tool", "action"):
        if key not in table:
            raise BadConfig(f"{source}: a rule needs `{key}`")
    action = _one_of(source, "action", table["action"], ACTIONS)
    context = None if table.get("context") is None else _one_of(source, "context", table["context"], CONTEXTS)
    dangers = tuple(_one_of(source, "danger", one, DANGERS) for one in _list(source, "dangers", table))
    to = _text(source, "to", table)
    if (to is None) == (action == "delegate"):
        raise BadConfig(
            f"{source}: " + ("a rule that delegates needs `to`, the program that decides" if to is None else _TO_WHOM)
        )
    if to is not None and origin != "workspace" and "/" in to and not to.startswith(("/", "~/")):
        raise BadConfig(f"{source}: {_WHERE}")
    if dangers and action == "ask":
        raise BadConfig(
            f"{source}: `dangers` belongs to rules that allow or reject, and this rule's action is `ask`",
            hint="dangerous commands need approval without a rule; remove `dangers`, or use the action `reject`",
        )
    if dangers and action == "reject" and table.get("exactly") is not None:
        raise BadConfig(f"{source}: `exactly` already names one call, so `dangers` has no effect; remove one of them")
    return Rule(
        tool=_text(source, "tool", table) or "",
        action=action,
        matches=_matches(source, table.get("matches", {})),
        exactly=_exactly(source, table),
        context=context,
        to=to,
        message=_text(source, "message", table),
        grant=_grant(source, action, table.get("grant")),
        dangers=dangers,
        isolation=_isolation(source, action, table.get("isolation")),
        match=_examples(source, "match", table),
        not_match=_examples(source, "not_match", table),
        origin=origin,
        source=source,
    )


_WHERE: Final = (
    "`to` must be an absolute path, begin with `~/`, or be a name on PATH: a relative path could be any file"
)
_EXAMPLES: Final = ("match", "not_match")
_TO_WHOM: Final = "`to` is for rules whose action is `delegate`"


def _one_of(source: str, what: str, value: Any, known: Iterable[Any]) -> Any:
    if not isinstance(value, str) or value not in known:
        raise _unknown(source, what, str(value), known, None)
    return value


def _unknown(source: str, what: str, word: str, known: Iterable[str], of: str | None) -> BadConfig:
    near = near_miss(word, known)
    hint = f"did you mean `{near}`?" if near else f"there are {', '.join(known)}"
    return BadConfig(f"{source}: {f'{of} has' if of else 'there is'} no {what} `{word}`", hint=hint)


def _text(source: str, key: str, table: Mapping[str, Any]) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value or "\0" in value):
        raise BadConfig(f"{source}: `{key}` must be text, not {value!r}")
    return value


def _list(source: str, key: str, table: Mapping[str, Any]) -> Sequence[Any]:
    value = table.get(key, ())
    if not isinstance(value, list | tuple):
        is_condition = key in _EXAMPLES and isinstance(value, Mapping)
        hint = "conditions on arguments are called `matches`" if is_condition else None
        raise BadConfig(f"{source}: `{key}` must be a list, not {value!r}", hint=hint)
    return value


def _examples(source: str, key: str, table: Mapping[str, Any]) -> tuple[Any, ...]:
    examples = tuple(_list(source, key, table))
    for one in examples:
        if not isinstance(one, str | Mapping):
            raise BadConfig(f"{source}: an example in `{key}` is a command line or a table of arguments, not {one!r}")
    return examples


def _grant(source: str, action: str, value: Any) -> Grants:
    if value is None:
        return NO_GRANTS
    if action not in GRANTING:
        raise BadConfig(f"{source}: `grant` opens the sandbox for calls that run, but this rule's action is `{action}`")
    try:
        return grants_from(value)
    except ValueError as error:
        raise BadConfig(f"{source}: `grant`: {error}") from error


def _isolation(source: str, action: str, value: Any) -> Isolation | None:
    if value is None:
        return None
    if action == "reject":
        raise BadConfig(f"{source}: `isolation` is for calls that run, but this rule's action is `reject`")
    isolation: Isolation = _one_of(source, "isolation", value, get_args(Isolation))
    return isolation


def _exactly(source: str, table: Mapping[str, Any]) -> Mapping[str, Any] | None:
    value = table.get("exactly")
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise BadConfig(f"{source}: `exactly` must be a table of all the arguments")
    if table.get("matches"):
        raise BadConfig(
            f"{source}: `exactly` already names all the arguments, so `matches` has no effect; remove one of them"
        )
    return dict(value)


def _matches(source: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadConfig(f"{source}: `matches` must be a table of arguments, not {value!r}")
    return {name: _matcher(f"{source}: `matches.{name}`", one) for name, one in value.items()}


def _matcher(place: str, value: Any, depth: int = 0) -> Any:
    if depth > DEEPEST:
        raise BadConfig(f"{place} is nested too deeply")
    if isinstance(value, str):
        return _pattern(place, value)
    if isinstance(value, bool) or (isinstance(value, int | float) and isfinite(value)):
        return value
    if isinstance(value, list | tuple):
        if not value:
            raise BadConfig(f"{place} is an empty list, which nothing matches")
        return tuple(_matcher(place, one, depth + 1) for one in value)
    if isinstance(value, Mapping):
        return {name: _matcher(f"{place[:-1]}.{name}`", one, depth + 1) for name, one in value.items()}
    raise BadConfig(f"{place} must be text, a boolean, a number, a list or a table, not {value!r}")


def _pattern(place: str, pattern: str) -> str:
    if is_regex(pattern):
        try:
            regex_of(pattern[1:-1])
        except ValueError as error:
            raise BadConfig(f"{place}: `{pattern}` {error}") from error
    return pattern
