"""A workspace, a state home and a blocking service over both, in which every question is answered with yes.

Nothing else is different from a service that a program opens: a call is validated, decided, confined, recorded. The
service opens when it is first needed, so that files can be written and settings made before.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from haft.contracts import ApprovalRequest, Listing, Outcome
from haft.service import SyncToolService, ToolService
from haft.sources.bash_plugin import is_bash_plugin


class ToolBench:
    """What the fixture `haft_tools` gives to a test."""

    def __init__(self, workspace: Path, home: Path) -> None:
        self.workspace = workspace
        """An empty directory, where tools work. A `haft.json` or `haft.toml` in it counts when the service opens."""
        self.asked: list[ApprovalRequest] = []
        """What a person would have been asked, in order. Every answer was yes."""
        self.settings: dict[str, Any] = {}
        """The strongest settings, by their dotted names, as of when the service opens."""
        self._home = home
        self._plugins: list[str] = []
        self._files: list[str] = []
        self._service: SyncToolService | None = None

    def load(self, path: str | os.PathLike[str]) -> list[Listing]:
        """Take in a bash plugin, as a file or a folder, or a toolbox executable. Its tools, or why they are none."""
        full = os.path.abspath(os.fspath(path))
        if os.path.isdir(full) or is_bash_plugin(Path(full).read_bytes()):
            self._plugins.append(f"bash:{full}")
            self.close()
            return [one for one in self.service.tools(all=True) if _is_part(one, full)]
        listing = self._opened().load(full)
        self._files.append(full)
        return [listing]

    def call(self, name: str, /, **arguments: Any) -> Outcome:
        """Call a tool and wait for its end. A failure is an outcome, too."""
        return self.service.call(name, arguments).wait()

    def tools(self) -> dict[str, Listing]:
        """Every tool by name, ready or not."""
        return {one.spec.name: one for one in self.service.tools(all=True)}

    @property
    def service(self) -> SyncToolService:
        """The service itself, for whatever is not here: events of a run, its record, settings of one call."""
        return self._opened()

    def _opened(self) -> SyncToolService:
        if self._service is None:
            loaded = {"plugins": self._plugins, "plugin_policy.allow_bash_tools": True} if self._plugins else {}
            self._service = ToolService.open_sync(
                self.workspace,
                home=self._home,
                approver=self._yes,
                settings={**loaded, **self.settings},
                installed=False,
            ).__enter__()
            for file in self._files:
                self._service.load(file)
        return self._service

    def _yes(self, request: ApprovalRequest) -> bool:
        self.asked.append(request)
        return True

    def close(self) -> None:
        """End everything that still runs. The next call opens the service anew, over the same workspace and state."""
        service, self._service = self._service, None
        if service is not None:
            service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _is_part(listing: Listing, path: str) -> bool:
    return listing.spec.origin == path or listing.spec.origin.startswith(path.rstrip("/") + "/")
