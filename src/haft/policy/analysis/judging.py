"""One simple command judged: whether its entry in the tables says that it only reads, inside the workspace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from haft.policy.analysis.builtin import BUILTINS, why_not_inside
from haft.policy.analysis.options import Unlisted, taken_apart
from haft.policy.analysis.places import Places
from haft.policy.analysis.program import Argument, Program
from haft.policy.analysis.scope import Scope
from haft.policy.analysis.source import RESERVED
from haft.policy.analysis.wrapping import unwrapped, without_exec

_MOST_WRAPPERS: Final = 4
_KNOWN_PLACES: Final = ("/bin/", "/usr/bin/")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Of one simple command."""

    is_safe: bool
    reason: str
    is_about_place: bool = False
    """Whether it would be safe elsewhere: it reads, but outside of the workspace."""
    starts_others: bool = False


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges commands by a table, on one ground."""

    programs: Mapping[str, Program]
    places: Places

    def judged(self, arguments: list[Argument], scope: Scope) -> Judgement:
        """A command: its program, then what it is given."""
        for _ in range(_MOST_WRAPPERS):
            program = arguments[0]
            if not program.literal or program.splits:
                return Judgement(False, f"which program `{program.text}` is, is not known before it runs")
            inner = unwrapped(program.text, arguments[1:])
            if inner is None:
                found = without_exec(arguments) if program.text == "find" else None
                if found is not None:
                    return self._with_exec(*found, scope)
                return self._plain(program.text, arguments[1:], scope)
            if isinstance(inner, str):
                return Judgement(False, inner)
            arguments = inner
            if arguments[0].literal and arguments[0].text in BUILTINS:
                return Judgement(False, f"`{arguments[0].text}` behind `{program.text}` is not looked at")
        return Judgement(False, "too many programs start one another")

    def _with_exec(self, find: list[Argument], started: list[Argument], scope: Scope) -> Judgement:
        """`find … -type f -exec PROGRAM … {} +`: both must only read."""
        name = started[0].text
        if name in BUILTINS or "/" in name:
            return Judgement(False, f"what `find` starts is not known to only read: `{name}`")
        # Several files may stand where one is written.
        at = next((at for at, each in enumerate(started) if each.text == "./x"), 0)
        several = [*started[1:at], *[Argument("./x")] * 3, *started[at + 1 :]]
        judgement = self._plain("find", find[1:], scope)
        return self._plain(name, several, scope) if judgement.is_safe else judgement

    def why_not_look_up(self, arguments: Iterable[Argument], scope: Scope) -> str | None:
        """Why the shell itself, looking for file names, would not stay inside the workspace."""
        patterns = (each for each in arguments if each.paths is not None and each.splits)
        return next(filter(None, (why_not_inside(each, scope, self.places) for each in patterns)), None)

    def _plain(self, name: str, arguments: list[Argument], scope: Scope) -> Judgement:
        if name in BUILTINS:
            why = BUILTINS[name](arguments, scope, self.places)
            return Judgement(why is None, why or f"`{name}` only reads")
        known = next((name.removeprefix(place) for place in _KNOWN_PLACES if name.startswith(place)), name)
        entry = self.programs.get(known)
        if entry is None or known in RESERVED:
            return Judgement(False, _unknown(name))
        why = self.why_not_look_up(arguments, scope)
        if why is not None:
            return Judgement(False, why, is_about_place=True, starts_others=entry.starts_others)
        try:
            found = taken_apart(known, arguments, entry)
        except Unlisted as error:
            return Judgement(False, str(error), starts_others=entry.starts_others)
        name = found.invocation.name
        why = None if found.entry.check is None else found.entry.check(found.invocation)
        if why is not None:
            return Judgement(False, why, starts_others=found.starts_others)
        outside = next(filter(None, (why_not_inside(each, scope, self.places) for each in found.paths)), None)
        if outside is not None:
            return Judgement(False, outside, is_about_place=True, starts_others=found.starts_others)
        if scope.here is None:
            why = f"where `{name}` would read is not known: the line changes its directory"
            return Judgement(False, why, is_about_place=True, starts_others=found.starts_others)
        if not all(map(self.places.is_inside, scope.here)):
            why = f"`{name}` would read outside of the workspace"
            return Judgement(False, why, is_about_place=True, starts_others=found.starts_others)
        if found.starts_others and not self.places.ground.walled:
            return Judgement(False, f"`{name}` may start other programs, and there are no walls", starts_others=True)
        return Judgement(True, f"`{name}` only reads", starts_others=found.starts_others)


def _unknown(name: str) -> str:
    if "/" in name:
        return f"`{name}` is not a program that is known"
    return f"`{name}` may change something"
