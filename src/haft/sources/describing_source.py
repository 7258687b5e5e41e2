"""The base class of all sources whose files haft describes by running them. It finds the files, describes them and
lists their tools."""

from __future__ import annotations

import itertools
import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from haft.contracts import Definitions, DescribeLauncher, DiscoveredTool, Grants, Provenance, State, ToolSpec
from haft.sources.dependency_state import dependency_state
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
    """A tool file that haft describes by running it."""

    @property
    def path(self) -> str: ...
    @property
    def provenance(self) -> Provenance: ...
    @property
    def problem(self) -> str | None: ...


P = TypeVar("P", bound=DescribableFile)


class DescribingSource(ToolSource, Generic[P]):
    """A source of tools in files. `files` returns the files that exist; `why_disabled` returns why a file is disabled,
    or None if the file is not disabled."""

    def __init__(
        self,
        files: Callable[[], Sequence[P]],
        definitions: Definitions,
        why_disabled: Callable[[P], str | None] = lambda _file: None,
        granted: GrantsFor = no_grants,
    ) -> None:
        self._files = files
        self._granted = granted
        self._cache = DescriptionCache(definitions, self.dependency_state, self._granted_to)
        self._why_disabled = why_disabled
        self._seen: list[P] = []
        self._skipped: frozenset[str] = frozenset()
        self._has_failures = False
        """Whether a file had a failed description when tools were last listed."""

    def _granted_to(self, file: P, known: Mapping[str, Any]) -> Grants:
        """What a file may access while it is described."""
        spec = self.undescribed_spec(file, {})

        def is_taken(name: str) -> bool:
            before = itertools.takewhile(lambda each: each.key != file.key, self._seen)
            return any(name == self._current_name(each) for each in before if self.holds_name(each))

        name = self.last_name(known)
        return self._granted(DescribedFile(name, spec.name, spec.kind, file.path, file.provenance, is_taken))

    def _current_name(self, file: P) -> str:
        """The name that a file last gave its tool. If it never gave one, the name that the file is listed by."""
        return self.last_name(self._cache.get(file)) or self.undescribed_spec(file, {}).name

    def dependency_state(self, file: P) -> str:
        """A text that changes when something changes that a file may depend on."""
        return dependency_state(file.path)

    def last_name(self, known: Mapping[str, Any]) -> str | None:
        """The name that a file last gave its tool, by its cache entry; None if it never gave one."""
        name = known.get("name", known.get("was"))
        return name if isinstance(name, str) else None

    def holds_name(self, file: P) -> bool:
        """Whether the tool name of this file counts as taken for all later files."""
        return True

    @abstractmethod
    async def describe(self, file: P, launcher: DescribeLauncher, seconds: float) -> CacheEntry:
        """Run one file to get its description."""

    @abstractmethod
    def tools_of(self, file: P, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        """The tools of a file that is described."""

    @abstractmethod
    def undescribed_spec(self, file: P, known: Mapping[str, Any]) -> ToolSpec:
        """The spec of a file without a description. `known` may have the name from an earlier description."""

    def find(self) -> Iterable[DiscoveredTool]:
        self.scan()
        return list(self.found())

    @property
    def is_incomplete(self) -> bool:
        return bool(self.undescribed())

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        import asyncio

        has_changed = await asyncio.to_thread(self.scan)
        if retry_name is not None:
            self.retry(retry_name)
        if self.undescribed():
            has_changed = True
            # Without a sandbox, listing tools must not run files of the workspace: a clone may have brought them.
            skip = frozenset() if await launcher.is_confined() else frozenset({"workspace"})
            await self.describe_files(launcher, progress, skip=skip)
        return list(self.found()) if has_changed else None

    def places(self) -> Iterable[str]:
        for each in self._seen:
            yield each.path
            if os.path.islink(each.path):
                yield os.path.realpath(each.path)

    def due(self) -> bool:
        # A missing dependency may be installed anywhere on this machine, so watching `places` would not report it.
        return self._has_failures

    def is_current(self, spec: ToolSpec) -> bool:
        seen = next((each for each in self._seen if each.path == spec.origin), None)
        return seen is not None and identity_at(spec.origin) == seen.identity

    def forget_failure(self, file: P) -> None:
        """If the description of a file failed, let the next listing describe the file again."""
        self._cache.forget_failure(file)

    def scan(self) -> bool:
        """Look for files again. Returns whether a file was added, removed or changed."""
        before, self._seen = self._seen, list(self._files())
        return self._seen != before

    def undescribed(self) -> list[P]:
        """The files that must be described. Files whose tools cannot be called anyway are left out."""
        return [each for each in self._seen if self.why_not(each) is None and self._cache.is_outdated(each)]

    def retry(self, name: str) -> None:
        """If the file that is listed by this name could not be described, let the next refresh describe it again."""
        for each in self._seen:
            if self.undescribed_spec(each, self._cache.get(each)).name == name:
                self._cache.retry(each)

    async def describe_files(
        self,
        launcher: DescribeLauncher,
        progress: ProgressCallback = lambda _done, _all: None,
        *,
        skip: frozenset[str] = frozenset(),
    ) -> None:
        """Describe the files that are not described yet, except files with a provenance in `skip`."""
        self._skipped = skip
        wanted = [each for each in self.undescribed() if each.provenance not in skip]
        if wanted:
            await self._cache.describe_many(wanted, self._seen, self.describe, launcher, progress)

    def found(self) -> Iterator[DiscoveredTool]:
        """Every tool of every file; for a file without tools, the reason."""
        self._has_failures = False
        for each in self._seen:
            if (why_not := self.why_not(each)) is not None:
                yield DiscoveredTool(self.undescribed_spec(each, {}), None, *why_not)
            else:
                yield from self.found_in(each, self._cache.get(each))

    def found_in(self, each: P, known: Mapping[str, Any]) -> Iterator[DiscoveredTool]:
        """The tools of one file, from its cache entry `known`; if the file gives no tools, the reason."""
        if known.get("identity") != each.identity:
            why = NO_SANDBOX if each.provenance in self._skipped else NOT_DESCRIBED
            yield DiscoveredTool(self.undescribed_spec(each, known), None, "broken", why)
        elif "problem" in known:
            self._has_failures = True
            state: State = "needs-config" if known.get("needsConfig") else "broken"
            yield DiscoveredTool(
                self.undescribed_spec(each, known), None, state, self.shown_problem(each, known["problem"])
            )
        else:
            yield from self.tools_of(each, known)

    def shown_problem(self, each: P, problem: str) -> str:
        """A text with the path of the file, followed by the problem, for listings that do not show the path."""
        return f"{each.path}: {problem}"

    def why_not(self, each: P) -> tuple[State, str] | None:
        """Why the tools of a file cannot be called, whatever its description says; None if they can."""
        if each.problem is not None:
            return "broken", self.shown_problem(each, each.problem)
        why = self._why_disabled(each)
        return None if why is None else ("disabled", why)
