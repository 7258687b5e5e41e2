"""Git plugins, fetched once and used from the cache: which commit each is pinned to, and whether it is there.

A pin is never followed to another commit by itself: `update` does that, when a person says so. What failed is not tried
again for a minute. Nothing here is imported by whoever has no git plugins.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from haft.config import Config, user_file
from haft.contracts import BadConfig, HaftError
from haft.sandbox import CACHES, home_of, is_below
from haft.sources import ProgressCallback
from haft.sources.bash_plugin import PluginReference
from haft.storage import default_home
from haft.toolsets.checkouts import MAKING, Checkouts, NotFetched
from haft.toolsets.git_source import LOCK, GitSource, source_of
from haft.toolsets.lock_file import key_of, pin, read_pins

FETCH_SECONDS: Final = 60.0
AGAIN_SECONDS: Final = 60.0
AT_ONCE: Final = 4
LEFT_SECONDS: Final = 86_400.0
"""After which a directory that someone began to fill is litter."""
NOT_FETCHED: Final = "it is not fetched yet: `haft plugins update` fetches it, and so does `haft tools list`"

_Done = Callable[[PluginReference], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one git plugin stands."""

    source: GitSource | None = None
    commit: str | None = None
    """What it is pinned to."""
    place: str | None = None
    """The checkout, where it is there."""
    problem: str | None = None
    """Why it is not there."""
    is_final: bool = False
    """Whether fetching cannot help: the configuration has to be seen to."""


@dataclass(frozen=True, slots=True)
class Updated:
    """What became of a plugin that was to be fetched anew."""

    reference: PluginReference
    source: GitSource | None
    before: str | None
    commit: str | None
    problem: str | None = None


