"""Classifies one simple command: whether its entry in the tables says that it only reads, inside the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from haft.policy.analysis.command.builtin import BUILTINS, why_not_inside, why_not_read
from haft.policy.analysis.command.listings import Lister, Listing
from haft.policy.analysis.command.naming import lists_names, why_not_named
from haft.policy.analysis.command.options import TakenApart, Unlisted, taken_apart
from haft.policy.analysis.command.wrapping import unwrapped, without_exec
from haft.policy.analysis.command.xargs import Finding, Xargs, executing, handed
from haft.policy.analysis.program import Argument, ByLinks, ByLinksHere, Program
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.text.source import RESERVED
from haft.policy.analysis.tree.gitfiles import why_not_git
from haft.policy.analysis.tree.places import Places
from haft.policy.analysis.tree.survey import Surveyor
from haft.values import dataclass

_MOST_WRAPPERS: Final = 4
_NO_PROGRAMS: Final = frozenset(("time", "command", "builtin"))
"""Keywords of the shell that start the command after them; other programs do not know them."""
_NEEDS_NO_INPUT: Final = frozenset(("echo", "printf", "basename", "dirname", "pwd", "true", "false", "[", "test", ":"))
_KNOWN_PLACES: Final = ("/bin/", "/usr/bin/")


@dataclass(frozen=True, slots=True)
class Classification:
    """The classification of one simple command."""

    is_safe: bool
    reason: str
    is_about_place: bool = False
    """Whether it would be safe elsewhere: it reads, but outside of the workspace."""
    starts_others: bool = False


@dataclass(frozen=True, slots=True)
class CommandClassifier:
    """Classifies commands by a table of programs, for one directory and workspace."""

    programs: Mapping[str, Program]
    places: Places
    surveyor: Surveyor

    @property
    def lister(self) -> Lister:
        """Finds the names that pipes list here."""
        return Lister(self.programs, self.surveyor)

    def judged(self, arguments: list[Argument], scope: Scope) -> Classification:
        """The classification of a command: its program, then its arguments."""
        for _ in range(_MOST_WRAPPERS):
            program = arguments[0]
            if not program.literal or program.splits:
                return Classification(False, f"haft cannot tell which program `{program.text}` is before it runs")
            inner = unwrapped(program.text, arguments[1:])
            if inner is None:
                found = without_exec(arguments) if program.text == "find" else None
                if found is not None:
                    return self._with_exec(*found, scope)
                finding = executing(arguments[1:]) if program.text == "find" else None
                if finding is not None:
                    return self._executing(finding, scope)
                return self._plain(program.text, arguments[1:], scope)
            if isinstance(inner, str):
                return Classification(False, inner)
            arguments = inner
            if arguments[0].literal and (arguments[0].text in BUILTINS or arguments[0].text == "time"):
                return Classification(False, f"haft does not analyse `{arguments[0].text}` after `{program.text}`")
        return Classification(False, "too many programs start each other")

    def _with_exec(self, find: list[Argument], started: list[Argument], scope: Scope) -> Classification:
        """`find … -type f -exec PROGRAM … {} +`: both programs must only read."""
        name = started[0].text
        if not started[0].literal or name in BUILTINS or name in _NO_PROGRAMS or "/" in name:
            return Classification(False, f"`find` starts `{name}`, which haft does not know to be read-only")
        # Several files may replace the one that is written.
        several = [each for word in started[1:] for each in ([word] * 3 if word.is_listed else [word])]
        classification = self._plain("find", find[1:], scope)
        return self._plain(name, several, scope) if classification.is_safe else classification

    def _executing(self, finding: Finding, scope: Scope) -> Classification:
        """`find … -exec PROGRAM … {} +`, classified with the names that exist now."""
        classification = self._plain("find", finding.rest, scope)
        for test, inner in finding.started:
            if not classification.is_safe:
                break
            directory = only(scope)
            listing = directory and self.lister.names_of_find(finding.roots, finding.depth, test, directory)
            if not listing:
                return Classification(False, "haft cannot tell which files `find` passes on before it runs")
            classification = self.started(handed(inner, listing.names), scope)
        return classification

    def started(self, arguments: list[Argument], scope: Scope) -> Classification:
        """The classification of a command that another program starts, not the shell."""
        name = arguments[0].text
        if name in BUILTINS or name in _NO_PROGRAMS or "/" in name:
            return Classification(False, f"it starts `{name}`, which haft does not know to be read-only")
        return self.judged(arguments, scope.copy())

    def handed(self, xargs: Xargs, listing: Listing | None, scope: Scope) -> Classification:
        """The classification of the commands that an `xargs` starts."""
        why = None if xargs.file is None else why_not_read(xargs.file, scope, self.places)
        if why is not None or (xargs.file is not None and xargs.file.splits):
            return Classification(False, why or f"haft cannot tell which file `{xargs.file}` names before it runs")
        classification = Classification(False, "`xargs` starts nothing")
        for each in xargs.commands(listing):
            classification = self.started(each, scope)
            if not classification.is_safe:
                break
        return classification

    def leaves_input(self, arguments: list[Argument]) -> bool:
        """Whether a safe command reads nothing from its input, because it has files as arguments or needs none."""
        name = arguments[0].text
        entry = self.programs.get(name)
        if name in _NEEDS_NO_INPUT or name in BUILTINS:
            return name not in ("read", "tee")
        if entry is None:
            return False
        try:
            found = taken_apart(name, arguments[1:], entry)
        except Unlisted:
            return False
        return _are_given(found) and not any(
            text == "-" or text.startswith("/dev/") for each in found.paths for text in each.paths or (each.text,)
        )

    def why_not_look_up(self, arguments: Iterable[Argument], scope: Scope, *, are_followed: bool = True) -> str | None:
        """Why the shell itself, when it expands file names, would leave the workspace; None if it would not."""
        patterns = (each for each in arguments if each.paths is not None and each.splits)
        if not are_followed:
            patterns = (each for each in patterns if not each.is_listed)
        why = why_not_inside if are_followed else why_not_named
        return next(filter(None, (why(each, scope, self.places) for each in patterns)), None)

    def _plain(self, name: str, arguments: list[Argument], scope: Scope) -> Classification:
        if name in BUILTINS:
            why = BUILTINS[name](arguments, scope, self.places)
            return Classification(why is None, why or f"`{name}` only reads")
        known = next((name.removeprefix(place) for place in _KNOWN_PLACES if name.startswith(place)), name)
        entry = self.programs.get(known)
        if entry is None or known in RESERVED:
            return Classification(False, _unknown(name))
        are_followed = not (entry.tame and entry.operands == "words") and not (known == "ls" and lists_names(arguments))
        # Names from a listing that are paths are checked below.
        are_paths = entry.operands in ("paths", "pattern-paths") and not entry.subcommands
        looked_up = [each for each in arguments if not (are_paths and each.is_listed)]
        why = self.why_not_look_up(looked_up, scope, are_followed=are_followed)
        if why is not None:
            return Classification(False, why, is_about_place=True, starts_others=entry.starts_others)
        try:
            found = taken_apart(known, arguments, entry)
        except Unlisted as error:
            return Classification(False, str(error), starts_others=entry.starts_others)
        name = found.invocation.name
        why = None if found.entry.check is None else found.entry.check(found.invocation)
        if why is not None and not (isinstance(why, ByLinks) and self._stays_inside(found, why, scope)):
            return Classification(False, why, starts_others=found.starts_others)
        judge = why_not_read if are_followed else why_not_named
        outside = next(filter(None, (judge(each, scope, self.places) for each in found.paths)), None)
        if outside is not None:
            return Classification(False, outside, is_about_place=True, starts_others=found.starts_others)
        if scope.here is None:
            why = f"haft cannot tell where `{name}` would read, because the line changes its directory"
            return Classification(False, why, is_about_place=True, starts_others=found.starts_others)
        if not all(map(self.places.is_inside, scope.here)):
            why = f"`{name}` would read outside of the workspace"
            return Classification(False, why, is_about_place=True, starts_others=found.starts_others)
        why = self._why_not_git(found, scope.here) if known == "git" else None
        if why is not None:
            return Classification(False, why, is_about_place=True, starts_others=found.starts_others)
        if found.starts_others and not self.places.context.confined:
            return Classification(
                False, f"`{name}` may start other programs, and there is no sandbox", starts_others=True
            )
        if found.entry.tells_of_host and not self.places.context.confined:
            return Classification(False, f"`{name}` shows data of the whole machine, and there is no sandbox")
        return Classification(True, f"`{name}` only reads", starts_others=found.starts_others)

    def _why_not_git(self, found: TakenApart, here: Iterable[str]) -> str | None:
        moved = found.invocation.value("-C") or "."
        starts = (self.places.resolved(directory, moved) for directory in here)
        return next(filter(None, (why_not_git(start, self.places) for start in starts if start is not None)), None)

    def _stays_inside(self, found: TakenApart, why: ByLinks, scope: Scope) -> bool:
        """Whether a program that follows links finds none that leads out of the workspace."""
        directory = only(scope)
        if directory is None or found.invocation.has("-C", "--base-directory"):
            return False
        roots: list[str] = []
        for each in found.paths:
            if not each.literal and each.paths is None:
                return False
            roots += (each.text,) if each.literal else each.paths or ()
        if not _are_given(found) or isinstance(why, ByLinksHere):
            roots.append(".")
        return self.surveyor.stays_inside(directory, roots)


def _are_given(found: TakenApart) -> bool:
    """Whether a file is certainly among the operands: a pipe may list nothing."""
    return any(each is operand for each in found.paths if not each.splits for operand in found.invocation.operands)


def only(scope: Scope) -> str | None:
    """The directory of the line; None if it is not certain."""

    return next(iter(scope.here)) if scope.here is not None and len(scope.here) == 1 else None


def _unknown(name: str) -> str:
    if "/" in name:
        return f"haft does not know the program `{name}`"
    return f"`{name}` may change something"
