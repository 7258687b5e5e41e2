"""The interface between a tool format and the rest of haft: `ToolSource`, opened for one workspace.

`toolsets/formats.py` has the table of all sources. All code that lists, searches, checks, calls or diagnoses tools uses
this interface and knows no format. A source starts no process itself: methods that need one get a launcher. Tools come
from files and packages, and also from programs and servers that answer slowly or never: `find` never waits for them,
`refresh` may.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from haft.contracts import NO_SECRETS, Definitions, DescribeLauncher, DiscoveredTool, Grants, Listing, Secrets, ToolSpec
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.contracts import SessionLauncher
    from haft.sources.checks.codes import Code
    from haft.sources.checks.findings import Report

ProgressCallback = Callable[[int, int], None]
"""Called with two numbers: how many tools have been described, and how many there are to describe."""


class SourceHost(Protocol):
    """What a source gets from its host when it is opened."""

    @property
    def workspace(self) -> str:
        """The real path of the workspace."""
        ...

    @property
    def state_home(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def sessions(self) -> SessionLauncher | None:
        """The launcher of programs that outlive a call; None if this host calls no tools."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in force, by their dotted names; empty without configuration."""
        ...

    @property
    def renew(self) -> Callable[[], Awaitable[None]]:
        """A function that the source calls and awaits when its tools changed for a reason that no path in `places`
        shows, such as a message from a server."""
        ...

    @property
    def listed(self) -> Callable[[str | None], Sequence[Listing]]:
        """A function that returns all tools of all sources, as a given thread sees them."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """One file or folder to check."""

    path: str
    format: str
    """The name of the source that checks this target."""
    folder: str | None = None
    """The folder of the skill that the target is part of; None if it is part of no skill."""
    within: str | None = None
    """The absolute path of the workspace that the target lies in. Links of the target may not lead out of this
    workspace. None if the target lies in no workspace."""
    holds: tuple[str, ...] = ()
    """Folders inside the target whose files are checked too, each file by the format that it has."""


class ToolSource(Protocol):
    """The tools of one format in one workspace. All methods are called from one event loop. A format is a subclass: it
    must have `name` and `find`, and overrides other methods as needed."""

    name: str
    """The name of the source in the table, in the catalogue and in targets. Mostly it is also the `kind` of the
    tools."""
    codes: Sequence[Code] = ()
    """The codes of findings that only the check of this format reports."""

    def find(self) -> Iterable[DiscoveredTool]:
        """Look for tools. Returns every tool that is known by now, and, for each file that gives no tool, the reason.
        Starts nothing."""
        ...

    @property
    def is_incomplete(self) -> bool:
        """Whether tools are still to be described, so that `refresh` would return more than `find` did, even if no file
        changes."""
        return False

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        """Look again, and describe tools that are not described yet. Returns the tools; None if nothing changed. A tool
        that is listed as `retry_name` and whose description failed is described again. A source that waits for other
        programs, such as servers, must limit its waiting, and await the host's `renew` when they answer later."""
        return list(self.find())

    async def find_unlisted(self, name: str) -> None:
        """Get ready to list a tool that a call names and that is not listed, for example start the server that the name
        belongs to. This may take long, and runs beside other refreshes. Called before `refresh`."""
        return

    def places(self) -> Iterable[str]:
        """The absolute paths of the files and directories that the tools come from, whether they exist or not. If one
        of them changes, or a file directly in one of these directories, haft refreshes this source."""
        return ()

    def due(self) -> bool:
        """Whether to refresh this source now and then although no path in `places` changes. For example, a tool failed
        because a program is missing, and that program may be installed anywhere."""
        return False

    def is_current(self, spec: ToolSpec) -> bool:
        """Whether a tool that this source found is unchanged. Asked before each call of the tool."""
        return True

    def recognizes(self, path: str) -> bool:
        """Whether the file or folder at a path has this format, without running it."""
        return False

    async def load(self, path: str, launcher: DescribeLauncher, grants: Grants) -> DiscoveredTool | None:
        """The tool at a path that this source recognizes, described anew with `grants`. None if tools of this format
        cannot be called by path. Raises `BadUsage` if the tool is broken."""
        return None

    def targets(self, path: str) -> Iterable[Target]:
        """The targets to check at a path that this source recognizes."""
        yield Target(path, self.name)

    def is_checked_at_origin(self, spec: ToolSpec) -> bool:
        """Whether a check of a found tool checks the file that the tool comes from. If not, only the tool's definition
        is checked."""
        return False

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        """Check a target. `reserved` has the parameter names that haft's own options hide on a command line."""
        return ()

    def cure(self, spec: ToolSpec) -> str:
        """The hint for a tool of this source that cannot be called: what to do about it."""
        return f"haft tools check {spec.origin}"

    @property
    def secrets(self) -> Secrets:
        """Values that are masked in all output about any call."""
        return NO_SECRETS

    def closed_to_calls(self) -> Iterable[str]:
        """Paths in the workspace that calls may not write, because haft would later run a file there without
        approval."""
        return ()

    async def close(self) -> None:
        """End the programs of this source that still run after their calls."""
        return
