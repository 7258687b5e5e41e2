"""Classifies redirections: a file that is read must lie inside the workspace, and only /dev/null may be written."""

from __future__ import annotations

from typing import Final

from haft.policy.analysis.command.builtin import why_not_read
from haft.policy.analysis.command.dangers import DangerFinder, in_class_order
from haft.policy.analysis.program import Argument
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.verdict import Danger, Part

_NOWHERE: Final = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))


def redirection_part(
    text: str, sign: str, arguments: list[Argument], scope: Scope, finder: DangerFinder
) -> Part | None:
    """The part for a redirection; None if the redirection only joins streams or discards output."""
    if len(arguments) != 1:
        return Part("redirection", text, (sign,), False, "haft cannot tell its target before it runs", literal=False)
    target = arguments[0]
    words = (sign, target.text)
    if sign in (">&", "<&") and target.literal and target.text.isdigit():
        return None
    if sign == "<":
        why = why_not_read(target, scope, finder.resolver)
        if target.may_split:
            why = f"haft cannot tell which file `{target.text}` names before it runs"
        return Part("redirection", text, words, why is None, why or "it only reads", literal=target.literal)
    if sign in (">", ">>", ">|", "&>", "&>>", ">&") and target.literal and target.text in _NOWHERE:
        return None
    dangers: list[Danger] = []
    for path in finder.texts(target):
        for directory in sorted(scope.directories) if scope.directories else (None,):
            dangers += finder.resolver.write_dangers(directory, path)
    possible: tuple[Danger, ...] = ()
    if not target.literal and target.paths is None:
        dangers.append("outside-workspace")
        possible = ("raw-device", "system-write", "home-dotfile")
    reason = f"it writes to `{target.text}`"
    return Part("redirection", text, words, False, reason, in_class_order(dangers), target.literal, possible=possible)
