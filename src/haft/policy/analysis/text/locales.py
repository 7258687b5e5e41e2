"""Finds lines that change the locale, and so how bash, or a program that the line starts, reads characters. haft does
not analyse such a line. As soon as a variable such as `LC_ALL` is set, bash reads the following text in that locale. So
a line may set such a variable only to a literal value that means UTF-8 or bytes.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Final

from haft.contracts import is_locale_variable, reads_utf8
from haft.lazy import regex
from haft.policy.analysis.deadline import NotUnderstood
from haft.policy.analysis.text.source import Source, descendants

if TYPE_CHECKING:
    from tree_sitter import Node

_BEFORE: Final = frozenset(("env", "sudo", "doas"))
"""Programs that set variables for the command after them."""
_THROUGH: Final = frozenset(("command", "builtin", "exec"))
_DECLARING: Final = frozenset(("export", "declare", "typeset", "local", "readonly"))
_READING: Final = {
    "read": regex(r"-[aersE]*[dinNptu]"),
    "mapfile": regex(r"-t*[dnOsuCc]"),
    "readarray": regex(r"-t*[dnOsuCc]"),
}
"""Commands that set the variables whose names are their arguments. For each command, an expression for the options
after which the next word is a value, not such a name."""
_ATTACHED: Final = regex(r"-[ersE]*a(.+)")
_ASSIGNED: Final = regex(r"([A-Za-z_]\w*)(?:\[[^]]*\])?(\+?)=(.*)", re.ASCII | re.DOTALL)
_IDENTIFIER: Final = regex(r"([A-Za-z_]\w*)(?:\[[^]]*\])?", re.ASCII)
_DEFAULTED: Final = regex(r"\$\{(!?)([A-Za-z_]\w*)(?:\[[^]]*\])?:?=", re.ASCII)


def check_locales(source: Source) -> None:
    """Raise `NotUnderstood` if a line may set a locale with another encoding than UTF-8 or single bytes."""
    for node in descendants(source.root):
        if node.type == "variable_assignment":
            _check_assigned(_bare(source, node))
        elif node.type == "for_statement":
            variable = node.child_by_field_name("variable")
            _check_named("" if variable is None else source.raw(variable))
        elif node.type == "expansion":
            found = _DEFAULTED.match(source.raw(node))
            if found is not None:
                _check_named(found[2], is_certain=not found[1])
        elif node.type == "declaration_command":
            _check_declared([_bare(source, child) for child in node.children[1:]])
        elif node.type == "command":
            _check_command([_bare(source, child) for child in node.children if not child.type.endswith("_redirect")])


def _bare(source: Source, node: Node) -> str:
    return re.sub(r"[\"'\\]", "", source.raw(node))


def _check_assigned(text: str) -> None:
    found = _ASSIGNED.fullmatch(text)
    if found is not None and is_locale_variable(found[1]) and (found[2] or not reads_utf8(found[1], found[3])):
        raise NotUnderstood(f"it sets `{found[1]}`, and bash may read the rest in another encoding")


def _check_named(name: str, *, is_certain: bool = True) -> None:
    """Raise `NotUnderstood` if the variable `name`, which is set to an unknown value, may affect the locale.
    `is_certain` says whether haft knows the variable's name."""
    if not is_certain:
        raise NotUnderstood("haft cannot tell which variable it sets before it runs")
    if is_locale_variable(name):
        raise NotUnderstood(f"it sets `{name}`, and bash may read the rest in another encoding")


def _check_declared(words: list[str]) -> None:
    """Check `export` and similar commands. A name without `=` is fine: the variable keeps its value."""
    refers = any(word.startswith("-") and "n" in word for word in words)
    for word in words:
        if word.startswith("-"):
            continue
        found = _ASSIGNED.fullmatch(word)
        name = _IDENTIFIER.fullmatch(word if found is None else found[1])
        _check_named("", is_certain=name is not None)
        _check_assigned(word)
        if found is not None and refers:
            _check_named(found[3], is_certain=_IDENTIFIER.fullmatch(found[3]) is not None)


def _check_command(words: list[str]) -> None:
    if any(word.rpartition("/")[2] in _BEFORE for word in words):
        for word in words:
            _check_assigned(word)
    at = 0
    while at < len(words) and (words[at] in _THROUGH or _ASSIGNED.fullmatch(words[at]) or (at and words[at] == "--")):
        at += 1
    program, given = "".join(words[at : at + 1]), words[at + 1 :]
    if program in _DECLARING:
        _check_declared(given)
    elif program == "printf":
        _check_names([word for before, word in itertools.pairwise(given) if before == "-v"])
        _check_names([word.removeprefix("-v") for word in given[:1] if word.startswith("-v") and word != "-v"])
    elif program in _READING:
        is_valued = _READING[program].fullmatch
        _check_names([word for before, word in zip(["", *given], given, strict=False) if not is_valued(before)])


def _check_names(words: list[str]) -> None:
    for word in words:
        attached = _ATTACHED.fullmatch(word)
        if not word.startswith("-") or attached is not None:
            found = _IDENTIFIER.fullmatch(word if attached is None else attached[1])
            _check_named("" if found is None else found[1], is_certain=found is not None)
