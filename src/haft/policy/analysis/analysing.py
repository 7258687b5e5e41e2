"""Analyses one line and returns its parts. It always returns a result."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from haft.policy.analysis.command.classifier import CommandClassifier
from haft.policy.analysis.command.dangers import DangerFinder, Dangers, ordered
from haft.policy.analysis.deadline import Deadline, NotUnderstood
from haft.policy.analysis.line.commands import Commands
from haft.policy.analysis.line.walk import Walk
from haft.policy.analysis.program import Program
from haft.policy.analysis.programs import PROGRAMS
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.text.characters import MOST_BYTES, is_too_long, strange_character
from haft.policy.analysis.text.locales import check_locales
from haft.policy.analysis.text.source import parsed
from haft.policy.analysis.tree.places import Places
from haft.policy.analysis.tree.survey import Surveyor
from haft.policy.analysis.verdict import DANGERS, Analysis, AnalysisContext, Part, unread

_DEEPEST: Final = 3
"""How deep lines within lines (`sh -c '…'`) are analysed, only for their dangers."""

_MOST_INNER: Final = 4
_UNREAD: Final = Dangers(("not-understood",), tuple(DANGERS))


def analyse(command: str, context: AnalysisContext, programs: Mapping[str, Program] | None = None) -> Analysis:
    """What a line would do, part by part, according to a table of programs.

    It does not analyse scripts, or programs outside the table, and it looks at the disk as it is now.
    """
    if programs is None:
        programs = PROGRAMS
    try:
        return Analysis(tuple(_parts(command, context, programs, 0)), understood=True)
    except NotUnderstood as error:
        return _not_understood(command, str(error))
    except Exception as error:  # whatever goes wrong here, the answer is to ask
        return _not_understood(command, f"its analysis failed ({type(error).__name__})")


def _not_understood(command: str, reason: str) -> Analysis:
    return Analysis((unread(command, reason),), understood=False)


def _parts(
    command: str,
    context: AnalysisContext,
    programs: Mapping[str, Program],
    depth: int,
    deadline: Deadline | None = None,
    *,
    is_fed: bool = False,
) -> list[Part]:
    if is_too_long(command):
        raise NotUnderstood(f"it is longer than {MOST_BYTES // 1024} KB")
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8" and not command.isascii():
        raise NotUnderstood(f"this machine reads file names as {encoding}, but bash would read them as UTF-8")
    strange = strange_character(command)
    if strange is not None:
        raise NotUnderstood(strange)

    looked_into = 0

    known: dict[tuple[str, bool], Dangers] = {}

    def inner(text: str, at: int, is_fed: bool) -> Dangers:
        nonlocal looked_into
        if (text, is_fed) in known:
            return known[text, is_fed]
        looked_into += 1
        if at > _DEEPEST or looked_into > _MOST_INNER:
            return _UNREAD
        try:
            source.deadline.check()
            parts = _parts(text, context, programs, at, source.deadline, is_fed=is_fed)
        except NotUnderstood:
            return _UNREAD
        named = ordered(danger for part in parts for danger in part.dangers)
        found = Dangers(named, ordered(danger for part in parts for danger in part.possible))
        known[text, is_fed] = found
        return found

    source = parsed(command, deadline)
    check_locales(source)
    places = Places(context, source.deadline)
    commands = Commands(
        source, CommandClassifier(programs, places, Surveyor(places)), DangerFinder(places, inner, depth)
    )
    start = places.start()
    Walk(source, commands).run(Scope(None if start is None else frozenset((start,)), is_fed=is_fed))
    if not commands.parts:
        return [Part("syntax", command, (), True, "it contains nothing to run")]
    return commands.parts