class Fetching:
    """The git plugins of one workspace and its user. `refused` says of a reference why nobody may fetch it."""

    def __init__(
        self,
        config: Config,
        workspace: str,
        refused: Callable[[PluginReference], str | None],
        env: Mapping[str, str] | None = None,
        state_home: str | None = None,
    ) -> None:
        self._env = os.environ if env is None else env
        self._workspace = workspace
        self._refused = refused
        state_home = state_home or default_home(self._env)
        cache = _cache(config, workspace, self._env)
        taken = {workspace: "the workspace", state_home: "haft's own state"}
        taken |= dict.fromkeys(_written_by_calls(self._env), "a place that calls have for themselves")
        self._unusable = _why_unusable(cache, taken)
        self._checkouts = Checkouts(cache, state_home, config, self._env)
        self._failed: dict[str, tuple[float, str]] = {}
        """When fetching failed, and why; by what was fetched."""

    def standing(self, reference: PluginReference) -> Standing:
        """Whether a plugin is there. Nothing is started."""
        why = self._refused(reference) or self._unusable
        if why is not None:
            return Standing(problem=why, is_final=True)
        try:
            source = self._source(reference)
            commit = read_pins(source.lock).get(key_of(source))
        except BadConfig as error:
            return Standing(problem=_words(error), is_final=True)
        if commit is not None and os.path.isdir(place := self._checkouts.place(source, commit)):
            return Standing(source, commit, place)
        _when, problem = self._failed.get(_mark(source, commit), (0.0, NOT_FETCHED))
        return Standing(source, commit, problem=problem)

    def locks(self, references: Iterable[PluginReference]) -> set[str]:
        """The files that pin them."""
        standings = (self.standing(reference) for reference in references if reference.git is not None)
        return {standing.source.lock for standing in standings if standing.source is not None}

    def is_wanted(self, reference: PluginReference) -> bool:
        """Whether it is time to fetch it."""
        standing = self.standing(reference)
        if standing.source is None or standing.place is not None or standing.is_final:
            return False
        failed = self._failed.get(_mark(standing.source, standing.commit))
        return failed is None or time.monotonic() - failed[0] >= AGAIN_SECONDS

    async def fetch(self, references: Sequence[PluginReference], told: ProgressCallback) -> None:
        """Fetch what is not there, each at its pin; what has none is pinned. Each fails alone."""

        async def one(reference: PluginReference) -> None:
            standing = self.standing(reference)
            if standing.source is None or standing.place is not None:
                return
            mark = _mark(standing.source, standing.commit)
            try:
                await self._fetch(standing.source, standing.commit, reference.name)
                self._failed.pop(mark, None)
            except NotFetched as error:
                self._failed[mark] = time.monotonic(), str(error)

        # One that is named twice is fetched once.
        wanted = {(each.git, each.ref, each.source): each for each in references}
        await self._each(list(wanted.values()), one, told)

    async def update(self, references: Sequence[PluginReference], told: ProgressCallback) -> list[Updated]:
        """Fetch what the refs mean now, and pin that."""
        done: dict[PluginReference, Updated] = {}

        async def one(reference: PluginReference) -> None:
            standing = self.standing(reference)
            source, before = standing.source, standing.commit
            if source is None:
                done[reference] = Updated(reference, None, None, None, standing.problem)
                return
            try:
                commit = await self._checked_out(source, None)
                self._pin(source, commit, replacing=True)
                self._failed.clear()
                done[reference] = Updated(reference, source, before, commit)
            except NotFetched as error:
                done[reference] = Updated(reference, source, before, before, f"{source.words}: {error}")

        await self._each(references, one, told)
        return [done[reference] for reference in references]

    async def remote(self, reference: PluginReference) -> str:
        """The commit that the ref means now. `NotFetched` where nobody says."""
        standing = self.standing(reference)
        if standing.source is None:
            raise NotFetched(standing.problem or NOT_FETCHED)
        try:
            return await self._checkouts.resolve(standing.source, FETCH_SECONDS)
        except (HaftError, OSError) as error:
            raise NotFetched(_words(error)) from error

    async def _fetch(self, source: GitSource, commit: str | None, name: str) -> None:
        try:
            taken = await self._checked_out(source, commit)
            if commit is None:
                pinned = self._pin(source, taken, replacing=False)
                if pinned != taken:  # by someone who was faster
                    await self._checked_out(source, pinned)
        except NotFetched as error:
            if commit is None:
                raise NotFetched(f"{source.words} could not be fetched: {error}") from error
            raise NotFetched(
                f"{source.words} could not be fetched at {commit[:12]}, which {source.lock} pins: {error}; "
                f"`haft plugins update {name}` takes what it is now"
            ) from error

    async def _checked_out(self, source: GitSource, commit: str | None) -> str:
        try:
            return await self._checkouts.check_out(source, commit, FETCH_SECONDS)
        except (HaftError, OSError) as error:
            raise NotFetched(_words(error)) from error

    def _pin(self, source: GitSource, commit: str, *, replacing: bool) -> str:
        try:
            return pin(source, commit, os.path.join(self._checkouts.cache, ".guard"), replacing=replacing)
        except (HaftError, OSError) as error:
            raise NotFetched(_words(error)) from error

    async def _each(self, references: Sequence[PluginReference], one: _Done, told: ProgressCallback) -> None:
        await asyncio.to_thread(self._tidy)
        slots = asyncio.Semaphore(AT_ONCE)
        done = 0

        async def in_turn(reference: PluginReference) -> None:
            nonlocal done
            async with slots:
                await one(reference)
            done += 1
            told(done, len(references))

        told(0, len(references))
        async with asyncio.TaskGroup() as group:
            for reference in references:
                group.create_task(in_turn(reference))

    def _tidy(self) -> None:
        """Take away what was begun by someone who was killed."""
        with suppress(OSError), os.scandir(self._checkouts.cache) as found:
            for entry in found:
                if entry.name.startswith(MAKING) and time.time() - entry.stat().st_mtime > LEFT_SECONDS:
                    shutil.rmtree(entry.path, ignore_errors=True)

    def _source(self, reference: PluginReference) -> GitSource:
        is_file = os.path.isabs(reference.source)
        base = os.path.dirname(reference.source) if is_file else self._workspace
        beside = base if is_file else os.path.dirname(user_file(self._env))
        return source_of(reference, os.path.join(beside, LOCK), base)


def _cache(config: Config, workspace: str, env: Mapping[str, str]) -> str:
    said, source = config.values["plugin_cache_dir"], config.sources["plugin_cache_dir"]
    if said:
        base = os.path.dirname(source) if os.path.isabs(source) else workspace
        return os.path.realpath(os.path.join(base, os.path.expanduser(said)))
    caches = env.get("XDG_CACHE_HOME", "")
    caches = os.path.realpath(caches if os.path.isabs(caches) else os.path.expanduser("~/.cache"))
    if any(is_below(caches, (place,)) for place in _written_by_calls(env)):
        caches = os.path.realpath(os.path.expanduser("~/.local/share"))
    return os.path.join(caches, "haft", "plugins")


def _written_by_calls(env: Mapping[str, str]) -> list[str]:
    """Where calls see a directory of their own instead of the person's. What one call left there the next would take
    for the plugin: nothing that is run may be looked for in these."""
    home = home_of(env)
    return [os.path.realpath(os.path.join(home, place)) for place in CACHES.values()]


def _why_unusable(cache: str, taken: Mapping[str, str]) -> str | None:
    for place, what in taken.items():
        if is_below(cache, (os.path.realpath(place),)):
            return f"plugins would be kept in {cache}, inside of {what} ({place}): set `plugin_cache_dir`"
    return None


def _mark(source: GitSource, commit: str | None) -> str:
    return f"{source.lock}\n{source.url}\n{source.ref}\n{commit}"


def _words(error: HaftError | OSError) -> str:
    if isinstance(error, OSError):
        return str(error)
    return error.message if error.hint is None else f"{error.message}; {error.hint}"
