"""What the sources of plugins have in common: files that are looked for, asked what they are, and listed."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from haft.contracts import AskingLauncher, Definitions, Found, Grants, Launcher, Provenance, State, ToolSpec
from haft.sources.answers import NOT_ASKED, UNWALLED, Answers, Asked, Claim, Granted, Known, Told, nothing
from haft.sources.surrounding import surroundings


class PluginPart(Asked, Protocol):
    """A file of a plugin."""

    @property
    def path(self) -> str: ...
    @property
    def provenance(self) -> Provenance: ...
    @property
    def problem(self) -> str | None: ...


P = TypeVar("P", bound=PluginPart)


class AskedSource(ABC, Generic[P]):
    """A source of tools that lie in files. `files` gives those that are configured; `why_disabled` says of one why it
    is off."""

    def __init__(
        self,
        files: Callable[[], Sequence[P]],
        definitions: Definitions,
        why_disabled: Callable[[P], str | None] = lambda _file: None,
        granted: Granted = nothing,
    ) -> None:
        self._files = files
        self._granted = granted
        self._answers = Answers(definitions, lambda file: surroundings(file.path), self._granted_to)
        self._why_disabled = why_disabled
        self._seen: list[P] = []
        self._unasked: frozenset[str] = frozenset()

    def _granted_to(self, file: P, known: Mapping[str, Any]) -> Grants:
        """What a file may have when it is asked what it is."""
        bare = self.bare(file)

        def is_taken(name: str) -> bool:
            before = itertools.takewhile(lambda each: each.key != file.key, self._seen)
            return any(name == (_said(self._answers.of(each)) or self.bare(each).name) for each in before)

        return self._granted(Claim(_said(known), bare.name, bare.kind, file.path, file.provenance, is_taken))

    @abstractmethod
    async def describe(self, file: P, launcher: Launcher, seconds: float) -> Known:
        """Ask one file what it is."""

    @abstractmethod
    def tools_of(self, file: P, known: Mapping[str, Any]) -> Iterator[Found]:
        """The tools of a file that said what it is."""

    @abstractmethod
    def bare(self, file: P) -> ToolSpec:
        """What can be said of a file that has not spoken."""

    def look(self) -> bool:
        """See what lies there now; whether that is anything else than before."""
        before, self._seen = self._seen, list(self._files())
        return self._seen != before

    def unknown(self) -> list[P]:
        """The files that have to be asked what they are. None where their tools could not be called anyway."""
        return [each for each in self._seen if self.why_not(each) is None and self._answers.is_outdated(each)]

    def doubt(self, name: str) -> None:
        """Ask again what could not be understood and is listed by this name."""
        for each in self._seen:
            if self.bare(each).name == name:
                self._answers.doubt(each)

    async def ask(
        self, launcher: AskingLauncher, told: Told = lambda _done, _all: None, *, but: frozenset[str] = frozenset()
    ) -> None:
        """Ask those that are not known, and keep what they say; `but` those of these provenances."""
        self._unasked = but
        wanted = [each for each in self.unknown() if each.provenance not in but]
        if wanted:
            await self._answers.ask(wanted, self._seen, self.describe, launcher, told)

    def found(self) -> Iterator[Found]:
        """Every tool of every file, or why there is none."""
        for each in self._seen:
            why_not = self.why_not(each)
            if why_not is not None:
                yield Found(self.bare(each), None, *why_not)
                continue
            known = self._answers.of(each)
            if known.get("identity") != each.identity:
                why = UNWALLED if each.provenance in self._unasked else NOT_ASKED
                yield Found(self.bare(each), None, "broken", why)
            elif "problem" in known:
                state: State = "needs-config" if known.get("needsConfig") else "broken"
                yield Found(self.bare(each), None, state, f"{each.path}: {known['problem']}")
            else:
                yield from self.tools_of(each, known)

    def why_not(self, each: P) -> tuple[State, str] | None:
        """Why a file's tools could not be called, whatever it says."""
        if each.problem is not None:
            return "broken", f"{each.path}: {each.problem}"
        why = self._why_disabled(each)
        return None if why is None else ("disabled", why)


def _said(known: Mapping[str, Any]) -> str | None:
    """What a file called its tool last."""
    said = known.get("name", known.get("was"))
    return said if isinstance(said, str) else None
