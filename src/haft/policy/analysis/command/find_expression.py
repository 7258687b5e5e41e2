"""Finds the file names that a `find` may print, or pass to another program: its start directories, and a test that
accepts all these names.

The test may accept more names than `find` would. Only `-name` and `-iname` with a plain pattern, not negated, exclude
names.
"""

from __future__ import annotations

import re
from typing import Final

from haft.lazy import regex
from haft.policy.analysis.program import Argument
from haft.policy.analysis.tree.matching import NameTest, matcher

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
_MAX_DEPTH: Final = 20


def _any_name(_name: str) -> bool:
    return True


class NotSimple(Exception):
    """The expression of a `find` is not simple enough for haft to tell which names it finds."""


def split_roots(texts: list[str]) -> tuple[list[str], list[str]]:
    """The start directories, and the expression, from the words after `find`; raises `NotSimple` if a directory is not
    plain."""
    at = 0
    while at < len(texts) and not texts[at].startswith("-") and texts[at] not in ("(", "!"):
        if not _ROOT.fullmatch(texts[at]) or "//" in texts[at]:
            raise NotSimple
        at += 1
    return texts[:at] or ["."], texts[at:]


def literal_texts(arguments: list[Argument]) -> list[str] | None:
    """The text of every argument; None if one of them is known only when the line runs."""
    return [each.text for each in arguments] if all(each.literal for each in arguments) else None


def max_depth(expression: list[str]) -> int | None:
    """The value of `-maxdepth`; None if it is not given."""
    values = [expression[at + 1] for at, word in enumerate(expression[:-1]) if word == "-maxdepth"]
    return max(map(int, values)) if values and all(re.fullmatch("[0-9]{1,2}", each) for each in values) else None


def printed_names_test(expression: list[str]) -> NameTest:
    """A test that accepts every name that `find` prints, and perhaps others; raises `NotSimple` if the expression
    contains another action."""
    actions = [at for at, word in enumerate(expression) if word in _PRINTS]
    if not actions:
        return passed_names_test(expression)
    before = passed_names_test(expression[: actions[0]])
    passed_names_test(expression[actions[0] + 1 :])
    return before if len(actions) == 1 else _any_name


def passed_names_test(expression: list[str]) -> NameTest:
    """A test that accepts every name for which the whole expression is true, and perhaps others; raises `NotSimple` if
    a word is unknown."""
    reader = _Reader(list(reversed(expression)))
    try:
        test = reader.read_or(0)
    except _UnknownOrder:
        _check_words(expression)
        return _any_name
    if reader.remaining:
        _check_words(expression)
        return _any_name
    return test


def _check_words(expression: list[str]) -> None:
    """Raise `NotSimple` if the expression contains an unknown word. The order of the words is not checked."""
    at = 0
    while at < len(expression):
        word = expression[at]
        if word in _VALUED:
            at += 1
        elif word not in _BARE and word not in ("(", ")", "!", "-not", "-a", "-o", "-and", "-or"):
            raise NotSimple
        at += 1


class _UnknownOrder(Exception):
    """The words are known, but in an order that `_Reader` does not parse."""


class _Reader:
    def __init__(self, remaining: list[str]) -> None:
        self.remaining = remaining

    def read_or(self, level: int) -> NameTest:
        if level > _MAX_DEPTH:
            raise _UnknownOrder
        tests = [self._read_and(level)]
        while self.remaining and self.remaining[-1] in ("-o", "-or"):
            self.remaining.pop()
            tests.append(self._read_and(level))
        return tests[0] if len(tests) == 1 else lambda name: any(test(name) for test in tests)

    def _read_and(self, level: int) -> NameTest:
        tests: list[NameTest] = []
        while self.remaining and self.remaining[-1] not in ("-o", "-or", ")"):
            word = self.remaining.pop()
            if word not in ("-a", "-and"):
                tests.append(self._read_one(word, level))
        tests = [test for test in tests if test is not _any_name]
        return (lambda name: all(test(name) for test in tests)) if tests else _any_name

    def _read_one(self, word: str, level: int) -> NameTest:
        if word in ("!", "-not"):
            if not self.remaining or level > _MAX_DEPTH:
                raise _UnknownOrder
            self._read_one(self.remaining.pop(), level + 1)
            return _any_name
        if word == "(":
            test = self.read_or(level + 1)
            if not self.remaining or self.remaining.pop() != ")":
                raise _UnknownOrder
            return test
        if word in _BARE:
            return _any_name
        if word not in _VALUED:
            raise NotSimple
        if not self.remaining:
            raise _UnknownOrder
        value = self.remaining.pop()
        return _name_test(value, is_exact=word == "-name") if word in ("-name", "-iname") else _any_name


def _name_test(pattern: str, *, is_exact: bool) -> NameTest:
    if not _PATTERN.fullmatch(pattern):
        return _any_name
    return matcher(((each, each not in "*?") for each in pattern), ignores_case=not is_exact)
