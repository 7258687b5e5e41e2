"""Makes one environment of a template with uv, in a sandbox of its own.

The sandbox reaches the package indexes alone, and shows nothing of the person: no workspace, no home directory, no
secret. While only wheels are installed, no code of the packages runs, not even when haft compiles them, and all
templates share one download cache. Building a package that has no wheel runs code of its authors. So for builds, each
template has a cache of its own. The code sees only the system and the toolchains. Neither its process nor the parent
process has variables with credentials. haft tries wheels first, so that it builds only packages that have none. The
finished environment is moved to its place in one step. `TemplateEnvironments` decides whether an environment must be
made, and starts the work only once if several tasks need it at the same time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import stat
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from haft.config import Config
from haft.contracts import (
    NO_GRANTS,
    PACKAGE_INDEXES,
    Command,
    EndedChild,
    Grants,
    NeedsBuild,
    OutputSink,
    StorageFailed,
    Stream,
    ToolFailed,
)
from haft.files import HeldLock, try_lock
from haft.sandbox import TOOLS
from haft.sources.agent_studio import NAME, Requirements, parse_requirements, read_requirements
from haft.storage import StateHome
from haft.toolsets.download_network import RefusedConnections, configured_hosts, hosts_in, restricted
from haft.toolsets.environments.build_sandbox import sandbox_around
from haft.toolsets.environments.ground import CACHE, download_ground, is_ours
from haft.toolsets.environments.installer import (
    LONGEST_LINE,
    Fresh,
    Heard,
    failed,
    find_uv,
    installer_environment,
    names_in,
    readable_certificates,
    with_credentials,
    without_credentials,
    without_wheel,
)
from haft.toolsets.environments.places import (
    MADE_BY_US,
    Place,
    Told,
    allowed_builds,
    apart,
    base_python,
    content_digest,
    digest_of,
    inside,
    key_of,
    name_of,
)
from haft.toolsets.environments.placing import Occupied, making_folder, put

BUILD_SECONDS: Final = 600.0
"""The deadline for one environment, independent of the deadline of the call."""
WAIT_SECONDS: Final = BUILD_SECONDS + 60.0
"""How long to wait for another process that makes the same environment."""
LOOK_SECONDS: Final = 0.1
MOST_ROUNDS: Final = 10
"""How often haft starts again because it found another package that must be built."""


@dataclass(frozen=True, slots=True)
class Making:
    """Makes the environments of templates."""

    config: Config
    state_home: str
    env: Mapping[str, str]
    workspace: str
    told: Told
    may_build: bool = False
    """Whether to build packages that have no wheel, if the configuration does not say it."""

    async def make(self, real: str, current: Callable[[str], Any]) -> None:
        """Make the environment of a folder, unless `current` finds one that another process has made meanwhile. If it
        cannot be made, nothing of it stays, and `ToolFailed` is raised."""
        content = read_requirements(real)
        wanted = parse_requirements(content, allow_builds=self._builds_anything)
        may_build = self._may_build(content)
        StateHome(self.state_home).prepare()
        async with self._locked(real):
            if current(real) is not None:
                return
            try:
                built: Sequence[str] = ()
                for _ in range(MOST_ROUNDS):
                    built = await self._make(real, wanted, built)
                    if not built:
                        return
                    if names := with_credentials(self.env):
                        raise self._exposed(real, built, names)
                    if not may_build:
                        raise self._refused(real, built, content)
                raise ToolFailed(
                    f"the environment of `{name_of(real)}` could not be made: too many packages must be built"
                )
            except OSError as error:
                raise StorageFailed(f"the environment of `{name_of(real)}` could not be made", error) from error

    @property
    def _builds_anything(self) -> bool:
        return self.config.values.get("templates.allow_builds") is True

    def _may_build(self, content: bytes) -> bool:
        if self.config.is_set("templates.allow_builds"):
            return self._builds_anything
        return self.may_build or os.path.exists(allowed_builds(self.state_home, content_digest(content)))

    def _refused(self, real: str, packages: Sequence[str], content: bytes) -> ToolFailed:
        listed = ", ".join(f"`{package}`" for package in packages)
        said = f"the environment of `{name_of(real)}` could not be made: there is no wheel of {listed} for this Python"
        if self.config.is_set("templates.allow_builds"):
            return ToolFailed(f"{said}, and `templates.allow_builds` is false", hint="name a version that has a wheel")
        command = f"haft templates build {shlex.quote(real)} --allow-builds"
        return NeedsBuild(f"{said}, and building it is not allowed yet", packages, content_digest(content), command)

    def _exposed(self, real: str, packages: Sequence[str], names: Sequence[str]) -> ToolFailed:
        listed, variables = (", ".join(f"`{one}`" for one in some) for some in (packages, names))
        return ToolFailed(
            f"the environment of `{name_of(real)}` could not be made: there is no wheel of {listed} for this Python, "
            f"and it is not built with the credentials in {variables}: code of its authors could read them",
            hint="name a version that has a wheel, or build it with an index and a proxy that need no credentials",
        )

    def _is_open(self, built: Sequence[str]) -> bool:
        """Whether code of packages may run while the environment is made: if packages are built, or might be."""
        return bool(built) or (self._builds_anything and not with_credentials(self.env))

    async def _make(self, real: str, wanted: Requirements, built: Sequence[str]) -> Sequence[str]:
        """Make the environment, and build the packages in `built`. Returns the packages that must be built too; if
        there are any, the environment is not made."""
        is_open = self._is_open(built)
        with self._ground(real, is_open=is_open) as ground, making_folder(ground) as folder:
            try:
                await self._make_in(real, ground, folder, wanted, built)
            except _NoWheel as missing:
                self.told(f"making the environment of {name_of(real)}: no wheel of {', '.join(missing.packages)}")
                return (*built, *missing.packages)
        return ()

    async def _make_in(self, real: str, ground: str, folder: str, wanted: Requirements, built: Sequence[str]) -> None:
        with open(os.path.join(folder, NAME), "w", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in wanted.lines)
        await self._run(real, ground, folder, wanted, built)
        made, word = os.path.join(folder, "venv"), secrets.token_hex(8)
        _lead_to(base_python(), made, "bin", "python")
        with open(os.path.join(made, MADE_BY_US), "x", encoding="ascii") as file:
            file.write(word)
        stamp = f"{digest_of(wanted.content)}\n{word}\n"
        try:
            await _to_its_end(put, made, self._place(real), stamp)
        except Occupied:
            await _to_its_end(put, made, self._apart(real), stamp)

    async def _run(self, real: str, ground: str, folder: str, wanted: Requirements, built: Sequence[str]) -> None:
        uv, python, made, name = find_uv(self.env), base_python(), os.path.join(folder, "venv"), name_of(real)
        packages = ", ".join(wanted.lines) or "no packages"
        heard = Heard(lambda line: self.told(f"making the environment of {name}: {line}"))
        readable = (uv, *readable_certificates(self.env))
        begin = (uv, "venv", "--quiet", "--no-project", "--relocatable", "--python", python, made)
        install = [uv, "pip", "install", "--python", f"{made}/bin/python", "-r", f"{folder}/{NAME}"]
        is_open = self._is_open(built)
        host = without_credentials(self.env) if is_open else self.env
        if not (is_open and self._builds_anything):
            install += ["--only-binary", ":all:", *(word for name in built for word in ("--no-binary", name))]
        install += ["--require-hashes"] if wanted.has_hashes else []
        refused = RefusedConnections()
        with sandbox_around(ground, self.workspace, self.state_home, self.config, host) as sandbox:
            hosts = (PACKAGE_INDEXES, *hosts_in(wanted.lines), *configured_hosts(self.config))
            network = await restricted(sandbox, *hosts)
            env = installer_environment(host, os.path.join(ground, CACHE), passes_proxies=network is True)
            # Wheels come from the indexes of uv. A build may use other tools, too.
            sandbox.use_indexes({**host, **env}, TOOLS if is_open else ("uv",), names_in(wanted.lines))

            async def do(argv: Sequence[str], grants: Grants = NO_GRANTS, sink: OutputSink = heard) -> bool:
                command = Command(argv, env=env, readable=readable, kill_at_once=True)
                launcher = sandbox.launcher("workspace", grants, unasked=is_open, observer=refused)
                return (await launcher.run(command, sink)).code == 0

            try:
                async with asyncio.timeout(BUILD_SECONDS):
                    self.told(f"making the environment of {name}: {packages[:LONGEST_LINE]}")
                    if not await do(begin):
                        raise failed(name, heard.last(), "uv could not begin it")
                    # The code of a built package could have put links into `ground`, so that haft would write
                    # elsewhere.
                    fresh = None if is_open else Fresh(ground, wanted.lines)
                    is_known = fresh is not None and fresh.is_known()
                    if wanted.lines and not (is_known and await do([*install, "--offline"], sink=_Deaf())):
                        if not await do(install, Grants(network=network)):
                            if missing := [one for one in without_wheel(heard.last()) if one not in built]:
                                raise _NoWheel(missing)
                            raise failed(name, heard.last(), "uv could not install what it requires", refused)
                        if fresh is not None:
                            fresh.note()
                    self.told(f"making the environment of {name}: compiling to bytecode")
                    # uv does not compile, because it would start the new environment's interpreter, which could run
                    # code of installed packages.
                    await do((python, "-I", "-S", "-m", "compileall", "-q", "-j", "0", f"{made}/lib"), sink=_Deaf())
            except TimeoutError as error:
                raise failed(name, heard.last(), f"not done after {BUILD_SECONDS:g} s", refused) from error

    def _place(self, real: str) -> Place:
        """Where the environment will lie: in the folder if haft may write there, else in the state home."""
        place = inside(self.state_home, real)
        if is_ours(real) and not place.has_other():
            return place
        os.lstat(real)  # Raises if the folder was deleted meanwhile.
        return self._apart(real)

    def _apart(self, real: str) -> Place:
        place = apart(self.state_home, real)
        os.makedirs(place.folder, mode=0o700, exist_ok=True)
        return place

    @contextlib.asynccontextmanager
    async def _locked(self, real: str) -> AsyncIterator[None]:
        """A context manager that holds a lock, so that no other process makes the same environment."""
        until, lock = time.monotonic() + WAIT_SECONDS, self._lock(key_of(real))
        if lock is None:
            self.told(f"making the environment of {name_of(real)}: waiting for another process that makes it")
        while lock is None:
            if time.monotonic() > until:
                raise ToolFailed(f"another process has been making the environment of `{name_of(real)}` for too long")
            await asyncio.sleep(LOOK_SECONDS)
            lock = self._lock(key_of(real))
        try:
            yield
        finally:
            lock.release(unlink=True)

    def _lock(self, key: str) -> HeldLock | None:
        folder = os.path.join(self.state_home, "environments")
        try:
            os.makedirs(folder, mode=0o700, exist_ok=True)
            return try_lock(os.path.join(folder, f"{key}.lock"))
        except OSError as error:
            raise StorageFailed("no environment can be made", error) from error

    def _ground(self, real: str, *, is_open: bool) -> contextlib.AbstractContextManager[str]:
        """A context manager that yields the directory in which the environment is made, and which contains uv's
        cache."""
        names = ("uv", "built", key_of(real)) if is_open else ("uv",)
        return download_ground(self.env, self.workspace, self.state_home, *names)


class _NoWheel(Exception):
    """Some packages would have to be built."""

    def __init__(self, packages: Sequence[str]) -> None:
        super().__init__()
        self.packages = tuple(packages)


def _lead_to(python: str, *link: str) -> None:
    """Make the link to the interpreter again, because later checks expect exactly the target `python`. Raises
    `ToolFailed` if a directory on the way is a link: the code of a built package could have put this link there, so
    that haft would write elsewhere."""
    for depth in range(1, len(link)):
        if not stat.S_ISDIR(os.lstat(os.path.join(*link[:depth])).st_mode):
            raise ToolFailed("the result is not an environment: a package that was built has replaced it")
    os.unlink(os.path.join(*link))
    os.symlink(python, os.path.join(*link))


class _Deaf:
    def output(self, stream: Stream, data: bytes) -> None: ...

    def processes_ended(self, children: Sequence[EndedChild]) -> None: ...


async def _to_its_end(function: Callable[..., None], *arguments: Any) -> None:
    """Run a function in a thread. A cancellation waits until the thread has ended."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait((task,))
        raise
