"""Finds the names that a `find` may pass on: its start directories, and a bound on the names that pass its tests.

In doubt the bound includes more names: every test passes all names, except a test of a plain name that is not negated.
"""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument
from haft.policy.analysis.tree.matching import Test, matcher

_VALUED: Final = frozenset((
    "-type", "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-size", "-mtime", "-mmin", "-ctime",
    "-cmin", "-atime", "-amin", "-newer", "-maxdepth", "-mindepth", "-regex", "-iregex", "-regextype", "-perm", "-user",
    "-group", "-newermt", "-links",
))  # fmt: skip
_BARE: Final = frozenset((
    "-empty", "-executable", "-readable", "-writable", "-true", "-false", "-prune", "-xdev", "-mount", "-depth",
    "-print", "-print0",
))  # fmt: skip
_PRINTS: Final = ("-print", "-print0")
_ROOT: Final = regex(r"[A-Za-z0-9_./][A-Za-z0-9_./@+=,-]*")
_PATTERN: Final = regex(r"[A-Za-z0-9_.*?+@=,-]+")
_DEEPEST: Final = 20


def _any(_name: str) -> bool:
    return True


class Unread(Exception):
    """An expression that is not simple enough."""


def split(texts: list[str]) -> tuple[list[str], list[str]]:
    """Places to start at and the expression, of the words behind `find`; `Unread` where one is not plain."""
    at = 0
    while at < len(texts) and not texts[at].startswith("-") and texts[at] not in ("(", "!"):
        if not _ROOT.fullmatch(texts[at]) or "//" in texts[at]:
            raise Unread
        at += 1
    return texts[:at] or ["."], texts[at:]


def literal(arguments: list[Argument]) -> list[str] | None:
    """The words, where all are known."""
    return [each.text for each in arguments] if all(each.literal for each in arguments) else None


def depth(expression: list[str]) -> int | None:
    """How deep it looks; None where it does not say."""
    values = [expression[at + 1] for at, word in enumerate(expression[:-1]) if word == "-maxdepth"]
    return max(map(int, values)) if values and all(re.fullmatch("[0-9]{1,2}", each) for each in values) else None


def printed(expression: list[str]) -> Test:
    """A bound on the names that an expression prints, which holds no action but to print."""
    actions = [at for at, word in enumerate(expression) if word in _PRINTS]
    if not actions:
        return bound(expression)
    before = bound(expression[: actions[0]])
    bound(expression[actions[0] + 1 :])
    return before if len(actions) == 1 else _any


def bound(expression: list[str]) -> Test:
    """A bound on the names that reach the end of an expression; `Unread` where a word of it is not known."""
    reader = _Reader(list(reversed(expression)))
    try:
        test = reader.either(0)
    except _OutOfStep:
        _check(expression)
        return _any
    if reader.waiting:
        _check(expression)
        return _any
    return test


def _check(expression: list[str]) -> None:
    """That every word is one that is known, whatever their order says."""
    at = 0
    while at < len(expression):
        word = expression[at]
        if word in _VALUED:
            at += 1
        elif word not in _BARE and word not in ("(", ")", "!", "-not", "-a", "-o", "-and", "-or"):
            raise Unread
        at += 1


class _OutOfStep(Exception):
    """Words that follow one another in a way that is not read here."""


class _Reader:
    def __init__(self, waiting: list[str]) -> None:
        self.waiting = waiting

    def either(self, level: int) -> Test:
        if level > _DEEPEST:
            raise _OutOfStep
        tests = [self._both(level)]
        while self.waiting and self.waiting[-1] in ("-o", "-or"):
            self.waiting.pop()
            tests.append(self._both(level))
        return tests[0] if len(tests) == 1 else lambda name: any(test(name) for test in tests)

    def _both(self, level: int) -> Test:
        tests: list[Test] = []
        while self.waiting and self.waiting[-1] not in ("-o", "-or", ")"):
            word = self.waiting.pop()
            if word not in ("-a", "-and"):
                tests.append(self._one(word, level))
        tests = [test for test in tests if test is not _any]
        return (lambda name: all(test(name) for test in tests)) if tests else _any

    def _one(self, word: str, level: int) -> Test:
        if word in ("!", "-not"):
            if not self.waiting or level > _DEEPEST:
                raise _OutOfStep
            self._one(self.waiting.pop(), level + 1)
            return _any
        if word == "(":
            test = self.either(level + 1)
            if not self.waiting or self.waiting.pop() != ")":
                raise _OutOfStep
            return test
        if word in _BARE:
            return _any
        if word not in _VALUED:
            raise Unread
        if not self.waiting:
            raise _OutOfStep
        value = self.waiting.pop()
        return _named(value, is_exact=word == "-name") if word in ("-name", "-iname") else _any


def _named(pattern: str, *, is_exact: bool) -> Test:
    if not _PATTERN.fullmatch(pattern):
        return _any
    return matcher(((each, each not in "*?") for each in pattern), ignores_case=not is_exact)
