"""The packaged servers of one host: says which commands run packages, and installs the packages once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from haft.contracts import ToolFailed
from haft.sources.mcp import InstalledServer, Provider
from haft.toolsets.providers.packages.command_line import PackageCommand, UnsupportedCommand, package_name
from haft.toolsets.providers.packages.docker import why_docker_refused
from haft.toolsets.providers.packages.own_files import own_files, variables_for
from haft.toolsets.providers.packages.places import Record, ServerPlace
from haft.toolsets.providers.packages.programs import find_node, find_program, find_python, readable_for
from haft.toolsets.providers.packages.refusals import command_of, why_not_installable

if TYPE_CHECKING:
    from haft.config import Config
    from haft.toolsets.providers.packages.recipe import Recipe


MOST_NAMED: Final = 5


class PackagedServers:
    """Implements `ServerPackages`. The programs that install packages cannot see `workspace`."""

    def __init__(self, config: Config, state_home: str, env: Mapping[str, str], workspace: str) -> None:
        self._config = config
        self._state_home = os.path.realpath(state_home)
        self._env = env
        self._workspace = os.path.realpath(workspace)

    def names_package(self, provider: Provider) -> bool:
        """Whether the provider's command runs a package. Also true for a command that is refused, so that `install`
        says why."""
        try:
            return command_of(provider) is not None or why_docker_refused(provider) is not None
        except UnsupportedCommand:
            return True

    def installed(self, provider: Provider) -> InstalledServer | None:
        """The installed package; None if it is not installed, or what runs it is missing. Starts no process."""
        if why_not_installable(provider) is not None or (command := command_of(provider)) is None:
            return None
        try:
            place, python = self._place(command)
            record = place.current()
            if record is None:
                return None
            place.note_use()
            return self._server(provider, command, place, record, python)
        except (ToolFailed, OSError):
            return None

    async def install(
        self, provider: Provider, progress: Callable[[str], None], *, upgrade: bool = False
    ) -> InstalledServer:
        """Install the package if it is not installed. With `upgrade`, also if there is a newer version that the command
        allows. Raises `ToolFailed` with the last lines of output if that fails."""
        if (why := why_not_installable(provider)) is not None:
            raise ToolFailed(why)
        command = command_of(provider)
        if command is None:
            raise ToolFailed(f"the command of the server `{provider.name}` runs no package")
        place, python = self._place(command)
        record = None if upgrade else place.current()
        if record is None:
            from haft.toolsets.providers.packages.installing import Installing

            installing = Installing(self._config, self._state_home, self._env, self._workspace)
            recipe = self._recipe(command, python)
            packages = ", ".join(command.packages)
            record = await installing.install(provider.name, packages, place, recipe, progress, upgrade=upgrade)
        return self._server(provider, command, place, record, python)

    def _place(self, command: PackageCommand) -> tuple[ServerPlace, str]:
        """The directory of the command's installed versions, and the Python that it needs; empty if it needs none."""
        if command.registry == "npm":
            return ServerPlace(self._state_home, command, None), ""
        python = find_python(command.python, self._env, self._workspace)
        if not os.path.exists(python):
            raise ToolFailed(f"the Python {python} does not exist")
        return ServerPlace(self._state_home, command, python), python

    def _recipe(self, command: PackageCommand, python: str) -> Recipe:
        if command.registry == "npm":
            from haft.toolsets.providers.packages.npm import NpmRecipe

            return NpmRecipe(command, self._env, self._workspace)
        from haft.toolsets.providers.packages.pypi import PypiRecipe

        return PypiRecipe(command, self._env, python)

    def _server(
        self, provider: Provider, command: PackageCommand, place: ServerPlace, record: Record, python: str
    ) -> InstalledServer:
        folder = place.path_of(record)
        program = os.path.join(folder, record.program)
        interpreter, readable = self._interpreter(record, folder, python)
        files = own_files(self._state_home, provider)
        os.makedirs(files, mode=0o700, exist_ok=True)
        env = variables_for(package_name(command.registry, command.packages[0]), files)
        return InstalledServer(
            argv=(*interpreter, program, *command.args),
            readable=(folder, *readable),
            env={name: value for name, value in env.items() if name not in provider.env},
            version=record.version,
            digest=record.digest,
            keeps=(files,),
            note=_note(record),
        )

    def _interpreter(self, record: Record, folder: str, python: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The interpreter of a program, and what must be readable to run it. Raises `ToolFailed` if it is missing."""
        if record.interpreter == "none":
            return (), readable_for(python) if python else ()
        if record.interpreter == "python":
            return (os.path.join(folder, "bin", "python"),), readable_for(python)
        if record.interpreter == "node" and (node := find_node(self._env, self._workspace)) is not None:
            return (node,), (node,)
        bun = find_program("bun", self._env, self._workspace)  # bun also runs programs that are written for node.
        if bun is None:
            raise ToolFailed(
                f"`{record.version}` runs with {record.interpreter}, which was not found",
                hint=f"install `{record.interpreter}` so that it is on the PATH, outside of the workspace",
            )
        return (os.path.realpath(bun),), (os.path.realpath(bun),)


def _note(record: Record) -> str:
    if not record.without_scripts:
        return ""
    listed = ", ".join(f"`{name}`" for name in record.without_scripts[:MOST_NAMED])
    more = " and others" if len(record.without_scripts) > MOST_NAMED else ""
    return (
        f"haft did not run the install scripts of {listed}{more}; if the server needs them, install it yourself, and "
        "name its program as the command"
    )
