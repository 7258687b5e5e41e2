"""The environments of templates: one for each folder with a `requirements.txt`, made once and then only checked.

The environment is `.venv` in the folder, or lies in the state home if haft may not write in the folder. Beside the
environment lies its stamp: the file `.requirements_hash.txt` with the digest of the requirements and a random word. The
environment contains the same word, so that stamp and environment are valid only together. A few small reads tell
whether there is a valid environment. The module `making` makes environments, and is imported only when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from haft.contracts import Environment, ToolFailed
from haft.sources.agent_studio import NAME, read_requirements
from haft.toolsets.environments.places import (
    Told,
    allowed_builds,
    apart,
    base_python,
    content_digest,
    digest_of,
    inside,
    name_of,
)

if TYPE_CHECKING:
    import asyncio

    from haft.config import Config

TRIES: Final = 3
"""How often haft makes an environment for one caller, if the requirements change while haft makes it."""


class TemplateEnvironments:
    """The environments of one host. The programs that make an environment cannot see `workspace`."""

    def __init__(self, config: Config, state_home: str, env: Mapping[str, str], workspace: str) -> None:
        self._config = config
        self._state_home = os.path.realpath(state_home)
        self._env = env
        self._workspace = os.path.realpath(workspace)
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}
        """The digests of requirements by folder, each with the identity of the `requirements.txt` that was read."""
        self._shared: dict[tuple[asyncio.AbstractEventLoop, str], _Shared] = {}

    def current(self, folder: str) -> Environment | None:
        """The environment of a folder; None if the folder has no environment, or if the requirements have changed.
        Starts no process."""
        real = os.path.realpath(folder)
        digest = self._digest(real)
        if digest is None or not os.path.exists(python := base_python()):
            return None
        places = (inside(self._state_home, real), apart(self._state_home, real))
        return next((found for place in places if (found := place.found(digest, python))), None)

    def requirements(self, folder: str) -> str:
        """The digest of a folder's current requirements."""
        return content_digest(read_requirements(folder))

    def allow_build(self, folder: str, requirements: str) -> None:
        """Save that a person approved the build of the packages of these requirements. The folder's file is not read:
        if it has changed by now, the new requirements need approval again."""
        path = allowed_builds(self._state_home, requirements)
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        with open(path, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(f"{os.path.realpath(folder)}\n")

    async def prepare(self, folder: str, told: Told = lambda _line: None, *, may_build: bool = False) -> Environment:
        """The environment of a folder; makes it if it is missing or outdated. Tasks that call this at the same time for
        the same folder share the work. A cancelled task stops waiting; if no other task waits, the work stops. `told`
        gets progress messages."""
        real = os.path.realpath(folder)
        for _ in range(TRIES):
            if (found := self.current(real)) is not None:
                return found
            await self._made(real, told, may_build)
        if (found := self.current(real)) is not None:
            return found
        raise ToolFailed(f"the environment of `{name_of(real)}` could not be made: its {NAME} changed each time")

    async def _made(self, real: str, told: Told, may_build: bool) -> None:
        import asyncio

        key = (asyncio.get_running_loop(), real)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = self._begun(real, may_build)
        shared.told.append(told)
        try:
            await asyncio.shield(shared.task)
        finally:
            shared.told.remove(told)
            if not shared.told or shared.task.done():
                if self._shared.get(key) is shared:
                    del self._shared[key]
                shared.task.cancel()
                await asyncio.wait((shared.task,))  # When this returns, no process of the work is left.
                _ = shared.task.cancelled() or shared.task.exception()

    def _begun(self, real: str, may_build: bool) -> _Shared:
        import asyncio

        from haft.toolsets.environments.making import Making

        told: list[Told] = []

        def tell(line: str) -> None:
            for each in tuple(told):
                each(line)

        making = Making(self._config, self._state_home, self._env, self._workspace, tell, may_build)
        return _Shared(asyncio.ensure_future(making.make(real, self.current)), told)

    def _digest(self, real: str) -> str | None:
        try:
            found = os.lstat(os.path.join(real, NAME))
            which = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
            known = self._digests.get(real)
            if known is None or known[0] != which:
                known = self._digests[real] = which, digest_of(read_requirements(real))
        except (OSError, ToolFailed):
            return None
        return known[1]


@dataclass(slots=True)
class _Shared:
    task: asyncio.Future[None]
    told: list[Told] = field(default_factory=list)
    """The progress functions of the callers that wait for the task."""
