"""Analyses one line and returns its parts. A line that haft cannot parse becomes a single part that is not safe."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Final

from haft.policy.analysis.command.classifier import CommandClassifier
from haft.policy.analysis.command.dangers import DangerFinder, Dangers, in_class_order
from haft.policy.analysis.deadline import Deadline, NotUnderstood
from haft.policy.analysis.line.part_builder import PartBuilder
from haft.policy.analysis.line.walker import LineWalker
from haft.policy.analysis.program import Program
from haft.policy.analysis.programs import PROGRAMS
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.text.characters import MAX_BYTES, is_too_long, strange_character
from haft.policy.analysis.text.locales import check_locales
from haft.policy.analysis.text.source import parse
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.policy.analysis.tree.survey import Surveyor
from haft.policy.analysis.verdict import DANGERS, Analysis, AnalysisContext, Part, not_understood_part

_MAX_DEPTH: Final = 3
"""The maximum depth of lines within lines (`sh -c '…'`) that are analysed. They are analysed only to find dangers."""

_MAX_INNER: Final = 4
_NOTHING_KNOWN: Final = Dangers(("not-understood",), tuple(DANGERS))


def analyse_line(command: str, context: AnalysisContext, programs: Mapping[str, Program] | None = None) -> Analysis:
    """The parts of a line, each classified by a table of programs (by default, haft's own). Scripts, and programs
    outside the table, are not analysed. Paths and patterns are resolved on the disk as it is now.
    """
    if programs is None:
        programs = PROGRAMS
    try:
        return Analysis(tuple(_parts(command, context, programs, 0)), understood=True)
    except NotUnderstood as error:
        return _not_understood(command, str(error))
    except Exception as error:  # after any failure, the line needs approval
        return _not_understood(command, f"its analysis failed ({type(error).__name__})")


def _not_understood(command: str, reason: str) -> Analysis:
    return Analysis((not_understood_part(command, reason),), understood=False)


def _parts(
    command: str,
    context: AnalysisContext,
    programs: Mapping[str, Program],
    depth: int,
    deadline: Deadline | None = None,
    *,
    has_input: bool = False,
) -> list[Part]:
    if is_too_long(command):
        raise NotUnderstood(f"it is longer than {MAX_BYTES // 1024} KB")
    encoding = sys.getfilesystemencoding()
    if encoding != "utf-8" and not command.isascii():
        raise NotUnderstood(f"this machine reads file names as {encoding}, but bash would read them as UTF-8")
    strange = strange_character(command)
    if strange is not None:
        raise NotUnderstood(strange)

    inner_lines = 0

    known: dict[tuple[str, bool], Dangers] = {}

    def line_dangers(text: str, at: int, has_input: bool) -> Dangers:
        nonlocal inner_lines
        if (text, has_input) in known:
            return known[text, has_input]
        inner_lines += 1
        if at > _MAX_DEPTH or inner_lines > _MAX_INNER:
            return _NOTHING_KNOWN
        try:
            source.deadline.check()
            parts = _parts(text, context, programs, at, source.deadline, has_input=has_input)
        except NotUnderstood:
            return _NOTHING_KNOWN
        named = in_class_order(danger for part in parts for danger in part.dangers)
        found = Dangers(named, in_class_order(danger for part in parts for danger in part.possible))
        known[text, has_input] = found
        return found

    source = parse(command, deadline)
    check_locales(source)
    resolver = PathResolver(context, source.deadline)
    builder = PartBuilder(
        source, CommandClassifier(programs, resolver, Surveyor(resolver)), DangerFinder(resolver, line_dangers, depth)
    )
    start = resolver.start()
    LineWalker(source, builder).run(Scope(None if start is None else frozenset((start,)), has_input=has_input))
    if not builder.parts:
        return [Part("syntax", command, (), True, "it contains nothing to run")]
    return builder.parts
