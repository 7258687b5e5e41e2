"""Installs one packaged server in a sandbox of its own, which reaches the package indexes alone and shows nothing of
the person: no workspace, no home directory. The finished installation is moved to its place in one step."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from haft.config import Config
from haft.contracts import NO_GRANTS, PACKAGE_INDEXES, Command, Grants, StorageFailed, ToolFailed
from haft.storage import StateHome
from haft.toolsets.download_network import RefusedConnections, configured_hosts, restricted
from haft.toolsets.environments.build_sandbox import sandbox_around
from haft.toolsets.environments.ground import CACHE, download_ground
from haft.toolsets.environments.installer import LAST_CHARACTERS, LONGEST_LINE, Heard
from haft.toolsets.environments.placing import making_folder
from haft.toolsets.providers.packages.places import Record, ServerPlace
from haft.toolsets.providers.packages.recipe import Recipe, Step
from haft.toolsets.providers.packages.tree_digest import tree_digest
from haft.values import dataclass

INSTALL_SECONDS: Final = 600.0
WAIT_SECONDS: Final = INSTALL_SECONDS + 60.0
"""How long to wait for another process that installs the same server."""
LOOK_SECONDS: Final = 0.1
TELL_SECONDS: Final = 1.0
MOST_TELLING: Final = 2
MOST_TOLD: Final = 400
"""The most lines and characters of output that are shown beside a known reason."""
DOWNLOADS: Final = "npm http "
"""How lines begin in which npm names one download."""


@dataclass(frozen=True, slots=True)
class Installing:
    """Installs servers for one host."""

    config: Config
    state_home: str
    env: Mapping[str, str]
    workspace: str

    async def install(
        self,
        name: str,
        packages: str,
        place: ServerPlace,
        recipe: Recipe,
        told: Callable[[str], None],
        *,
        upgrade: bool,
    ) -> Record:
        """The installed version of the server `name`. Installs it if there is none, or, with `upgrade`, if the newest
        version is another one. If that fails, the version before stays, and `ToolFailed` is raised."""

        def tell(line: str) -> None:
            told(f"installing the server `{name}`: {line}")

        StateHome(self.state_home).prepare()
        try:
            async with self._locked(name, place, tell):
                found = place.current()
                if found is not None and not upgrade:
                    return found
                await _to_its_end(place.tidy)
                return await self._install(name, packages, place, recipe, tell)
        except OSError as error:
            raise StorageFailed(f"the server `{name}` could not be installed", error) from error

    async def _install(
        self, name: str, packages: str, place: ServerPlace, recipe: Recipe, tell: Callable[[str], None]
    ) -> Record:
        word = secrets.token_hex(8)
        with (
            download_ground(self.env, self.workspace, self.state_home, recipe.ground) as ground,
            making_folder(ground) as folder,
        ):
            made = os.path.join(folder, "server")
            recipe.begin(made)
            tell(packages[:LONGEST_LINE])
            await self._run(name, ground, made, os.path.join(place.folder, word), recipe, tell)
            program = recipe.program(made)
            digest = await asyncio.to_thread(tree_digest, made)
            before = place.current()
            if before is not None and before.digest == digest and before.program == program.path:
                tell(f"{program.version} is the newest version already")
                return before
            record = Record(word, program.path, program.interpreter, program.version, digest, program.without_scripts)
            await _to_its_end(place.put, made, record)
        if program.without_scripts:
            tell(f"install scripts were not run: {', '.join(program.without_scripts[:10])}")
        tell(f"installed {program.version}")
        return record

    async def _run(
        self, name: str, ground: str, made: str, final: str, recipe: Recipe, tell: Callable[[str], None]
    ) -> None:
        heard, refused = Heard(_Progress(tell)), RefusedConnections()
        with sandbox_around(ground, self.workspace, self.state_home, self.config, self.env) as sandbox:
            network = await restricted(sandbox, PACKAGE_INDEXES, *configured_hosts(self.config))
            env = recipe.variables(os.path.join(ground, CACHE), passes_proxies=network is True)
            sandbox.use_indexes({**self.env, **env}, recipe.index_tools, recipe.index_packages)
            readable = recipe.readable

            async def do(step: Step) -> bool:
                command = Command(step.argv, env=env, readable=readable, kill_at_once=True)
                grants = Grants(network=network) if step.uses_network else NO_GRANTS
                launcher = sandbox.launcher("workspace", grants, observer=refused)
                sink = Heard(lambda _line: None) if step.may_fail else heard
                return (await launcher.run(command, sink)).code == 0 or step.may_fail

            try:
                async with asyncio.timeout(INSTALL_SECONDS):
                    for step in recipe.steps(made, final):
                        if not await do(step):
                            raise _failed(name, heard.last(), refused, recipe)
            except TimeoutError as error:
                words = "\n".join(heard.last())[-LAST_CHARACTERS:]
                raise ToolFailed(
                    f"the server `{name}` could not be installed: not done after {INSTALL_SECONDS:g} s\n{words}",
                    hint="the next start tries again, with what was downloaded so far",
                ) from error

    @contextlib.asynccontextmanager
    async def _locked(self, name: str, place: ServerPlace, tell: Callable[[str], None]) -> AsyncIterator[None]:
        """A context manager that holds a lock, so that no other process installs the same server."""
        until, lock = time.monotonic() + WAIT_SECONDS, place.lock()
        if lock is None:
            tell("waiting for another process that installs it")
        while lock is None:
            if time.monotonic() > until:
                raise ToolFailed(f"another process has been installing the server `{name}` for too long")
            await asyncio.sleep(LOOK_SECONDS)
            lock = place.lock()
        try:
            yield
        finally:
            lock.release(unlink=True)


class _Progress:
    """Passes lines of output on. Of lines about single downloads, it shows only the number, and not too often."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._count = 0
        self._told = 0.0

    def __call__(self, line: str) -> None:
        if not line.startswith(DOWNLOADS):
            self._tell(line)
            return
        self._count += 1
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            self._tell(f"{self._count} download{'' if self._count == 1 else 's'}")


def _failed(name: str, lines: list[str], refused: RefusedConnections, recipe: Recipe) -> ToolFailed:
    words = "\n".join(line for line in lines if not line.startswith(DOWNLOADS))[-LAST_CHARACTERS:]
    if (sentence := refused.sentence()) is not None:
        listed = ", ".join(f'"{host}"' for host in refused.hosts)
        return ToolFailed(
            f"the server `{name}` could not be installed: {sentence}, which none of your package indexes is or serves "
            f"its files from\n{words}".rstrip(),
            hint=f"if you trust it, add {listed} to the list `network` below `[sandbox]` in your own configuration",
        )
    known = recipe.hint("\n".join(lines))
    if known is None:
        return ToolFailed(f"the server `{name}` could not be installed\n{words}".rstrip())
    reason, _, cure = known.partition(": ")
    telling = "\n".join([line for line in lines if recipe.hint(line) == known][:MOST_TELLING])[:MOST_TOLD]
    return ToolFailed(f"the server `{name}` could not be installed: {reason}\n{telling}".rstrip(), hint=cure or None)


async def _to_its_end(function: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a thread. A cancellation waits until the thread has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
