"""The interface of a tool format to the rest of haft: `ToolSource`, opened for one workspace.

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
"""Called with two numbers: how many tools are described, and how many will be."""


class SourceHost(Protocol):
    """What a source gets when it is opened."""

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
        """Starts programs that outlive a call; None if this host calls no tools."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in force, by their dotted names; empty without configuration."""
        ...

    @property
    def renew(self) -> Callable[[], Awaitable[None]]:
        """Awaited by the source when its tools changed for a reason that no watched place shows, such as a message from
        a server."""
        ...

    @property
    def listed(self) -> Callable[[str | None], Sequence[Listing]]:
        """Returns all tools as a thread sees them, from all sources."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to check."""

    path: str
    format: str
    """The name of the source that checks it."""
    folder: str | None = None
    """The folder of the skill that it is part of."""
    within: str | None = None
    """The workspace that it lies in, absolute. Its links may not lead out of there."""
    holds: tuple[str, ...] = ()
    """Folders inside it whose files are checked too, each as the format that it has."""


class ToolSource(Protocol):
    """The tools of one format in one workspace. All methods are called from one event loop. A format is a subclass: it
    must have `name` and `find`, and overrides other methods as needed."""

    name: str
    """The name in the table, the catalogue and in targets: mostly the kind of its tools."""
    codes: Sequence[Code] = ()
    """The codes that only the check of this format finds."""

    def find(self) -> Iterable[DiscoveredTool]:
        """Look for tools. Returns every tool that is known by now, or why there is none. Starts nothing."""
        ...

    @property
    def is_incomplete(self) -> bool:
        """Whether `refresh` would return more than `find` did, even if nothing changes."""
        return False

    async def refresh(
        self, launcher: DescribeLauncher, progress: ProgressCallback, *, retry_name: str | None = None
    ) -> Iterable[DiscoveredTool] | None:
        """Look again, and describe tools that are not described yet. Returns the tools; None if nothing changed. A tool
        that is listed as `retry_name` and whose description failed is described again. A source that waits for others
        must limit its waiting, and await the host's `renew` when they answer later."""
        return list(self.find())

    def places(self) -> Iterable[str]:
        """The files and directories, absolute, that its tools come from, whether they exist or not. A change of one of
        them, or of a file directly in one, leads to a refresh."""
        return ()

    def due(self) -> bool:
        """Whether to refresh it now and then although no place changes: the cause of a failure may be fixed
        elsewhere."""
        return False

    def is_current(self, spec: ToolSpec) -> bool:
        """Whether a tool that it found is unchanged. Called before each call of the tool."""
        return True

    def recognizes(self, path: str) -> bool:
        """Whether the file or folder at a path has this format, without running it."""
        return False

    async def load(self, path: str, launcher: DescribeLauncher, grants: Grants) -> DiscoveredTool | None:
        """The tool at a path that it recognizes, described anew with `grants`, which the caller gives. None if tools of
        this format cannot be called by path. Raises `BadUsage` if the tool is broken."""
        return None

    def targets(self, path: str) -> Iterable[Target]:
        """What to check at a path that it recognizes."""
        yield Target(path, self.name)

    def is_checked_at_origin(self, spec: ToolSpec) -> bool:
        """Whether the file of a found tool is checked; otherwise only its definition is."""
        return False

    async def check(self, target: Target, launcher: DescribeLauncher, reserved: Collection[str]) -> Sequence[Report]:
        """Check a target. `reserved` are the parameter names that options of the command line hide."""
        return ()

    def cure(self, spec: ToolSpec) -> str:
        """What to do about one of its tools that cannot be called."""
        return f"haft tools check {spec.origin}"

    @property
    def secrets(self) -> Secrets:
        """Values that are masked in all output about any call."""
        return NO_SECRETS

    def closed_to_calls(self) -> Iterable[str]:
        """Paths in the workspace that calls may not write, because haft would run such a file without anyone approving
        it."""
        return ()

    async def close(self) -> None:
        """End programs that outlived their calls."""
        return
