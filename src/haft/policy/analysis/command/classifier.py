"""Classifies one simple command: whether it only reads, inside the workspace, according to its program's entry in the
table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from haft.policy.analysis.command.builtin import BUILTINS, why_not_inside, why_not_read
from haft.policy.analysis.command.listings import Lister, Listing
from haft.policy.analysis.command.names_only import ls_shows_only_names, why_parent_not_inside
from haft.policy.analysis.command.options import SplitCommand, Unlisted, split_command
from haft.policy.analysis.command.wrappers import split_simple_exec, unwrap_simple
from haft.policy.analysis.command.xargs import FindExec, Xargs, fill_placeholder, parse_find_exec
from haft.policy.analysis.program import Argument, DirectoryLinkReason, LinkReason, Program
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.text.source import RESERVED
from haft.policy.analysis.tree.gitfiles import why_git_reads_outside
from haft.policy.analysis.tree.path_resolver import PathResolver
from haft.policy.analysis.tree.survey import Surveyor
from haft.values import dataclass

_MAX_WRAPPERS: Final = 4
_NO_PROGRAMS: Final = frozenset(("time", "command", "builtin"))
"""Keywords and built-in commands of the shell that start the command after them; other programs cannot start them."""
_NEEDS_NO_INPUT: Final = frozenset(("echo", "printf", "basename", "dirname", "pwd", "true", "false", "[", "test", ":"))
_KNOWN_PLACES: Final = ("/bin/", "/usr/bin/")


@dataclass(frozen=True, slots=True)
class Classification:
    """The classification of one simple command."""

    is_safe: bool
    reason: str
    is_about_location: bool = False
    """Whether the command is not safe only because of where it reads: outside of the workspace, or haft cannot tell
    where."""
    starts_others: bool = False


@dataclass(frozen=True, slots=True)
class CommandClassifier:
    """Classifies commands by a table of programs, for one directory and workspace."""

    programs: Mapping[str, Program]
    resolver: PathResolver
    surveyor: Surveyor

    @property
    def lister(self) -> Lister:
        """A `Lister`, which finds the file names that a pipe prints."""
        return Lister(self.programs, self.surveyor)

    def classify(self, arguments: list[Argument], scope: Scope) -> Classification:
        """The classification of a command. The first of `arguments` is the program."""
        for _ in range(_MAX_WRAPPERS):
            program = arguments[0]
            if not program.literal or program.may_split:
                return Classification(False, f"haft cannot tell which program `{program.text}` is before it runs")
            inner = unwrap_simple(program.text, arguments[1:])
            if inner is None:
                found = split_simple_exec(arguments) if program.text == "find" else None
                if found is not None:
                    return self._classify_simple_find_exec(*found, scope)
                find_exec = parse_find_exec(arguments[1:]) if program.text == "find" else None
                if find_exec is not None:
                    return self._classify_find_exec(find_exec, scope)
                return self._classify_by_table(program.text, arguments[1:], scope)
            if isinstance(inner, str):
                return Classification(False, inner)
            arguments = inner
            if arguments[0].literal and (arguments[0].text in BUILTINS or arguments[0].text == "time"):
                return Classification(False, f"haft does not analyse `{arguments[0].text}` after `{program.text}`")
        return Classification(False, "too many programs start each other")

    def _classify_simple_find_exec(self, find: list[Argument], started: list[Argument], scope: Scope) -> Classification:
        """The classification of `find … -type f -exec PROGRAM … {} +`. It is safe if both programs only read."""
        name = started[0].text
        if not started[0].literal or name in BUILTINS or name in _NO_PROGRAMS or "/" in name:
            return Classification(False, f"`find` starts `{name}`, which haft does not know to be read-only")
        # One `{}` may become several files.
        several = [each for word in started[1:] for each in ([word] * 3 if word.is_program_output else [word])]
        classification = self._classify_by_table("find", find[1:], scope)
        return self._classify_by_table(name, several, scope) if classification.is_safe else classification

    def _classify_find_exec(self, find_exec: FindExec, scope: Scope) -> Classification:
        """The classification of `find … -exec PROGRAM … {} +`, with the file names that exist now."""
        classification = self._classify_by_table("find", find_exec.rest, scope)
        for test, inner in find_exec.commands:
            if not classification.is_safe:
                break
            directory = only_directory(scope)
            listing = directory and self.lister.names_of_find(find_exec.roots, find_exec.depth, test, directory)
            if not listing:
                return Classification(False, "haft cannot tell which files `find` passes on before it runs")
            classification = self.classify_started(fill_placeholder(inner, listing.names), scope)
        return classification

    def classify_started(self, arguments: list[Argument], scope: Scope) -> Classification:
        """The classification of a command that another program starts, not the shell."""
        name = arguments[0].text
        if name in BUILTINS or name in _NO_PROGRAMS or "/" in name:
            return Classification(False, f"it starts `{name}`, which haft does not know to be read-only")
        return self.classify(arguments, scope.copy())

    def classify_xargs(self, xargs: Xargs, listing: Listing | None, scope: Scope) -> Classification:
        """The classification of the commands that an `xargs` starts."""
        if xargs.file is not None:
            why = why_not_read(xargs.file, scope, self.resolver)
            if why is None and xargs.file.may_split:
                why = f"haft cannot tell which file `{xargs.file.text}` names before it runs"
            if why is not None:
                return Classification(False, why)
        classification = Classification(False, "`xargs` starts nothing")
        for each in xargs.started_commands(listing):
            classification = self.classify_started(each, scope)
            if not classification.is_safe:
                break
        return classification

    def ignores_input(self, arguments: list[Argument]) -> bool:
        """Whether a safe command does not read its standard input, because it reads files that its arguments name, or
        reads no input at all."""
        name = arguments[0].text
        entry = self.programs.get(name)
        if name in _NEEDS_NO_INPUT or name in BUILTINS:
            return name not in ("read", "tee")
        if entry is None:
            return False
        try:
            found = split_command(name, arguments[1:], entry)
        except Unlisted:
            return False
        return _has_certain_file(found) and not any(
            text == "-" or text.startswith("/dev/") for each in found.paths for text in each.paths or (each.text,)
        )

    def why_expansion_leaves_workspace(
        self, arguments: Iterable[Argument], scope: Scope, *, are_read: bool = True
    ) -> str | None:
        """Why the shell itself, when it expands file names, would leave the workspace; None if it would not."""
        patterns = (each for each in arguments if each.paths is not None and each.may_split)
        if not are_read:
            patterns = (each for each in patterns if not each.is_program_output)
        why = why_not_inside if are_read else why_parent_not_inside
        return next(filter(None, (why(each, scope, self.resolver) for each in patterns)), None)

    def _classify_by_table(self, name: str, arguments: list[Argument], scope: Scope) -> Classification:
        if name in BUILTINS:
            why = BUILTINS[name](arguments, scope, self.resolver)
            return Classification(why is None, why or f"`{name}` only reads")
        known = next((name.removeprefix(place) for place in _KNOWN_PLACES if name.startswith(place)), name)
        entry = self.programs.get(known)
        if entry is None or known in RESERVED:
            return Classification(False, _unknown(name))
        are_read = not (entry.all_options_harmless and entry.operands == "words") and not (
            known == "ls" and ls_shows_only_names(arguments)
        )
        # `why_not_read` below checks paths that another program printed, so they are left out here.
        are_paths = entry.operands in ("paths", "pattern-paths") and not entry.subcommands
        expanded = [each for each in arguments if not (are_paths and each.is_program_output)]
        why = self.why_expansion_leaves_workspace(expanded, scope, are_read=are_read)
        if why is not None:
            return Classification(False, why, is_about_location=True, starts_others=entry.starts_others)
        try:
            found = split_command(known, arguments, entry)
        except Unlisted as error:
            return Classification(False, str(error), starts_others=entry.starts_others)
        name = found.invocation.name
        why = None if found.entry.check is None else found.entry.check(found.invocation)
        if why is not None and not (isinstance(why, LinkReason) and self._stays_inside(found, why, scope)):
            return Classification(False, why, starts_others=found.starts_others)
        why_not = why_not_read if are_read else why_parent_not_inside
        outside = next(filter(None, (why_not(each, scope, self.resolver) for each in found.paths)), None)
        if outside is not None:
            return Classification(False, outside, is_about_location=True, starts_others=found.starts_others)
        if scope.directories is None:
            why = f"haft cannot tell where `{name}` would read, because the line changes its directory"
            return Classification(False, why, is_about_location=True, starts_others=found.starts_others)
        if not all(map(self.resolver.is_inside, scope.directories)):
            why = f"`{name}` would read outside of the workspace"
            return Classification(False, why, is_about_location=True, starts_others=found.starts_others)
        why = self._why_git_reads_outside(found, scope.directories) if known == "git" else None
        if why is not None:
            return Classification(False, why, is_about_location=True, starts_others=found.starts_others)
        if found.starts_others and not self.resolver.context.confined:
            return Classification(
                False, f"`{name}` may start other programs, and there is no sandbox", starts_others=True
            )
        if found.entry.shows_host_data and not self.resolver.context.confined:
            return Classification(False, f"`{name}` shows data of the whole machine, and there is no sandbox")
        return Classification(True, f"`{name}` only reads", starts_others=found.starts_others)

    def _why_git_reads_outside(self, found: SplitCommand, here: Iterable[str]) -> str | None:
        moved = found.invocation.value("-C") or "."
        starts = (self.resolver.resolve(directory, moved) for directory in here)
        return next(
            filter(None, (why_git_reads_outside(start, self.resolver) for start in starts if start is not None)), None
        )

    def _stays_inside(self, found: SplitCommand, why: LinkReason, scope: Scope) -> bool:
        """Whether no link below the files that the program reads leads out of the workspace."""
        directory = only_directory(scope)
        if directory is None or found.invocation.has("-C", "--base-directory"):
            return False
        roots: list[str] = []
        for each in found.paths:
            if not each.literal and each.paths is None:
                return False
            roots += (each.text,) if each.literal else each.paths or ()
        if not _has_certain_file(found) or isinstance(why, DirectoryLinkReason):
            roots.append(".")
        return self.surveyor.stays_inside(directory, roots)


def _has_certain_file(found: SplitCommand) -> bool:
    """Whether a file is certainly among the operands. An operand that may split into several words is not certain,
    because it may also become no word at all."""
    return any(each is operand for each in found.paths if not each.may_split for operand in found.invocation.operands)


def only_directory(scope: Scope) -> str | None:
    """The directory in which the command runs; None if there are several possibilities."""

    return next(iter(scope.directories)) if scope.directories is not None and len(scope.directories) == 1 else None


def _unknown(name: str) -> str:
    if "/" in name:
        return f"haft does not know the program `{name}`"
    return f"`{name}` may change something"
