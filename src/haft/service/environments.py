"""The environments of templates: one for each folder with a `requirements.txt`, made once and then only looked at.

It lies in the folder as `.venv`, and in the state home where the folder is not ours to write in. A stamp beside it,
`.requirements_hash.txt`, says what it was made of and which making it was; the environment holds the same word of its
making, so that neither counts without the other. Whether there is one is found out with a few small reads. Making one
is in `environment_making`, which is imported when that has to be done.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from haft.contracts import Environment, ToolFailed
from haft.files.links import steps_of
from haft.service.requirements import NAME, read_requirements

if TYPE_CHECKING:
    import asyncio

    from haft.service.config import Config

ENVIRONMENT: Final = ".venv"
STAMP: Final = ".requirements_hash.txt"
MADE_BY_US: Final = ".haft"
"""In an environment: the word of its making."""
FORMAT: Final = "1"
"""Changes with how environments are made: those of another are made anew."""
TRIES: Final = 3
"""How often an environment is made for one caller, where its requirements change meanwhile."""
_SMALL: Final = 1_000
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Told = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where an environment and its stamp lie, or would."""

    folder: str

    @property
    def environment(self) -> str:
        return os.path.join(self.folder, ENVIRONMENT)

    @property
    def stamp(self) -> str:
        return os.path.join(self.folder, STAMP)

    @property
    def python(self) -> str:
        return os.path.join(self.environment, "bin", "python")

    def has_other(self) -> bool:
        """Whether someone made an environment of their own here: it is not ours to replace. One with a stamp is made
        by whatever runs templates, and one without `pyvenv.cfg` is none."""
        own = os.path.join(self.environment, MADE_BY_US)
        return (
            os.path.lexists(os.path.join(self.environment, "pyvenv.cfg"))
            and not os.path.lexists(own)
            and not os.path.lexists(self.stamp)
        )

    def found(self, digest: str, python: str) -> Environment | None:
        """The environment, where it was made of what `digest` stands for and leads to this interpreter."""
        said = _small_file(self.stamp).split()
        if len(said) != 2 or said[0] != digest or _small_file(os.path.join(self.environment, MADE_BY_US)) != said[1]:
            return None
        try:
            # Who can write here could have it lead anywhere, and what it leads to is shown to calls.
            if os.readlink(self.python) != python or not stat.S_ISDIR(os.lstat(self.environment).st_mode):
                return None
        except OSError:
            return None
        steps = (os.path.dirname(step) for step in steps_of(python))
        readable = tuple(dict.fromkeys((self.environment, sys.base_prefix, *steps)))
        return Environment(self.python, readable, f"{digest}-{said[1]}")


class TemplateEnvironments:
    """Those of one host. `workspace` is what nothing that is run to make one may see."""

    def __init__(self, config: Config, state_home: str, env: Mapping[str, str], workspace: str) -> None:
        self._config = config
        self._state_home = os.path.realpath(state_home)
        self._env = env
        self._workspace = os.path.realpath(workspace)
        self._digests: dict[str, tuple[tuple[int, ...], str]] = {}
        """Of requirements, by their folder: which file it was, and what it stands for."""
        self._shared: dict[tuple[asyncio.AbstractEventLoop, str], _Shared] = {}

    def current(self, folder: str) -> Environment | None:
        """The one that a folder has, if its requirements are still what it was made of. Nothing is started."""
        real = os.path.realpath(folder)
        digest = self._digest(real)
        if digest is None or not os.path.exists(python := base_python()):
            return None
        places = (Place(real), apart(self._state_home, real))
        return next((found for place in places if (found := place.found(digest, python))), None)

    async def prepared(self, folder: str, told: Told = lambda _line: None) -> Environment:
        """The same, made where it is missing or outdated. Whoever else wants it meanwhile waits for the same one: a
        caller that is cancelled ends its own waiting, and the making where nobody else waits."""
        real = os.path.realpath(folder)
        for _ in range(TRIES):
            if (found := self.current(real)) is not None:
                return found
            await self._made(real, told)
        if (found := self.current(real)) is not None:
            return found
        raise ToolFailed(f"the environment of `{name_of(real)}` is outdated as soon as it is made: its {NAME} changes")

    async def _made(self, real: str, told: Told) -> None:
        import asyncio

        key = (asyncio.get_running_loop(), real)
        shared = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = self._begun(real)
        shared.told.append(told)
        try:
            await asyncio.shield(shared.task)
        finally:
            shared.told.remove(told)
            if not shared.told or shared.task.done():
                if self._shared.get(key) is shared:
                    del self._shared[key]
                shared.task.cancel()
                await asyncio.wait((shared.task,))  # nothing of it is left when this returns
                _ = shared.task.cancelled() or shared.task.exception()

    def _begun(self, real: str) -> _Shared:
        import asyncio

        from haft.service.environment_making import Making

        told: list[Told] = []

        def tell(line: str) -> None:
            for each in tuple(told):
                each(line)

        making = Making(self._config, self._state_home, self._env, self._workspace, tell)
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
    """Who waits for it."""


def digest_of(requirements: bytes) -> str:
    """Stands for everything that an environment depends on."""
    facts = (
        FORMAT,
        sys.implementation.cache_tag,
        sys.abiflags,
        sys.platform,
        os.uname().machine,
        base_python(),
        hashlib.sha256(requirements).hexdigest(),
    )
    return hashlib.sha256("\0".join(map(str, facts)).encode("utf-8", "surrogateescape")).hexdigest()


def base_python() -> str:
    """The interpreter that environments lead to: the one below any environment that haft itself runs in."""
    found: str = getattr(sys, "_base_executable", None) or sys.executable
    return os.path.abspath(found)


def apart(state_home: str, real: str) -> Place:
    """Where the environment of a folder lies that is not ours to write in."""
    return Place(os.path.join(state_home, "environments", key_of(real)))


def key_of(real: str) -> str:
    """What stands for a folder in names of files."""
    return hashlib.sha256(os.fsencode(real)).hexdigest()[:24]


def name_of(real: str) -> str:
    """What people call a folder."""
    from haft.files import shown

    return shown(os.path.basename(real))


def _small_file(path: str) -> str:
    """What a file of a few words says; nothing where there is none, or it is something else."""
    try:
        descriptor = os.open(path, _READ)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _SMALL).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
