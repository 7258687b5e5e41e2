"""What a format of tools is to the rest of haft: a `ToolSource`, opened for one workspace.

`toolsets/formats.py` has the table of all sources. Whoever lists, searches, checks, calls or diagnoses tools goes
through this port and knows no format. A source starts no process itself: it is handed a launcher where it needs one.
Tools may come from files, packages, or programs and servers that answer late or not at all: `find` never waits for
them, and `refresh` may.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from haft.contracts import NO_SECRETS, AskingLauncher, Definitions, Found, Grants, Listing, Secrets, ToolSpec
from haft.values import dataclass

if TYPE_CHECKING:
    from haft.contracts import SessionLauncher
    from haft.sources.checks.codes import Code
    from haft.sources.checks.findings import Report

ProgressCallback = Callable[[int, int], None]
"""ProgressCallback how many of how many were asked what they are."""


class SourceHost(Protocol):
    """What a source is opened with."""

    @property
    def workspace(self) -> str:
        """Its real path."""
        ...

    @property
    def state_home(self) -> str: ...
    @property
    def env(self) -> Mapping[str, str]: ...
    @property
    def definitions(self) -> Definitions: ...
    @property
    def sessions(self) -> SessionLauncher | None:
        """Starts programs that outlive a call; None where nothing is called."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings in force, by their dotted names; none where nobody configured anything."""
        ...

    @property
    def renew(self) -> Callable[[], Awaitable[None]]:
        """To be awaited when its tools are others for a reason that no place shows: a server said so."""
        ...

    @property
    def listed(self) -> Callable[[str | None], Sequence[Listing]]:
        """All tools as they are listed in a thread, those of other sources too."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """One thing to check."""

    path: str
    format: str
    """The name of the source that checks it."""
    folder: str | None = None
    """The skill's that it is part of."""
    within: str | None = None
    """The workspace that it lies in, which it may not lead out of; absolute."""
    holds: tuple[str, ...] = ()
    """Folders in it whose files are checked too, each as what it is."""


class ToolSource(Protocol):
    """One format's tools in one workspace. Used from one loop. A format subclasses it and keeps the defaults where it
    has nothing to say; `name` and `find` are its own."""

    name: str
    """By which the table, the catalogue and its targets know it: the kind of its tools, mostly."""
    codes: Sequence[Code] = ()
    """What only its own check finds."""

    def find(self) -> Iterable[Found]:
        """Look, and give every tool that is known by now, or why there is none. Nothing is started."""
        ...

    @property
    def is_incomplete(self) -> bool:
        """Whether `refresh` would learn more than `find` gave, though nothing changes."""
        return False

    async def refresh(
        self, launcher: AskingLauncher, told: ProgressCallback, *, doubted: str | None = None
    ) -> Iterable[Found] | None:
        """Look again, and ask what is not known: what there is now, or None where that is nothing else than before.
        Tools that could not be understood and are listed by the name `doubted` are asked again. Whoever waits for
        others bounds its waiting, and awaits the host's `renew` when they answer later."""
        return list(self.find())

    def places(self) -> Iterable[str]:
        """The files and directories, absolute, that its tools come from, whether they exist or not: a change of one, or
        of a file directly in one, calls for a refresh."""
        return ()

    def due(self) -> bool:
        """Whether it is to be refreshed now and then though no place changes: something may be mended elsewhere."""
        return False

    def is_current(self, spec: ToolSpec) -> bool:
        """Whether a tool that it found is still what it was. Asked before each call."""
        return True

    def recognizes(self, path: str) -> bool:
        """Whether the file or folder at a path is of this format, by a look at it."""
        return False

    async def load(self, path: str, launcher: AskingLauncher, grants: Grants) -> Found | None:
        """The tool at a path that it recognizes, asked anew with what whoever names it grants; None where tools of this
        format cannot be called by their path. `BadUsage` says what is wrong with it."""
        return None

    def targets(self, path: str) -> Iterable[Target]:
        """What is to be checked at a path that it recognizes."""
        yield Target(path, self.name)

    def is_checked_at_origin(self, spec: ToolSpec) -> bool:
        """Whether a tool that it found is checked where it lies; else its definition alone is."""
        return False

    async def check(self, target: Target, launcher: AskingLauncher, reserved: Collection[str]) -> Sequence[Report]:
        """What is wrong with a target. `reserved` are names of parameters that the command line has itself."""
        return ()

    def cure(self, spec: ToolSpec) -> str:
        """What to do about a tool of its own that cannot be called."""
        return f"haft tools check {spec.origin}"

    @property
    def secrets(self) -> Secrets:
        """What is masked in all that is said of any call."""
        return NO_SECRETS

    def closed_to_calls(self) -> Iterable[str]:
        """What calls may not write in the workspace, since it would be run without being looked at."""
        return ()

    async def close(self) -> None:
        """End what outlived its calls."""
        return
