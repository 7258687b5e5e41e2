"""Git plugins: fetches each once into a cache, and pins its commit.

haft never changes a pinned commit by itself; only `update` does, when a person asks for it. After a failure, haft waits
a minute before the next attempt. If no git plugins are configured, this module is not imported.
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
"""The age, in seconds, at which an unfinished checkout directory is deleted."""
NOT_FETCHED: Final = "it is not fetched yet: `haft plugins update` fetches it, and so does `haft tools list`"

_Done = Callable[[PluginReference], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CheckoutState:
    """The state of one git plugin."""

    source: GitSource | None = None
    commit: str | None = None
    """The pinned commit."""
    place: str | None = None
    """The path of the checkout, if it exists."""
    problem: str | None = None
    """Why there is no checkout."""
    is_final: bool = False
    """Whether it is useless to fetch again, because the problem is in the configuration."""


@dataclass(frozen=True, slots=True)
class Updated:
    """The result of updating a plugin."""

    reference: PluginReference
    source: GitSource | None
    before: str | None
    commit: str | None
    problem: str | None = None


class Fetching:
    """The git plugins of one workspace and its user. `refused` returns why a plugin may not be fetched, or None if it
    may."""

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
        taken |= dict.fromkeys(_written_by_calls(self._env), "a directory that is private to each call")
        self._unusable = _why_unusable(cache, taken)
        self._checkouts = Checkouts(cache, state_home, config, self._env)
        self._failed: dict[str, tuple[float, str]] = {}
        """When and why fetching failed, by source and commit."""

    def checkout_state(self, reference: PluginReference) -> CheckoutState:
        """The state of a plugin. Starts no process."""
        why = self._refused(reference) or self._unusable
        if why is not None:
            return CheckoutState(problem=why, is_final=True)
        try:
            source = self._source(reference)
            commit = read_pins(source.lock).get(key_of(source))
        except BadConfig as error:
            return CheckoutState(problem=_words(error), is_final=True)
        if commit is not None and os.path.isdir(place := self._checkouts.place(source, commit)):
            return CheckoutState(source, commit, place)
        _when, problem = self._failed.get(_mark(source, commit), (0.0, NOT_FETCHED))
        return CheckoutState(source, commit, problem=problem)

    def locks(self, references: Iterable[PluginReference]) -> set[str]:
        """The lock files that pin these plugins."""
        states = (self.checkout_state(reference) for reference in references if reference.git is not None)
        return {checkout_state.source.lock for checkout_state in states if checkout_state.source is not None}

    def is_wanted(self, reference: PluginReference) -> bool:
        """Whether the plugin should be fetched now."""
        checkout_state = self.checkout_state(reference)
        if checkout_state.source is None or checkout_state.place is not None or checkout_state.is_final:
            return False
        failed = self._failed.get(_mark(checkout_state.source, checkout_state.commit))
        return failed is None or time.monotonic() - failed[0] >= AGAIN_SECONDS

    async def fetch(self, references: Sequence[PluginReference], told: ProgressCallback) -> None:
        """Fetch the missing plugins at their pinned commits. A plugin without a pin is pinned to the fetched commit. If
        one plugin fails, the others are still fetched."""

        async def one(reference: PluginReference) -> None:
            checkout_state = self.checkout_state(reference)
            if checkout_state.source is None or checkout_state.place is not None:
                return
            mark = _mark(checkout_state.source, checkout_state.commit)
            try:
                await self._fetch(checkout_state.source, checkout_state.commit, reference.name)
                self._failed.pop(mark, None)
            except NotFetched as error:
                self._failed[mark] = time.monotonic(), str(error)

        # A plugin that is configured twice is fetched once.
        wanted = {(each.git, each.ref, each.source): each for each in references}
        await self._each(list(wanted.values()), one, told)

    async def update(self, references: Sequence[PluginReference], told: ProgressCallback) -> list[Updated]:
        """Fetch the current commit of each plugin's ref, and pin it."""
        done: dict[PluginReference, Updated] = {}

        async def one(reference: PluginReference) -> None:
            checkout_state = self.checkout_state(reference)
            source, before = checkout_state.source, checkout_state.commit
            if source is None:
                done[reference] = Updated(reference, None, None, None, checkout_state.problem)
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
        """The current commit of the plugin's ref in its repository. Raises `NotFetched` if the repository does not
        answer."""
        checkout_state = self.checkout_state(reference)
        if checkout_state.source is None:
            raise NotFetched(checkout_state.problem or NOT_FETCHED)
        try:
            return await self._checkouts.resolve(checkout_state.source, FETCH_SECONDS)
        except (HaftError, OSError) as error:
            raise NotFetched(_words(error)) from error

    async def _fetch(self, source: GitSource, commit: str | None, name: str) -> None:
        try:
            taken = await self._checked_out(source, commit)
            if commit is None:
                pinned = self._pin(source, taken, replacing=False)
                if pinned != taken:  # Another process has pinned another commit first.
                    await self._checked_out(source, pinned)
        except NotFetched as error:
            if commit is None:
                raise NotFetched(f"{source.words} could not be fetched: {error}") from error
            raise NotFetched(
                f"{source.words} could not be fetched at {commit[:12]}, which {source.lock} pins: {error}; "
                f"`haft plugins update {name}` fetches the current commit"
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
        """Delete unfinished checkouts of killed processes."""
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
    """The paths of cache directories that each call sees as private directories, to which it can write. Plugins must
    not be stored at these paths: a call could write code there, and the next call would run this code as the plugin."""
    home = home_of(env)
    return [os.path.realpath(os.path.join(home, place)) for place in CACHES.values()]


def _why_unusable(cache: str, taken: Mapping[str, str]) -> str | None:
    for place, what in taken.items():
        if is_below(cache, (os.path.realpath(place),)):
            return f"plugins would be stored in {cache}, inside {what} ({place}): set `plugin_cache_dir`"
    return None


def _mark(source: GitSource, commit: str | None) -> str:
    return f"{source.lock}\n{source.url}\n{source.ref}\n{commit}"


def _words(error: HaftError | OSError) -> str:
    if isinstance(error, OSError):
        return str(error)
    return error.message if error.hint is None else f"{error.message}; {error.hint}"
