"""What formats whose files are asked what they are have in common: looking for them, asking them, listing them."""

from __future__ import annotations

import itertools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from haft.contracts import AskingLauncher, Definitions, Found, Grants, Provenance, State, ToolSpec
from haft.sources.dependency_state import surroundings
from haft.sources.description_cache import (
    NO_SANDBOX,
    NOT_DESCRIBED,
    CacheEntry,
    Describable,
    DescribedFile,
    DescriptionCache,
    GrantsFor,
    no_grants,
)
from haft.sources.identity import identity_at
from haft.sources.port import ProgressCallback, ToolSource


class DescribableFile(Describable, Protocol):
    """A file that is asked what it is."""

    @property
    def path(self) -> str: ...
    @property
    def provenance(self) -> Provenance: ...
    @property
    def problem(self) -> str | None: ...


P = TypeVar("P", bound=DescribableFile)


class DescribingSource(ToolSource, Generic[P]):
    """A source of tools that lie in files. `files` gives those that there are; `why_disabled` says of one why it is
    off."""

    def __init__(
        self,
        files: Callable[[], Sequence[P]],
        definitions: Definitions,
        why_disabled: Callable[[P], str | None] = lambda _file: None,
        granted: GrantsFor = no_grants,
    ) -> None:
        self._files = files
        self._granted = granted
        self._answers = DescriptionCache(definitions, self.surroundings, self._granted_to)
        self._why_disabled = why_disabled
        self._seen: list[P] = []
        self._unasked: frozenset[str] = frozenset()
        self._has_failures = False
        """Whether a file could not be understood, when tools were last listed."""

    def _granted_to(self, file: P, known: Mapping[str, Any]) -> Grants:
        """What a file may have when it is asked what it is."""
        bare = self.bare(file, {})

        def is_taken(name: str) -> bool:
            before = itertools.takewhile(lambda each: each.key != file.key, self._seen)
            return any(name == self._last_name(each) for each in before if self.holds_name(each))

        said = self.said(known)
        return self._granted(DescribedFile(said, bare.name, bare.kind, file.path, file.provenance, is_taken))

    def _last_name(self, file: P) -> str:
        """What a file called its tool last; what it is listed by where it never did."""
        return self.said(self._answers.of(file)) or self.bare(file, {}).name

    def surroundings(self, file: P) -> str:
        """What a file may depend on: another text when that changed."""
        return surroundings(file.path)

    def said(self, known: Mapping[str, Any]) -> str | None:
        """What a file called its tool last."""
        said = known.get("name", known.get("was"))
        return said if isinstance(said, str) else None

    def holds_name(self, file: P) -> bool:
        """Whether no later file can have its name."""
        return True

    @abstractmethod
    async def describe(self, file: P, launcher: AskingLauncher, seconds: float) -> CacheEntry:
        """Ask one file what it is."""

    @abstractmethod
    def tools_of(self, file: P, known: Mapping[str, Any]) -> Iterator[Found]:
        """The tools of a file that said what it is."""

    @abstractmethod
    def bare(self, file: P, known: Mapping[str, Any]) -> ToolSpec:
        """What can be said of a file that has not spoken, but for what it said when it was another."""

    def find(self) -> Iterable[Found]:
        self.look()
        return list(self.found())

    @property
    def is_incomplete(self) -> bool:
        return bool(self.unknown())

    async def refresh(
        self, launcher: AskingLauncher, told: ProgressCallback, *, doubted: str | None = None
    ) -> Iterable[Found] | None:
        import asyncio

        is_other = await asyncio.to_thread(self.look)
        if doubted is not None:
            self.doubt(doubted)
        if self.unknown():
            is_other = True
            # Without a sandbox, files that a clone brought are not run because someone lists tools.
            but = frozenset() if await launcher.is_confined() else frozenset({"workspace"})
            await self.ask(launcher, told, but=but)
        return list(self.found()) if is_other else None

    def places(self) -> Iterable[str]:
        for each in self._seen:
            yield each.path
            if os.path.islink(each.path):
                yield os.path.realpath(each.path)

    def due(self) -> bool:
        # What a file depends on and lacks may lie anywhere.
        return self._has_failures

    def is_current(self, spec: ToolSpec) -> bool:
        seen = next((each for each in self._seen if each.path == spec.origin), None)
        return seen is not None and identity_at(spec.origin) == seen.identity

    def forget_failure(self, file: P) -> None:
        """Ask a file again when tools are listed, if it could not be understood before."""
        self._answers.forget_failure(file)

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
            if self.bare(each, self._answers.of(each)).name == name:
                self._answers.doubt(each)

    async def ask(
        self,
        launcher: AskingLauncher,
        told: ProgressCallback = lambda _done, _all: None,
        *,
        but: frozenset[str] = frozenset(),
    ) -> None:
        """Ask those that are not known, and keep what they say; `but` those of these provenances."""
        self._unasked = but
        wanted = [each for each in self.unknown() if each.provenance not in but]
        if wanted:
            await self._answers.ask(wanted, self._seen, self.describe, launcher, told)

    def found(self) -> Iterator[Found]:
        """Every tool of every file, or why there is none."""
        self._has_failures = False
        for each in self._seen:
            if (why_not := self.why_not(each)) is not None:
                yield Found(self.bare(each, {}), None, *why_not)
            else:
                yield from self.found_at(each, self._answers.of(each))

    def found_at(self, each: P, known: Mapping[str, Any]) -> Iterator[Found]:
        """The tools of one file, by what is known of it."""
        if known.get("identity") != each.identity:
            why = NO_SANDBOX if each.provenance in self._unasked else NOT_DESCRIBED
            yield Found(self.bare(each, known), None, "broken", why)
        elif "problem" in known:
            self._has_failures = True
            state: State = "needs-config" if known.get("needsConfig") else "broken"
            yield Found(self.bare(each, known), None, state, self.told(each, known["problem"]))
        else:
            yield from self.tools_of(each, known)

    def told(self, each: P, problem: str) -> str:
        """A problem, for whoever may not see which file has it."""
        return f"{each.path}: {problem}"

    def why_not(self, each: P) -> tuple[State, str] | None:
        """Why a file's tools could not be called, whatever it says."""
        if each.problem is not None:
            return "broken", self.told(each, each.problem)
        why = self._why_disabled(each)
        return None if why is None else ("disabled", why)
