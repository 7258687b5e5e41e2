"""Adds and removes rules in the text of a TOML file line by line, so that everything else stays as it was written.

The new text is parsed again and compared with the old one: if anything but the one rule has changed, `BadUsage` is
raised.

tomlkit (tested with 0.15) does not fit: a new first rule gets the comment of the former first rule, a removed rule
takes the comment above the next rule with it, tables between two rules move, a file with Windows line ends gets both
kinds of line ends, and characters with another writing direction are not escaped.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from haft.config import PIECES, toml_key, toml_value, with_plain_ends
from haft.contracts import BadUsage
from haft.policy import rule_lines

_NOT_LINES: Final = "its rules are not written as [[permissions]]"
_BY_HAND: Final = "`haft permissions edit` opens it"


def rule_text(rule: Mapping[str, Any]) -> str:
    """The TOML text of a rule, as people write it."""
    return "".join(["[[permissions]]\n", *(f"{toml_key(name)} = {toml_value(one)}\n" for name, one in rule.items())])


def with_rule(text: str, rule: Mapping[str, Any], *, is_first: bool) -> tuple[str, int]:
    """The text with one more rule, before or after all others, and the number of the line where the rule begins."""
    text, ending = with_plain_ends(text)
    before = tomllib.loads(text)
    rules = before.get("permissions", [])
    lines = _lines_of_rules(text, before)
    new = rule_text(rule)
    if is_first and lines:
        at = _above_comments(text.split("\n"), lines[0] - 1)
        pieces = text.split("\n")
        changed = "\n".join([*pieces[:at], *new.split("\n"), *pieces[at:]])
    else:
        gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
        changed = text + gap + new
    expected = [dict(rule), *rules] if is_first else [*rules, dict(rule)]
    after = _require_same(changed, {**before, "permissions": expected})
    found = rule_lines(changed, len(after["permissions"]))
    assert found is not None
    return changed.replace("\n", ending), found[0 if is_first else -1]


def with_rule_instead(text: str, number: int, rule: Mapping[str, Any]) -> str:
    """The text with another rule in the place of the rule `number`, counted from 0. Comments inside the old rule go."""
    text, ending = with_plain_ends(text)
    before = tomllib.loads(text)
    start, end, pieces = _place_of_rule(text, before, number)
    changed = "\n".join([*pieces[:start], *rule_text(rule).rstrip("\n").split("\n"), *pieces[end:]])
    rules = [rule if index == number else one for index, one in enumerate(before["permissions"])]
    _require_same(changed, {**before, "permissions": rules})
    return changed.replace("\n", ending)


def without_rule(text: str, number: int) -> str:
    """The text without the rule `number`, counted from 0. Comments above the rule stay."""
    text, ending = with_plain_ends(text)
    before = tomllib.loads(text)
    start, end, pieces = _place_of_rule(text, before, number)
    if end < len(pieces) and not pieces[end].strip() and (start == 0 or not pieces[start - 1].strip()):
        end += 1
    changed = "\n".join([*pieces[:start], *pieces[end:]])
    kept = [rule for index, rule in enumerate(before["permissions"]) if index != number]
    rest = {name: value for name, value in before.items() if name != "permissions"}
    _require_same(changed, {**rest, "permissions": kept} if kept else rest)
    return changed.replace("\n", ending)


def _place_of_rule(text: str, tables: Mapping[str, Any], number: int) -> tuple[int, int, list[str]]:
    """The index of the first line of a rule, that of the first line after it, and all lines."""
    start = _lines_of_rules(text, tables)[number] - 1
    pieces = text.split("\n")
    end = _end_of_table(text, start, len(pieces))
    while end > start + 1 and (not pieces[end - 1].strip() or pieces[end - 1].lstrip().startswith("#")):
        end -= 1
    return start, end, pieces


def _lines_of_rules(text: str, tables: Mapping[str, Any]) -> tuple[int, ...]:
    if "permissions" not in tables:
        return ()
    rules = tables["permissions"]
    lines = rule_lines(text, len(rules)) if isinstance(rules, list) else None
    if not lines:
        raise BadUsage(f"the file cannot be changed line by line: {_NOT_LINES}", hint=_BY_HAND)
    return lines


def _require_same(text: str, expected: Mapping[str, Any]) -> dict[str, Any]:
    """The parsed text. Raises `BadUsage` if it differs from `expected`."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadUsage(f"the rule cannot be written as TOML: {error}", hint=_BY_HAND) from error
    if found != expected:
        raise BadUsage("the file cannot be changed line by line: more than the rule would change", hint=_BY_HAND)
    return found


def _above_comments(pieces: list[str], at: int) -> int:
    """The index of the first of the comment lines right above line `at`; `at` if there are none. Such comments belong
    to the rule below them."""
    while at > 0 and pieces[at - 1].lstrip().startswith("#"):
        at -= 1
    return at


def _end_of_table(text: str, start: int, last: int) -> int:
    """The number of the first line after the table that begins at line `start` and after its sub-tables; `last` if no
    other table follows."""
    for match in PIECES.finditer(text):
        if match["table"] is None:
            continue
        line = text.count("\n", 0, match.start("table"))
        inside = match["table"].strip("\"'") == "permissions" and match["below"]
        if line > start and not inside:
            return line
    return last
